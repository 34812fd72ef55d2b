"""Settings of the translator: what the API server would refuse later is refused at once."""

from importlib.metadata import EntryPoint

import pytest

from headgate.common.errors import SettingsError
from headgate.common.plugins import third_party
from headgate.common.service.settings import load_settings
from headgate.translator.settings import TranslatorSettings


def load(*argv: str) -> TranslatorSettings:
    return load_settings(TranslatorSettings, argv, program="translator", summary="Translates.")


def test_addresses_and_names_are_told_apart() -> None:
    fixed = load("--publish-addresses", "192.0.2.1,2001:db8::1,edge-1.example.com").fixed_addresses
    assert [(each.ip, each.hostname) for each in fixed] == [
        ("192.0.2.1", None),
        ("2001:db8::1", None),
        (None, "edge-1.example.com"),
    ]


@pytest.mark.parametrize("text", ["not an ip!", "Edge.example", "192.0.2.300", "a_b.example", "a..example", "a." * 127])
def test_what_no_api_server_takes_as_an_address_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="neither an IP address nor a DNS name"):
        load("--publish-addresses", text)


def test_shares_of_rollouts_are_growing_percents() -> None:
    assert load("--rollout-shares", "10,50").rollout_policy.shares == (10.0, 50.0)
    assert load().rollout_policy.shares == ()
    for text in ("0,50", "50,10", "10,10", "100", "some"):
        with pytest.raises(SettingsError, match="rollout_shares"):
            load("--rollout-shares", text)


def test_plugins_are_known_by_the_setting_and_by_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def announced(group: str) -> list[EntryPoint]:
        return [EntryPoint("maintenance", "headgate_maintenance:Maintenance", group)]

    monkeypatch.setattr(third_party, "entry_points", announced)
    assert load("--plugin-names", "audit,quota").translation.plugin_names == {"audit", "quota", "maintenance"}


def test_a_table_selects_clusters_and_namespaces_by_name() -> None:
    selection = load("--table=tenant-a", "--clusters=paris,eu-*", "--namespaces=shop").selection
    assert (selection.clusters, selection.namespaces) == (("paris", "eu-*"), ("shop",))
    assert load().selection.clusters == load().selection.namespaces == ()


@pytest.mark.parametrize("flag", ["--clusters=Paris", "--namespaces=shop,a b", "--table=a.b"])
def test_what_can_be_no_name_is_refused_in_one_line(flag: str) -> None:
    with pytest.raises(SettingsError, match=r"^(clusters|namespaces|table): .*such as (shop|tenant-a)[^\n]*$"):
        load(flag)
