"""Which processes `up` runs for which flags."""

from dataclasses import replace
from pathlib import Path

from headgate.cli.up.options import DemoBackend, UpOptions
from headgate.cli.up.plan import make_plan
from headgate.cli.up.process import ProcessSpec

OPTIONS = UpOptions(manifests=(Path("a"), Path("b")), data_dir=Path("/data"), workers=3, access_log="json")
BROKER = ProcessSpec("nats", ("nats-server",))
URL = "nats://127.0.0.1:4222"


def test_every_service_is_told_the_same_bus_and_data_directory() -> None:
    plan = make_plan(OPTIONS, URL, BROKER)
    for spec in (plan.watcher, plan.translator, plan.gateway):
        assert f"--nats-url={URL}" in spec.command
        assert "--data-dir=/data" in spec.command
        assert f"headgate.{spec.name}" in spec.command


def test_watcher_and_translator_get_an_admin_site_on_a_port_of_their_own_at_every_start() -> None:
    plan = make_plan(OPTIONS, URL, BROKER)
    for spec in (plan.watcher, plan.translator):
        host, port = spec.prepare()
        assert host == "--admin-host=127.0.0.1"
        assert plan.admin_ports[spec.name].url == f"http://127.0.0.1:{port.removeprefix('--admin-port=')}"


def test_all_folders_go_to_the_watcher() -> None:
    command = make_plan(OPTIONS, URL, BROKER).watcher.command
    assert {"--manifests=a", "--manifests=b", "--cluster=local"} <= set(command)


def test_a_kubeconfig_goes_to_the_watcher_with_its_context() -> None:
    options = UpOptions(kubeconfig=Path("/k"), context="staging")
    command = make_plan(options, URL, BROKER).watcher.command
    assert {"--kubeconfig=/k", "--context=staging"} <= set(command)


def test_the_gateway_gets_ports_workers_and_log() -> None:
    command = make_plan(OPTIONS, URL, BROKER).gateway.command
    wanted = {"--http-port=8080", "--https-port=8443", "--admin-port=9080", "--workers=3", "--access-log=json"}
    assert wanted <= set(command)


def test_backends_on_loopback_are_for_manifests_where_nothing_else_was_said() -> None:
    assert flags_with("destinations", OPTIONS) == ["--allowed-destinations=127.0.0.0/8,::1/128"]
    said = replace(OPTIONS, environment=frozenset({"HEADGATE_ALLOWED_DESTINATIONS"}))
    assert flags_with("destinations", said) == []
    assert flags_with("destinations", UpOptions(kubeconfig=Path("/k"))) == []


def test_answers_name_reasons_for_manifests_where_nothing_else_was_said() -> None:
    assert flags_with("errors", OPTIONS) == ["--detailed-errors"]
    assert flags_with("errors", replace(OPTIONS, environment=frozenset({"HEADGATE_DETAILED_ERRORS"}))) == []
    assert flags_with("errors", UpOptions(kubeconfig=Path("/k"))) == []


def flags_with(text: str, options: UpOptions) -> list[str]:
    return [flag for flag in make_plan(options, URL, BROKER).gateway.command if text in flag]


def test_one_that_is_the_only_one_waits_for_no_lease() -> None:
    plan = make_plan(OPTIONS, URL, BROKER)
    assert "--no-leader-election" in plan.translator.command
    assert "--no-leader-election" in plan.watcher.command


def test_the_gateway_ends_first_and_the_broker_last() -> None:
    options = UpOptions(manifests=(Path("a"),), demo_backends=(DemoBackend("red", 9101),))
    groups = [[spec.name for spec in group] for group in make_plan(options, URL, BROKER).stop_groups]
    assert groups == [["gateway"], ["watcher", "translator", "console", "red"], ["nats"]]


def test_an_existing_nats_server_is_not_started() -> None:
    assert make_plan(OPTIONS, URL, None).names == ["watcher", "translator", "gateway", "console"]


def test_the_console_asks_the_gateway_of_this_stack_and_can_be_left_out() -> None:
    console = make_plan(UpOptions(manifests=(Path("a"),), console_port=9191, admin_port=9292), URL, BROKER).console
    assert console is not None
    assert {"--console-port=9191", "--gateway-url=http://127.0.0.1:9292"} <= set(console.command)
    assert make_plan(UpOptions(manifests=(Path("a"),), console_port=0), URL, BROKER).console is None
