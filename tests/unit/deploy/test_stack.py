"""The compose stack: what every service in compose.yaml has, its secrets, and what is said where Docker is missing."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.common.sealing import parse_public_key, read_private_key
from headgate.console.access.people import People

ROOT = Path(__file__).parents[3]
_spec = importlib.util.spec_from_file_location("stack_secrets", ROOT / "deploy" / "stack" / "fill_secrets.py")
assert _spec is not None
assert _spec.loader is not None
stack_secrets = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(stack_secrets)

COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
ONCE = {"secrets", "headgate"}
"""Services that end by themselves."""
ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010015AC\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t000015AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
"""
"""Of a container at 172.21.0.0/16."""


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_has_no_right_and_bounds(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(r"[1-9]\d*:\d+", service["user"])
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert {"mem_limit", "pids_limit", "security_opt", "restart"} <= service.keys()
    assert service["logging"]["options"].keys() == {"max-size", "max-file"}


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_that_stays_has_a_health_check_without_an_interpreter(name: str) -> None:
    check = SERVICES[name].get("healthcheck", {})
    if name in ONCE:
        assert check == {"disable": True}
    elif check:
        assert check["test"][0] == "CMD"
        assert check["test"][1] in {"healthcheck", "/tools/healthcheck", "redis-cli"}
    else:
        assert SERVICES[name]["image"].startswith("headgate/")  # It has that of its image.


@pytest.mark.parametrize("name", SERVICES)
def test_images_of_ours_are_built_and_others_have_a_full_version(name: str) -> None:
    service = SERVICES[name]
    if service["image"].startswith("headgate/"):
        assert (
            f"\nFROM {'headgate' if service['build']['target'] == 'stack' else 'service'} AS "
            in (ROOT / "Dockerfile").read_text()
        )
        assert service["image"].removeprefix("headgate/").split(":")[0] == service["build"]["target"]
    else:
        assert re.fullmatch(r".+:v?\d+\.\d+\.\d+", service["image"])


def test_every_file_that_is_mounted_is_in_the_repository() -> None:
    mounts = [each for service in SERVICES.values() for each in service.get("volumes", [])]
    sources = [re.sub(r"\$\{\w+:-(.*?)\}", r"\1", each).split(":")[0] for each in mounts]
    paths = [each for each in sources if each.startswith((".", "/"))]
    assert paths
    assert not [each for each in paths if each.startswith(".") and not (ROOT / each).exists()]


def test_no_subnet_is_fixed_and_only_the_entrance_is_open_to_others() -> None:
    assert not [name for name, network in COMPOSE["networks"].items() if network and "ipam" in network]
    ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert ports.pop("entrance") == [
        "${BIND:-127.0.0.1}:${HTTP_PORT:-8080}:8080",
        "${BIND:-127.0.0.1}:${HTTPS_PORT:-8443}:8443",
        "${BIND:-127.0.0.1}:${HTTPS_PORT:-8443}:8443/udp",
    ]
    assert all(each.startswith("127.0.0.1:") for published in ports.values() for each in published)


def test_what_needs_secrets_or_nats_waits_for_them() -> None:
    for name, service in SERVICES.items():
        waits = service.get("depends_on", {})
        if any(
            "secrets:" in each or each.startswith("tools:") for each in service.get("volumes", []) if name != "secrets"
        ):
            assert waits["secrets"] == {"condition": "service_completed_successfully"}, name
        if "HEADGATE_NATS_URL" in service.get("environment", {}):
            assert waits["nats"] == {"condition": "service_healthy"}, name


def test_nobody_but_its_service_mounts_a_volume_of_secrets() -> None:
    for volume in COMPOSE["volumes"]:
        if volume.endswith("-secrets"):
            found = [name for name, each in SERVICES.items() if f"{volume}:/run/secrets:ro" in each.get("volumes", [])]
            assert len(found) == (0 if volume == "all-secrets" else 1), volume


def test_services_get_longer_to_end_than_they_take() -> None:
    assert {
        SERVICES[name]["stop_grace_period"] for name in ("gateway", "watcher", "translator", "console", "entrance")
    } == {"25s"}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """The volumes as a first start fills them."""
    for each in SERVICES["secrets"]["volumes"]:
        (tmp_path / each.split(":/made/")[1]).mkdir()
    refill(tmp_path)
    return tmp_path


def refill(made: Path) -> None:
    sources = made.parent / "sources"
    sources.mkdir(exist_ok=True)
    shutil.copy(ROOT / "deploy" / "nats" / "watcher-local.conf", sources)
    shutil.copy(ROOT / "deploy" / "redis" / "users.conf", sources)
    stack_secrets.fill(made, sources, ROUTES)


def content(made: Path) -> dict[str, str]:
    return {str(path.relative_to(made)): path.read_text() for path in made.rglob("*") if path.is_file()}


def test_each_service_gets_its_own_passwords_and_no_others(made: Path) -> None:
    passwords = json.loads((made / "all" / "passwords.json").read_text())
    assert len(set(passwords.values())) == 13
    gateway = tomllib.loads((made / "gateway" / "settings.toml").read_text())
    assert gateway == {
        "nats_password": passwords["nats/gateway"],
        "store_password": passwords["redis/gateway"],
        "proxy_protocol_networks": ["172.21.0.0/16"],
    }
    watcher = tomllib.loads((made / "watcher-local" / "settings.toml").read_text())
    assert watcher == {"nats_password": passwords["nats/watcher-local"]}


def test_the_console_lets_in_who_has_the_token(made: Path) -> None:
    token = (made / "operator" / "token").read_text()
    person = People(made / "operator" / "people.toml").find(token)
    assert person is not None
    assert person.may_change
    settings = tomllib.loads((made / "operator" / "settings.toml").read_text())
    assert settings.keys() == {"nats_password", "store_password"}


def test_gateways_alone_have_the_private_key(made: Path) -> None:
    assert {path.parent.name for path in made.rglob("gateway.key")} == {"all", "gateway"}
    public = parse_public_key((made / "watcher-local" / "gateway.pub").read_text())
    assert bytes(public) == bytes(read_private_key(made / "gateway" / "gateway.key").public_key)


def test_nats_and_redis_know_every_password(made: Path) -> None:
    passwords = json.loads((made / "all" / "passwords.json").read_text())
    nats, redis = (made / "nats" / "passwords.conf").read_text(), (made / "redis" / "users.acl").read_text()
    assert f'WATCHER_KUBERNETES_PASSWORD: "{passwords["nats/watcher-kubernetes"]}"' in nats
    assert "headgate.delta.kubernetes.>" in (made / "nats" / "watcher-kubernetes.conf").read_text()
    assert [line.split()[1] for line in redis.splitlines()] == [
        "default",
        "translator",
        "gateway",
        "reader",
        "operator",
    ]
    assert f">{passwords['redis/reader']} " in redis


def test_a_second_start_changes_nothing_and_a_lost_volume_comes_back(made: Path) -> None:
    before = content(made)
    (made / "translator" / "settings.toml").unlink()
    refill(made)
    assert content(made) == before


@pytest.mark.parametrize("networks", [0, 2])
def test_the_network_of_the_entrance_has_to_be_the_only_one(networks: int) -> None:
    header, default, own = ROUTES.splitlines()
    rows = [own.replace("000015AC", f"0000{number}5AC") for number in range(networks)]
    with pytest.raises(ValueError, match=f"has to be in one network, and is in {networks}"):
        stack_secrets.attached_network("\n".join([header, default, *rows]))


def run_without(tmp_path: Path, *programs: str) -> subprocess.CompletedProcess[str]:
    """Run deploy/stack/compose where there are these programs, which fail, and no other one of Docker."""
    for name in ("bash", "dirname"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    for name in programs:
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    command = [str(ROOT / "deploy" / "stack" / "start")]
    return subprocess.run(
        command, env={**os.environ, "PATH": str(tmp_path)}, capture_output=True, text=True, timeout=20
    )


@pytest.mark.parametrize(
    ("here", "missing"),
    [((), "Docker's engine and compose are not installed"), (("docker",), "compose is not installed")],
)
def test_what_is_not_installed_is_named_in_one_line(tmp_path: Path, here: tuple[str, ...], missing: str) -> None:
    done = run_without(tmp_path, *here)
    assert done.returncode == 2
    assert done.stderr.startswith(f"stack: {missing}: docs/compose.md#install says how")
    assert done.stderr.count("\n") == 1


def test_an_engine_that_does_not_answer_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "docker-compose").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "docker-compose").chmod(0o755)
    done = run_without(tmp_path, "docker")
    assert (done.returncode, done.stderr) == (
        2,
        "stack: Docker's engine does not answer: start it, or join the group docker\n",
    )
