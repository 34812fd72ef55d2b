"""What the console can be told, and what it refuses."""

import pytest

from headgate.common.errors import SettingsError
from headgate.common.service.settings import load_settings
from headgate.console.settings import ConsoleSettings


def load(*flags: str) -> ConsoleSettings:
    return load_settings(ConsoleSettings, flags, program="headgate console", summary="")


def test_it_listens_on_loopback_without_a_login() -> None:
    settings = load()
    assert (settings.console_host, settings.console_port, settings.console_people_file) == ("127.0.0.1", 9090, None)


def test_it_is_not_opened_to_others_by_accident() -> None:
    with pytest.raises(SettingsError, match="give console_people_file, console_oidc_issuer, or console_open"):
        load("--console-host=0.0.0.0")
    assert load("--console-host=0.0.0.0", "--console-open").console_open


def test_a_gateway_is_a_url() -> None:
    with pytest.raises(SettingsError, match="must begin with http"):
        load("--gateway-url=127.0.0.1:9080")
    assert load("--gateway-url=http://gateways:9080/").gateway_url == "http://gateways:9080"
    assert not load("--gateway-url=").gateway_url


PROVIDER = (
    "--console-oidc-issuer=https://id.example/",
    "--console-oidc-client-id=console",
    "--console-url=https://console.example/",
    "--console-oidc-viewer-groups=*",
)


def test_a_provider_lets_in_in_the_place_of_people() -> None:
    settings = load("--console-host=0.0.0.0", *PROVIDER)
    assert (settings.console_url, settings.console_oidc_issuer) == ("https://console.example", "https://id.example/")
    assert settings.console_oidc_viewer_groups == ("*",)


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--console-oidc-issuer=http://id.example", "console_oidc_issuer: must be a URL with https://"),
        ("--console-url=", "console_url: must be a URL with https://"),
        ("--console-url=http://console.example", "console_url: must be a URL with https://"),
        ("--console-url=https://console.example/here", "console_url: must be a scheme and a host"),
        ("--console-oidc-client-id=", "console_oidc_client_id: is needed"),
        ("--console-oidc-scopes=profile", "console_oidc_scopes: must have openid"),
    ],
)
def test_a_provider_that_could_let_in_nobody_or_anybody_is_refused(flag: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load(*PROVIDER, flag)


def test_a_provider_without_groups_is_refused_as_nobody_may_come_in() -> None:
    with pytest.raises(SettingsError, match="name groups, or nobody may come in"):
        load(*PROVIDER[:-1])
