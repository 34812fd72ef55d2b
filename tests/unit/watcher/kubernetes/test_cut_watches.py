"""Watches that are cut go on where they were, if the server still has the history that was followed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.following import Following
from fakes.kubernetes.objects import ingress
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.errors import Conflict
from headgate.common.leadership.leases import Lease
from headgate.common.resources import INGRESS
from headgate.watcher.api.lease import KubernetesLeaseBoard
from headgate.watcher.sources.kubernetes.source import KubernetesSource

AT = datetime(2026, 3, 1, tzinfo=UTC)
LEASE = Lease(holder="one", duration_s=6.0, acquired_at=AT, renewed_at=AT, transitions=0)


@asynccontextmanager
async def followed(tmp_path: Path) -> AsyncIterator[tuple[FakeKubernetes, Following, KubernetesLeaseBoard]]:
    """Two Ingresses whose list is followed, and Leases in the same cluster."""
    async with FakeKubernetes() as api:
        api.apply(ingress("a"))
        api.apply(ingress("b"))
        source = KubernetesSource(
            kubeconfig=api.write_kubeconfig(tmp_path / "config"), choices=[(INGRESS,)], rng=Random(7)
        )
        board = KubernetesLeaseBoard(source.transport, "headgate")
        source.chain = board.chain
        async with Following(source) as seen:
            await seen.until(lambda: seen.names(INGRESS) == {"a", "b"} and api.open_watches == 1)
            yield api, seen, board


async def cut(api: FakeKubernetes) -> None:
    api.break_watches("reset")
    await until(lambda: api.open_watches == 0)


def lists(api: FakeKubernetes) -> int:
    """Lists of everything; what asks for one object is none."""
    return sum("fieldSelector" not in seen.query for seen in api.seen("list"))


@in_virtual_time
async def test_after_an_event_a_cut_watch_goes_on(tmp_path: Path) -> None:
    async with followed(tmp_path) as (api, seen, _):
        api.apply(ingress("c"))
        await seen.until(lambda: "c" in seen.names(INGRESS))
        before = lists(api)
        await cut(api)
        api.apply(ingress("d"))
        api.delete("ingresses", "a")
        await seen.until(lambda: seen.names(INGRESS) == {"b", "c", "d"})
        assert lists(api) == before


@in_virtual_time
async def test_one_whose_last_object_changed_meanwhile_is_listed(tmp_path: Path) -> None:
    async with followed(tmp_path) as (api, seen, _):
        api.apply(ingress("c"))
        await seen.until(lambda: "c" in seen.names(INGRESS))
        before = lists(api)
        await cut(api)
        api.apply(ingress("c", "other.test"))
        await seen.until(lambda: lists(api) == before + 1)
        await seen.until(lambda: seen.state[INGRESS]["default", "c"]["spec"]["rules"][0]["host"] == "other.test")


@in_virtual_time
async def test_one_after_a_deletion_is_listed(tmp_path: Path) -> None:
    async with followed(tmp_path) as (api, seen, _):
        api.delete("ingresses", "a")
        await seen.until(lambda: seen.names(INGRESS) == {"b"})
        before = lists(api)
        await cut(api)
        await seen.until(lambda: lists(api) == before + 1)


@pytest.mark.parametrize("later", [0, 20])
@in_virtual_time
async def test_a_store_from_a_backup_is_listed_however_far_it_has_counted_on(later: int, tmp_path: Path) -> None:
    async with followed(tmp_path) as (api, seen, _):
        backup = api.backup()
        api.apply(ingress("lost"))
        await seen.until(lambda: "lost" in seen.names(INGRESS))
        api.restore(backup)
        for number in range(later):
            api.apply(ingress(f"new-{number % 3}", f"{number}.test"))
        expected = {"a", "b"} | {f"new-{number % 3}" for number in range(later)}
        await seen.until(lambda: seen.names(INGRESS) == expected)


@in_virtual_time
async def test_a_quiet_kind_goes_on_by_the_lease_that_was_renewed_since(tmp_path: Path) -> None:
    async with followed(tmp_path) as (api, seen, board):
        stored = await board.write("watcher", LEASE, None)
        await cut(api)  # a list is all that was seen, and there was no Lease before it
        await seen.until(lambda: api.open_watches == 1)
        before = lists(api)
        stored = await board.write("watcher", LEASE, stored.version)
        await cut(api)
        api.delete("ingresses", "a")
        await seen.until(lambda: seen.names(INGRESS) == {"b"})
        assert lists(api) == before


@in_virtual_time
async def test_a_lease_that_another_one_wrote_proves_nothing(tmp_path: Path) -> None:
    async with followed(tmp_path) as (api, seen, board):
        stored = await board.write("watcher", LEASE, None)
        await cut(api)
        await seen.until(lambda: api.open_watches == 1)
        before, other = lists(api), KubernetesLeaseBoard(seen.source.transport, "headgate")  # type: ignore[attr-defined]
        await other.write("watcher", LEASE, stored.version)
        await cut(api)
        await seen.until(lambda: lists(api) == before + 1)


@in_virtual_time
async def test_a_lease_of_a_store_from_a_backup_proves_nothing(tmp_path: Path) -> None:
    async with followed(tmp_path) as (api, seen, board):
        stored = await board.write("watcher", LEASE, None)
        backup = api.backup()
        api.delete("ingresses", "a")
        await seen.until(lambda: seen.names(INGRESS) == {"b"})
        lost = await board.write("watcher", LEASE, stored.version)
        api.restore(backup)
        for number in range(20):
            api.apply(ingress("c", f"{number}.test"))
        with pytest.raises(Conflict):
            await board.write("watcher", LEASE, lost.version)
        await board.write("watcher", LEASE, stored.version)
        await seen.until(lambda: seen.names(INGRESS) == {"a", "b", "c"})


@in_virtual_time
async def test_a_server_that_is_away_is_asked_for_the_proof_when_it_is_back(tmp_path: Path) -> None:
    async with followed(tmp_path) as (api, seen, _):
        api.apply(ingress("c"))
        await seen.until(lambda: "c" in seen.names(INGRESS))
        before = lists(api)
        await api.stop()
        await asyncio.sleep(3)
        await api.start()
        api.apply(ingress("d"))
        await seen.until(lambda: "d" in seen.names(INGRESS), within_s=60)
        assert lists(api) == before
