"""Settings of the translator: what the API server would refuse later is refused at once."""

import json
import re
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from headgate.common.errors import SettingsError
from headgate.common.plugins import third_party
from headgate.common.service.settings import load_settings
from headgate.translator.settings import TranslatorSettings
from headgate.translator.world.entry_points import ListenerOptions


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


def test_the_prefix_of_annotations_is_a_dns_name_that_means_nothing_else() -> None:
    assert load("--nginx-annotations-prefix", "team.example").translation.nginx.annotations_prefix == "team.example"
    for text in ("team.example/", "Team.example", "", "a b", "x" * 254):
        with pytest.raises(SettingsError, match="must be a DNS name in lower case without a slash"):
            load("--nginx-annotations-prefix", text)
    with pytest.raises(SettingsError, match="must not be the prefix of other annotations"):
        load("--nginx-annotations-prefix", "headgate.dev")


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


OWN = (("web", "http", 0), ("websecure", "https", 0))


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ((), ()),
        (("--entrypoints=db=5432/tcp,dns=53/udp",), (("db", "tcp", 5432), ("dns", "udp", 53))),
        (("--entrypoints=db=:5432", "--entrypoints=dns=:53/UDP"), (("db", "tcp", 5432), ("dns", "udp", 53))),
        (("--entrypoints=plain=http,secure=https",), (("plain", "http", 0), ("secure", "https", 0))),
    ],
)
def test_entry_points_are_ports_by_name(written: tuple[str, ...], found: tuple[tuple[str, str, int], ...]) -> None:
    points = load(*written).translation.entry_points
    assert tuple((one.name, one.protocol, one.port) for one in points) == (*OWN, *found)
    assert all(one.is_default for one in points)


def test_entry_points_may_have_an_address() -> None:
    points = load("--entrypoints=one=127.0.0.1:99/tcp,two=[::1]:99/tcp").translation.entry_points[2:]
    assert [(one.address, one.port) for one in points] == [("127.0.0.1", 99), ("::1", 99)]


def test_entry_points_that_are_marked_are_the_default_ones_and_those_of_udp_are_in_any_case(tmp_path: Path) -> None:
    file = tmp_path / "headgate.toml"
    marked = '[entrypoints.db]\naddress = ":5432/tcp"\nasDefault = true\n[entrypoints.dns]\naddress = ":53/udp"\n'
    file.write_text(f"{marked}[entrypoints.websecure]\nasDefault = true\n")
    points = load(f"--config={file}").translation.entry_points
    assert {one.name for one in points if one.is_default} == {"db", "dns", "websecure"}


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("db", "must be NAME=PORT/tcp"),
        ("db=0/tcp", "must be PORT/tcp"),
        ("db=5432/sctp", "must be PORT/tcp"),
        ("db=70000", "must be PORT/tcp"),
        ("web=80/tcp", "web is the gateways' own HTTP port"),
        ("a=1/tcp,b=1/tcp", "b has the port of a"),
        ("a b=1/tcp", "is no name of an entry point"),
    ],
)
def test_an_entry_point_that_cannot_be_had_is_refused_in_one_line(
    written: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_ENTRYPOINTS", written)
    with pytest.raises(SettingsError, match=rf"^entrypoints: [^\n]*{re.escape(told)}[^\n]*$"):
        load()


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({"web": {"http": {"tls": {}}}}, "web.http.tls: the gateways' HTTP port speaks no TLS"),
        (
            {"websecure": {"http": {"redirections": {"entryPoint": {"to": "web"}}}}},
            "only plain requests are redirected",
        ),
        ({"web": {"http": {"redirections": {"entryPoint": {"to": "lost"}}}}}, "there is no entry point 'lost'"),
        (
            {"web": {"forwardedHeaders": {"insecure": True}, "proxyProtocol": {"trustedIPs": ["10.0.0.1"]}}},
            "must trust the same peers",
        ),
        ({"web": {"http2": {"maxConcurrentStreams": 5000}}}, "max_streams"),
        ({"web": {"forwardHeaders": {}}}, "entrypoints.web.forwardHeaders"),
        ({"a": {"address": ":1", "transport": {"respondingTimeouts": {"readTimeout": "soon"}}}}, "readTimeout"),
    ],
)
def test_an_option_of_an_entry_point_that_cannot_be_had_is_named(
    written: Any, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_ENTRYPOINTS", json.dumps(written))
    with pytest.raises(SettingsError, match=re.escape(told)):
        load()


def test_fields_of_traefik_without_effect_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    written = {"web": {"http3": {}, "reusePort": True, "transport": {"lifeCycle": {"graceTimeOut": "10s"}}}}
    monkeypatch.setenv("HEADGATE_ENTRYPOINTS", json.dumps(written))
    assert {one.name: one.options for one in load().translation.entry_points}["web"] == ListenerOptions()
