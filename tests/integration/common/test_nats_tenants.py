"""The accounts of `deploy/tenant/`: each role does its part for its tenant, and nothing of another tenant is there."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fakes.stores.nats_servers import NatsServer
from headgate.common.bus.access import NatsAccess
from headgate.common.bus.connection import Bus
from headgate.common.deltas import ClusterAnnouncement, Delta, Operation
from headgate.common.errors import NotPermitted, StoreUnavailable
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import Chunk, digest_of
from headgate.common.stores.nats import FOR_GATEWAYS, FOR_WATCHERS, NatsStores, Upkeep

DEPLOYED = Path(__file__).parents[3] / "deploy"
ROLES = ("watcher", "translator", "gateway", "reader", "operator", "admin")
ROOM = 100_000
"""Bytes that a tenant may store here."""
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CHUNK = Chunk("hosts", "", digest_of(b"content"), b"content")
NEEDS = {"watcher": FOR_WATCHERS, "gateway": FOR_GATEWAYS}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[NatsServer]:
    """A server on what the head of the file says to put together; TLS is another test's."""
    for source in (DEPLOYED / "tenant" / "accounts.conf", DEPLOYED / "nats" / "roles.conf"):
        (tmp_path / source.name).write_text(source.read_text().replace("max_file: 1G", f"max_file: {ROOM}"))
    watcher = (DEPLOYED / "nats" / "watcher-local.conf").read_text()
    users = ["SYSTEM"]
    for tenant in ("team-a", "team-b"):
        variable = tenant.upper().replace("-", "_")
        text = watcher.replace("local", tenant).replace("LOCAL", variable)
        (tmp_path / f"watcher-{tenant}.conf").write_text(text)
        users += [f"{role.upper()}_{variable}" for role in ROLES]
    (tmp_path / "passwords.conf").write_text("".join(f'{user}_PASSWORD: "of {user}"\n' for user in users))
    config = tmp_path / "nats.conf"
    config.write_text(f'jetstream {{ store_dir: "{tmp_path / "data"}" }}\ninclude "accounts.conf"\n')
    async with NatsServer(tmp_path / "server", config) as server:
        yield server


@asynccontextmanager
async def stores_of(server: NatsServer, role: str, tenant: str) -> AsyncIterator[NatsStores]:
    """The stores, as a service with the settings that the file names finds them."""
    user = f"{role}-{tenant}"
    access = NatsAccess(
        f"nats://127.0.0.1:{server.port}",
        user=user,
        password=f"of {user.upper().replace('-', '_')}",
        inbox=f"_INBOX.{user}" if role == "watcher" else f"_INBOX.{role}",
    )
    bus = await Bus.connect(access, name=user)
    try:
        upkeep = Upkeep(makes_streams=role == "translator")
        needs = NEEDS.get(role)
        yield await (NatsStores.open(bus, upkeep=upkeep, needs=needs) if needs else NatsStores.open(bus, upkeep=upkeep))
    finally:
        await bus.close()


def delta(cluster: str, name: str = "web", size: int = 0) -> Delta:
    return Delta(
        ref=ObjectRef(cluster, "", "services", cluster, name),
        operation=Operation.APPLY,
        uid=f"uid-{name}",
        resource_version="1",
        observed_at=NOW,
        object={"metadata": {"name": name, "annotations": {"long": "x" * size}}},
    )


async def test_nothing_of_a_tenant_is_there_for_another(server: NatsServer) -> None:
    async with stores_of(server, "translator", "team-a") as ours, stores_of(server, "translator", "team-b") as theirs:
        for tenant in ("team-a", "team-b"):
            async with stores_of(server, "watcher", tenant) as stores:
                await stores.log_writer.append(delta(tenant))
                await stores.log_writer.announce(
                    ClusterAnnouncement(cluster=tenant, source="kubernetes", instance="", kinds=(), announced_at=NOW)
                )
        assert [one.cluster for one in await ours.log_reader.announcements()] == ["team-a"]
        assert [one.cluster for one in await theirs.log_reader.announcements()] == ["team-b"]
        assert not await ours.log_writer.read_state("team-b")
        assert (await ours.log_reader.position()).last_sequence == 2
        await theirs.snapshots.put_chunks([CHUNK])
        assert await theirs.snapshots.missing([CHUNK.digest]) == set()
        assert await ours.snapshots.missing([CHUNK.digest]) == {CHUNK.digest}


async def test_a_role_is_narrowed_to_its_part_of_its_own_account(server: NatsServer) -> None:
    async with stores_of(server, "translator", "team-a"):
        async with stores_of(server, "gateway", "team-a") as gateway:
            assert await gateway.snapshots.read_pointer("team-a") is None
            with pytest.raises(NotPermitted):
                await gateway.snapshots.put_chunks([CHUNK])
        async with stores_of(server, "watcher", "team-a") as watcher:
            with pytest.raises(NotPermitted):
                await watcher.log_writer.append(delta("team-b"))
        async with stores_of(server, "reader", "team-a") as reader:
            assert await reader.log_reader.announcements() == []


async def test_a_tenant_whose_room_is_full_waits_and_keeps_nobody_from_writing(server: NatsServer) -> None:
    async with (
        stores_of(server, "translator", "team-a"),
        stores_of(server, "translator", "team-b"),
        stores_of(server, "watcher", "team-a") as ours,
        stores_of(server, "watcher", "team-b") as theirs,
    ):
        large = [delta("team-a", f"web-{number}", ROOM // 4) for number in range(8)]
        with pytest.raises(StoreUnavailable, match="limits exceeded"):
            _ = [await ours.log_writer.append(each) for each in large]
        with pytest.raises(StoreUnavailable, match="limits exceeded"):
            await ours.log_writer.append_all(large)
        await theirs.log_writer.append(delta("team-b"))
        assert await theirs.log_writer.read_state("team-b")
