"""Settings, roles, merged metrics, heartbeats and background work of the gateway's process."""

import asyncio
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from fakes.waiting import until
from headgate.common.errors import SettingsError, StoreUnavailable
from headgate.common.heartbeats import Heartbeat
from headgate.common.service.settings import load_settings
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import Version
from headgate.common.stores.memory.boards import MemoryHeartbeatBoard
from headgate.gateway.net.reserved_port import reserve_port
from headgate.gateway.processes.fleet_site import MergedMetrics
from headgate.gateway.role import WorkerRole, role_of_this_process
from headgate.gateway.settings import GatewaySettings
from headgate.gateway.worker.endure import endure
from headgate.gateway.worker.heartbeat import Announcer


def settings(*flags: str) -> GatewaySettings:
    return load_settings(GatewaySettings, flags, program="headgate gateway", summary="")


def test_proxy_gets_the_timeouts_that_were_set() -> None:
    config = settings("--read-timeout-s=7", "--max-body=1000", "--trust-forwarded").proxy_config()
    assert (config.read_timeout_s, config.max_body, config.trust_forwarded) == (7, 1000, True)


def test_every_setting_says_where_its_default_comes_from() -> None:
    assert all(field.description for field in GatewaySettings.model_fields.values())


def test_draining_leaves_time_to_close_within_the_grace_period() -> None:
    assert settings("--grace-s=30", "--drain-delay-s=5").drain_s == 24
    assert settings("--grace-s=2", "--drain-delay-s=5").drain_s == 0


def test_tables_have_files_of_their_own_and_names_that_can_be_such() -> None:
    paths = {settings(f"--table={name}", "--data-dir=/data").last_good_path for name in ("default", "tenant-a")}
    assert paths == {Path("/data/table-default.last-good"), Path("/data/table-tenant-a.last-good")}
    with pytest.raises(SettingsError, match=r"table: .*such as tenant-a"):
        settings("--table=a/../b")


def test_shards_of_a_table_have_files_of_their_own() -> None:
    paths = {
        settings(f"--shard={shard}", "--data-dir=/data").last_good_path.name for shard in ("", "0/4", "1/4", "1/8")
    }
    assert len(paths) == 4
    assert "table-default.shard-1-of-4.last-good" in paths
    assert settings("--shard=0/1").last_good_path.name == "table-default.last-good"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("4/4", "shard: '4/4': has no such number; numbers begin at 0, the last is 3"),
        ("1/3", "shard: '1/3': has 3 shards; the count is a power of two"),
        ("1", "shard: '1': is no shard; write its number, a slash and how many there are"),
    ],
)
def test_a_shard_that_there_is_not_is_refused(value: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        settings(f"--shard={value}")


@pytest.mark.parametrize("value", ["http://lb", "LB.example", "1.2.3", "a b"])
def test_an_address_that_no_status_takes_is_refused(value: str) -> None:
    with pytest.raises(SettingsError, match=r"publish_addresses.*neither an IP address nor a DNS name"):
        settings(f"--publish-addresses={value}")


@pytest.mark.parametrize("value", ["West", "a b", "a/b"])
def test_a_cluster_that_no_watcher_could_be_of_is_refused(value: str) -> None:
    with pytest.raises(SettingsError, match=r"cluster: .*such as paris-1 \(--cluster, HEADGATE_CLUSTER"):
        settings(f"--cluster={value}")


def test_addresses_and_names_may_be_announced() -> None:
    found = settings("--publish-addresses=192.0.2.1,lb.example", "--publish-addresses=2001:db8::1")
    assert found.publish_addresses == ("192.0.2.1", "lb.example", "2001:db8::1")


def test_a_port_out_of_range_is_named() -> None:
    with pytest.raises(SettingsError, match="http_port"):
        settings("--http-port=70000")


def test_a_role_survives_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert role_of_this_process() is None
    role = WorkerRole(index=3, http_port=8080, admin_socket=Path("/tmp/x.sock"))
    for name, value in role.environment({}).items():
        monkeypatch.setenv(name, value)
    assert role_of_this_process() == role
    assert not role.is_alone
    assert not role.writes_last_good


def test_merged_metrics_tell_workers_apart_and_name_each_family_once() -> None:
    text = '# HELP requests_total Requests.\n# TYPE requests_total counter\nrequests_total{code="200"} %d\n'
    registry = CollectorRegistry(auto_describe=False)
    registry.register(MergedMetrics([("0", text % 3), ("1", text % 4), ("2", "")]))
    merged = generate_latest(registry).decode()
    assert merged.count("# TYPE") == 1
    (family,) = text_string_to_metric_families(merged)
    assert {sample.labels["worker"]: sample.value for sample in family.samples} == {"0": 3, "1": 4}


def test_a_port_that_somebody_listens_on_is_refused_though_shared() -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as other:
        port = other.getsockname()[1]
        with (
            pytest.raises(SettingsError, match=f"http_port: {port} cannot be bound"),
            reserve_port("http_port", "127.0.0.1", port),
        ):
            pass


def test_a_reserved_port_can_be_shared_by_workers() -> None:
    with (
        reserve_port("http_port", "127.0.0.1", 0) as port,
        socket.create_server(("127.0.0.1", port), reuse_port=True),
        socket.create_server(("127.0.0.1", port), reuse_port=True),
        socket.create_connection(("127.0.0.1", port)),
    ):
        pass


def beat(revision: int = 1) -> Heartbeat:
    return Heartbeat(replica="g", worker=0, table="default", version=Version(1, revision), at=datetime.now(UTC))


async def announced(board: MemoryHeartbeatBoard, revision: int) -> None:
    async def is_there() -> bool:
        return [beat.version for beat in await board.live()] == [Version(1, revision)]

    await until(is_there)


async def test_a_new_revision_is_announced_without_waiting_for_the_interval() -> None:
    board, revision = MemoryHeartbeatBoard(), 1
    announcer = Announcer(lambda: beat(revision), interval_s=3600)
    task = asyncio.create_task(announcer.run(board))
    try:
        async with asyncio.timeout(5):
            await announced(board, 1)
            revision = 2
            announcer.announce_soon()
            await announced(board, 2)
    finally:
        await cancel(task)


async def test_many_revisions_at_once_are_few_announcements() -> None:
    class Counting(MemoryHeartbeatBoard):
        beats = 0

        async def beat(self, heartbeat: Heartbeat) -> None:
            self.beats += 1
            await super().beat(heartbeat)

    board, revision = Counting(), 1
    announcer = Announcer(lambda: beat(revision), interval_s=3600)
    task = asyncio.create_task(announcer.run(board))
    try:
        async with asyncio.timeout(5):
            await announced(board, 1)
            while revision < 29:
                revision += 1
                announcer.announce_soon()
                await asyncio.sleep(0)
            await announced(board, 29)
    finally:
        await cancel(task)
    assert board.beats == 2


async def test_announcing_goes_on_when_the_board_is_away() -> None:
    class Away(MemoryHeartbeatBoard):
        tries = 0

        async def beat(self, heartbeat: Heartbeat) -> None:
            self.tries += 1
            if self.tries < 3:
                raise StoreUnavailable("away")
            await super().beat(heartbeat)

    board = Away()
    task = asyncio.create_task(Announcer(beat, interval_s=0.001).run(board))
    try:
        async with asyncio.timeout(5):
            await announced(board, 1)
    finally:
        await cancel(task)


async def test_failing_background_work_is_logged_and_begun_again(caplog: pytest.LogCaptureFixture) -> None:
    third_try = asyncio.Event()
    tries = 0

    async def fail() -> None:
        nonlocal tries
        tries += 1
        if tries == 3:
            third_try.set()
        raise ValueError("odd")

    task = asyncio.create_task(endure("odd work", fail, pause_s=0))
    await asyncio.wait_for(third_try.wait(), 5)
    await cancel(task)
    assert "background work failed" in caplog.text


def test_networks_that_routes_must_not_reach_can_be_named_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "127.0.0.0/8" in settings().denied_destinations
    assert settings("--denied-destinations=10.0.0.0/8,::1").denied_destinations == ("10.0.0.0/8", "::1")
    with pytest.raises(SettingsError, match="allowed_destinations"):
        settings("--allowed-destinations=localhost")
    monkeypatch.setenv("HEADGATE_DENIED_DESTINATIONS", "")
    assert settings().denied_destinations == ()
