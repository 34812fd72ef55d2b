"""The NATS servers that the chart renders: they answer their probes, reload, and keep edges and tenants apart."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from fakes.stores.nats_rendered import RenderedServers, rendered_servers, settings_of
from fakes.waiting import until
from headgate.common.bus.connection import Bus
from headgate.common.deltas import ClusterAnnouncement, Delta, Operation
from headgate.common.errors import NotPermitted
from headgate.common.heartbeats import Heartbeat
from headgate.common.resources import ObjectRef
from headgate.common.service.settings import ServiceSettings, load_settings
from headgate.common.snapshot import Version
from headgate.common.stores.nats import FOR_GATEWAYS, FOR_WATCHERS, NatsStores, Upkeep

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]
EDGE, TENANT = "rome", "team-a"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NEEDS = {"watcher": FOR_WATCHERS, "gateway": FOR_GATEWAYS}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def centre(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RenderedServers]:
    async with (
        rendered_servers("central", tmp_path_factory.mktemp("nats")) as servers,
        stores_of(servers, "central", "translator"),
    ):
        yield servers


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def leaf(centre: RenderedServers) -> AsyncIterator[RenderedServers]:
    async with rendered_servers("edge-leaf", centre.folder, hub=centre) as servers:
        yield servers


@asynccontextmanager
async def stores_of(servers: RenderedServers, mode: str, service: str) -> AsyncIterator[NatsStores]:
    """The stores, as a service with the settings of a mode finds them on these servers."""
    said = settings_of(mode, service)
    flags = [*servers.flags(said["HEADGATE_NATS_USER"])]
    if inbox := said.get("HEADGATE_NATS_INBOX"):
        flags.append(f"--nats-inbox={inbox}")
    settings = load_settings(ServiceSettings, flags, program="test", summary="")
    bus = await Bus.connect(settings.nats, name=service)
    upkeep, needs = Upkeep(makes_streams=service == "translator"), NEEDS.get(service)
    try:
        yield await (NatsStores.open(bus, upkeep=upkeep, needs=needs) if needs else NatsStores.open(bus, upkeep=upkeep))
    finally:
        await bus.close()


def delta(cluster: str) -> Delta:
    return Delta(
        ref=ObjectRef(cluster, "", "services", "default", "web"),
        operation=Operation.APPLY,
        uid="uid",
        resource_version="1",
        observed_at=NOW,
        object={"metadata": {"name": "web"}},
    )


def announcement(cluster: str) -> ClusterAnnouncement:
    return ClusterAnnouncement(cluster=cluster, source="kubernetes", instance="", kinds=(), announced_at=NOW)


async def until_listed(ask: Callable[[], Awaitable[Iterable[object]]], wanted: object) -> None:
    """Wait until an answer has it: a server that is asked may be behind the one that confirmed it."""
    async with asyncio.timeout(60):
        while wanted not in await ask():  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.05)


async def clusters(stores: NatsStores) -> list[str]:
    return [one.cluster for one in await stores.log_reader.announcements()]


async def replicas(stores: NatsStores) -> list[str]:
    return [one.replica for one in await stores.heartbeats.live()]


async def probed(servers: RenderedServers) -> None:
    """Wait until every probe of every pod is content."""
    kinds = ("startupProbe", "livenessProbe", "readinessProbe")
    paths = [servers.container[kind]["httpGet"]["path"] for kind in kinds]
    async with aiohttp.ClientSession() as session, asyncio.timeout(60):
        for port in servers.monitor_ports:
            for path in paths:
                while (await session.get(f"http://127.0.0.1:{port}{path}")).status != 200:  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0.05)


async def test_servers_answer_their_probes_and_read_their_configuration_again(
    centre: RenderedServers, leaf: RenderedServers
) -> None:
    for servers in (centre, leaf):
        await probed(servers)
        for server in servers.servers:
            await server.reload()
        await probed(servers)


async def test_one_server_of_everything_answers_and_reloads_too(tmp_path: Path) -> None:
    async with rendered_servers("all-in-one", tmp_path) as servers:
        await probed(servers)
        await servers.servers[0].reload()
        async with stores_of(servers, "all-in-one", "translator") as stores:
            assert await clusters(stores) == []


async def test_watchers_and_gateways_of_an_edge_work_through_its_servers(
    centre: RenderedServers, leaf: RenderedServers
) -> None:
    async with (
        stores_of(centre, "central", "translator") as theirs,
        stores_of(leaf, "edge-leaf", "watcher") as watcher,
        stores_of(leaf, "edge-leaf", "gateway") as gateway,
    ):
        await watcher.log_writer.announce(announcement(EDGE))
        await watcher.log_writer.append(delta(EDGE))
        await until_listed(lambda: clusters(theirs), EDGE)
        with pytest.raises(NotPermitted):
            await watcher.log_writer.append(delta("paris"))
        await gateway.heartbeats.beat(
            Heartbeat(replica="g", worker=0, table="default", version=Version(1, 1), addresses=(), at=NOW)
        )
        await until_listed(lambda: replicas(theirs), "g")
        assert await gateway.snapshots.read_pointer("default") is None


async def test_no_user_of_the_centre_is_one_at_an_edge(
    centre: RenderedServers, leaf: RenderedServers, caplog: pytest.LogCaptureFixture
) -> None:
    access = load_settings(ServiceSettings, leaf.flags("translator"), program="test", summary="").nats
    bus = await Bus.connect(access, name="test", wait_s=0.0)
    try:
        refused = "the user 'translator' or its password is refused"
        await until(lambda: refused in [getattr(record, "reason", "") for record in caplog.records])
        assert not bus.is_connected
    finally:
        await bus.close()


async def test_a_tenant_has_an_account_of_its_own(centre: RenderedServers) -> None:
    async with stores_of(centre, "tenant", "translator") as ours, stores_of(centre, "central", "translator") as theirs:
        async with stores_of(centre, "tenant", "watcher") as watcher, stores_of(centre, "tenant", "gateway") as gateway:
            await watcher.log_writer.announce(announcement(TENANT))
            await watcher.log_writer.append(delta(TENANT))
            assert await gateway.snapshots.read_pointer(TENANT) is None
        await until_listed(lambda: clusters(ours), TENANT)
        assert TENANT not in await clusters(theirs)
        assert not await theirs.log_writer.read_state(TENANT)
