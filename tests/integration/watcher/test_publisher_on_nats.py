"""Publishing on a real NATS server, and the watcher's process as a whole."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from fakes.gateway.ports import free_ports
from fakes.gateway.tls import SelfSigned
from fakes.service_process import running_service
from fakes.stores.nats import lose_store, real_bus, real_nats
from fakes.translator.manifest_folder import service as manifest
from fakes.translator.publishing import ScriptedSource, service
from fakes.waiting import until
from headgate.common.bus.connection import Bus
from headgate.common.deltas import ClusterAnnouncement, Delta, LogMessage, Operation, SyncMarker
from headgate.common.resources import ALL_KINDS
from headgate.common.sealing import Purpose, SealedSecret, Unsealer, load_or_create_key_pair
from headgate.common.service.tasks import cancel, run_together
from headgate.common.stores import LogReplay
from headgate.common.stores.nats import NatsStores
from headgate.watcher.objects.secrets import throwaway_recipients
from headgate.watcher.publishing.publisher import DeltaPublisher


class Seen:
    """What a reader of the log has heard since its last replay."""

    def __init__(self) -> None:
        self.messages: list[LogMessage] = []

    async def follow(self, stores: NatsStores) -> None:
        async for batch in stores.log_reader.follow():
            if isinstance(batch, LogReplay):
                self.messages = []
            else:
                self.messages += batch

    @property
    def names(self) -> set[str]:
        """Objects that are there."""
        last = {message.ref: message.operation for message in self.messages if isinstance(message, Delta)}
        return {ref.name for ref, operation in last.items() if operation is Operation.APPLY}

    @property
    def markers(self) -> int:
        return sum(isinstance(message, SyncMarker) for message in self.messages)

    def delta(self, name: str) -> Delta:
        return next(one for one in reversed(self.messages) if isinstance(one, Delta) and one.ref.name == name)


@asynccontextmanager
async def at_work(bus: Bus) -> AsyncIterator[tuple[ScriptedSource, DeltaPublisher, Seen]]:
    stores, source, seen = await NatsStores.open(bus), ScriptedSource(), Seen()
    publisher = DeltaPublisher(
        source, stores.log_writer, "a", throwaway_recipients(), origin="kubernetes", log_reader=stores.log_reader
    )
    bus.on_reconnect(publisher.compare_with_log)
    task = asyncio.create_task(run_together(publisher.run(), seen.follow(stores)))
    try:
        yield source, publisher, seen
        assert not task.done(), task.result()
    finally:
        await cancel(task)


def names(count: int) -> set[str]:
    return {f"s{number}" for number in range(count)}


async def test_a_list_and_changes_reach_the_log_in_order() -> None:
    async with real_bus() as (_, bus), at_work(bus) as (source, publisher, seen):
        source.list(*(service(f"s{number}", "1") for number in range(300)))
        await until(lambda: seen.names == names(300) and seen.markers == 3)
        assert isinstance(seen.messages[0], ClusterAnnouncement)
        assert publisher.readiness() is None
        source.apply(service("x", "5"))
        source.delete(service("s0", "6"))
        await until(lambda: seen.names == names(300) - {"s0"} | {"x"})


async def test_a_restarted_publisher_publishes_the_difference_only() -> None:
    async with real_bus() as (_, bus):
        async with at_work(bus) as (source, _, seen):
            source.list(*(service(f"s{number}", "1") for number in range(20)))
            await until(lambda: seen.names == names(20))
        async with at_work(bus) as (source, publisher, seen):
            source.list(*(service(f"s{number}", "1") for number in range(1, 21)))
            await until(lambda: publisher.readiness() is None and seen.names == names(21) - {"s0"})
            unchanged = [one for one in seen.messages if isinstance(one, Delta) and one.ref.name == "s5"]
            assert len(unchanged) == 1


async def test_an_object_that_returns_to_what_it_was_within_seconds_is_published() -> None:
    async with real_bus() as (_, bus), at_work(bus) as (source, _, seen):
        for version, port in (("aa", 80), ("bb", 81), ("aa", 80), ("bb", 81)):
            source.apply(service("x", version, port))
            await until(lambda v=version: seen.names == {"x"} and seen.delta("x").resource_version == v)  # type: ignore[misc]
        source.delete(service("x", "bb", 81))
        await until(lambda: seen.names == set())
        source.apply(service("x", "bb", 81))
        await until(lambda: seen.names == {"x"})


async def test_a_lost_log_is_filled_again() -> None:
    async with real_bus() as (server, bus), at_work(bus) as (source, _, seen):
        source.list(*(service(f"s{number}", "1") for number in range(50)))
        await until(lambda: seen.names == names(50) and seen.markers == 3)
        await lose_store(server)
        source.apply(service("x", "2"))
        await until(lambda: seen.names == names(50) | {"x"} and seen.markers >= 3, within_s=30)


async def test_what_changes_during_an_outage_is_published_afterwards() -> None:
    async with real_bus() as (server, bus), at_work(bus) as (source, _, seen):
        source.list(service("s0", "1"), service("s1", "1"))
        await until(lambda: seen.names == names(2))
        await server.kill()
        for version in range(2, 30):
            source.apply(service("s0", str(version), port=version))
        source.delete(service("s1", "40"))
        source.apply(service("s2", "41"))
        await asyncio.sleep(0.3)
        await server.start()
        await until(lambda: seen.names == {"s0", "s2"} and seen.delta("s0").resource_version == "29", within_s=30)


async def test_two_publishers_of_one_cluster_do_no_harm() -> None:
    async with real_bus() as (_, bus), at_work(bus) as (one, _, seen), at_work(bus) as (other, _, _):
        for source in (one, other):
            source.list(*(service(f"s{number}", "1") for number in range(30)))
        await until(lambda: seen.names == names(30))
        for version in range(2, 20):
            for source in (one, other):
                source.apply(service("s0", str(version), port=version))
        await until(lambda: seen.delta("s0").resource_version == "19")
        versions = [int(m.resource_version) for m in seen.messages if isinstance(m, Delta) and m.ref.name == "s0"]
        assert versions == sorted(set(versions))


async def test_the_process_publishes_manifests_and_shows_their_problems(tmp_path: Path) -> None:
    folder, data, (port,) = tmp_path / "manifests", tmp_path / "data", free_ports(1)
    folder.mkdir()
    pair = SelfSigned("a.example")
    (folder / "a.yaml").write_text(manifest("x"))
    (folder / "tls.json").write_text(json.dumps(pair.secret("default", "tls")))
    (folder / "bad.yaml").write_text("kind: [\n")
    flags = (f"--manifests={folder}", f"--data-dir={data}", f"--admin-port={port}")
    async with (
        real_nats() as (_, url),
        running_service("watcher", *flags, f"--nats-url={url}", log=tmp_path / "log") as process,
    ):
        bus = await Bus.connect(url, name="test")
        stores, seen = await NatsStores.open(bus), Seen()
        following = asyncio.create_task(seen.follow(stores))
        try:
            await asyncio.sleep(0.1)
            key = load_or_create_key_pair(data)  # as a gateway does; the watcher waits for it
            await until(lambda: seen.names == {"x", "tls"} and seen.markers == len(ALL_KINDS.readable))
            sealed = SealedSecret.model_validate((seen.delta("tls").object or {})["sealed"])
            value = sealed.values["tls.key"].of("local")
            assert Unsealer([key]).open(value, Purpose.PRIVATE_KEY).reveal() == pair.key_pem
            (folder / "a.yaml").write_text(manifest("x", 81) + manifest("z"))
            await until(lambda: seen.names == {"x", "tls", "z"})
            await _check_admin_site(f"http://127.0.0.1:{port}")
            process.terminate()
            assert await process.wait() == 0
        finally:
            await cancel(following)
            await bus.close()


async def _check_admin_site(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{url}/readyz") as answer:
            assert answer.status == 200
        async with session.get(f"{url}/problems") as answer:
            (problem,) = (await answer.json())["problems"]
            assert problem["file"].endswith("/bad.yaml")
            assert problem["problem"]["reason"] == "InvalidSyntax"
        async with session.get(f"{url}/metrics") as answer:
            metrics = await answer.text()
            assert "headgate_manifest_problems 1.0" in metrics
            assert 'headgate_watcher_deltas_published_total{kind="services",operation="apply"}' in metrics
        async with asyncio.timeout(30):  # the last confirmation comes later than the delta
            while "headgate_watcher_unpublished 0.0" not in metrics:
                async with session.get(f"{url}/metrics") as answer:
                    metrics = await answer.text()
