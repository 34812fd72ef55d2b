"""`HEADGATE_*` variables that no service knows."""

import logging

import pytest

from headgate.common.service.service import run_service
from headgate.common.service.settings import ServiceSettings
from headgate.common.service.variables import SETTING_NAMES, unknown_variables
from headgate.console.settings import ConsoleSettings
from headgate.gateway.settings import GatewaySettings
from headgate.translator.settings import TranslatorSettings
from headgate.watcher.settings import WatcherSettings


def test_the_names_are_those_of_all_services() -> None:
    services = (ConsoleSettings, GatewaySettings, TranslatorSettings, WatcherSettings)
    assert {name for settings in services for name in settings.model_fields} == SETTING_NAMES


def test_a_misspelt_variable_is_named_with_the_nearest() -> None:
    told = unknown_variables(["HEADGATE_WORKER", "HEADGATE_WORKERS", "PATH"])
    assert told == "unknown variables, which are ignored: HEADGATE_WORKER (the nearest is HEADGATE_WORKERS)"


@pytest.mark.parametrize(
    "name",
    [
        "HEADGATE_SERVICE_HOST",
        "HEADGATE_NATS_SERVICE_PORT_CLIENT",
        "HEADGATE_GATEWAY_PORT",
        "HEADGATE_GATEWAY_PORT_8080_TCP_ADDR",
    ],
)
def test_links_to_services_are_told_as_such(name: str) -> None:
    assert unknown_variables([name]).endswith(
        f"{name}, which Kubernetes makes of Services (enableServiceLinks: false turns them off)"
    )


def test_many_links_are_one_line() -> None:
    told = unknown_variables([f"HEADGATE_GATEWAY_PORT_{port}_TCP" for port in range(80, 90)])
    assert "and 9 more" in told


@pytest.mark.parametrize("name", ["HEADGATE_HTTP_PORT", "HEADGATE_NATS_URL", "HEADGATE_ENGINE", "HOME"])
def test_known_ones_and_those_of_others_are_passed_over(name: str) -> None:
    assert unknown_variables([name]) == ""


def test_a_service_says_so_when_it_starts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    async def main(context: object) -> None:
        logging.getLogger().info("ran")

    monkeypatch.setenv("HEADGATE_NO_SUCH", "1")
    assert run_service("demo", ServiceSettings(), main) == 0
    assert "HEADGATE_NO_SUCH" in capsys.readouterr().err
