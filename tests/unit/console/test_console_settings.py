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
    with pytest.raises(SettingsError, match="give console_people_file, or console_open"):
        load("--console-host=0.0.0.0")
    assert load("--console-host=0.0.0.0", "--console-open").console_open


def test_a_gateway_is_a_url() -> None:
    with pytest.raises(SettingsError, match="must begin with http"):
        load("--gateway-url=127.0.0.1:9080")
    assert load("--gateway-url=http://gateways:9080/").gateway_url == "http://gateways:9080"
    assert not load("--gateway-url=").gateway_url
