"""Leases in a cluster: what the API server is sent, and what its answers mean."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from fakes.kubernetes.api import FakeKubernetes
from fakes.waiting import until
from headgate.common.errors import NotPermitted, StoreUnavailable
from headgate.common.leadership.election import Timing
from headgate.common.leadership.leadership import Elector
from headgate.common.leadership.leases import Lease
from headgate.common.service.tasks import cancel
from headgate.watcher.api.lease import KubernetesLeaseBoard
from headgate.watcher.api.transport import KubernetesTransport

NAME = "headgate-watcher-east"
AT = datetime(2026, 3, 1, 12, 30, 15, 250, tzinfo=UTC)
FAST = Timing(1.0, 0.6, 0.1)


class Cluster(NamedTuple):
    api: FakeKubernetes
    leases: KubernetesLeaseBoard


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with opened(tmp_path) as found:
        yield found


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Cluster]:
    async with FakeKubernetes() as api:
        transport = KubernetesTransport(api.write_kubeconfig(folder / "config"))
        try:
            yield Cluster(api, KubernetesLeaseBoard(transport, "headgate"))
        finally:
            await transport.close()


def lease(holder: str = "one", seconds: float = 0.0, duration_s: float = 6.0) -> Lease:
    at = AT + timedelta(seconds=seconds)
    return Lease(holder=holder, duration_s=duration_s, acquired_at=AT, renewed_at=at, transitions=2)


async def test_a_lease_looks_as_that_of_any_controller(cluster: Cluster) -> None:
    await cluster.leases.write(NAME, lease(seconds=1.5, duration_s=5.2), None)
    assert cluster.api.get("leases", NAME, "headgate")["spec"] == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 6,
        "acquireTime": "2026-03-01T12:30:15.000250Z",
        "renewTime": "2026-03-01T12:30:16.500250Z",
        "leaseTransitions": 2,
    }


async def test_a_renewal_leaves_alone_what_others_wrote(cluster: Cluster) -> None:
    await cluster.leases.write(NAME, lease(), None)
    made = cluster.api.get("leases", NAME, "headgate")
    made["metadata"]["labels"] = {"team": "edge"}
    cluster.api.apply(made)
    found = await cluster.leases.read(NAME)
    assert found is not None
    await cluster.leases.write(NAME, lease(seconds=2), found.version)
    assert cluster.api.get("leases", NAME, "headgate")["metadata"]["labels"] == {"team": "edge"}


async def test_a_lease_made_by_hand_is_free(cluster: Cluster) -> None:
    metadata = {"name": NAME, "namespace": "headgate"}
    cluster.api.apply({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {}})
    found = await cluster.leases.read(NAME)
    assert found is not None
    assert found.lease.holder == ""
    assert (await cluster.leases.write(NAME, lease(), found.version)).lease == lease()


async def test_a_missing_right_is_told_with_what_would_be_right(cluster: Cluster) -> None:
    cluster.api.forbid("leases")
    with pytest.raises(NotPermitted, match="a Role needs get, create and patch of leases"):
        await cluster.leases.read(NAME)


async def test_a_cluster_without_leases_is_one_where_none_may_be_had(cluster: Cluster) -> None:
    cluster.api.uninstall("coordination.k8s.io/v1")
    assert await cluster.leases.read(NAME) is None
    with pytest.raises(NotPermitted, match="no Leases in namespace headgate"):
        await cluster.leases.write(NAME, lease(), None)


async def test_an_api_server_that_is_away_is_a_store_that_is_away(cluster: Cluster) -> None:
    await cluster.api.stop()
    with pytest.raises(StoreUnavailable):
        await cluster.leases.read(NAME)


async def test_two_watchers_of_a_cluster_take_turns(cluster: Cluster) -> None:
    one, other = (Elector(cluster.leases, NAME, name, FAST) for name in ("one", "other"))
    first, second = asyncio.create_task(one.run()), asyncio.create_task(other.run())
    try:
        await until(lambda: one.is_leader or other.is_leader)
        async with asyncio.timeout(10):
            leader, follower = (one, other) if one.is_leader else (other, one)
            assert not follower.is_leader
            await cancel(first if leader is one else second)
            await leader.release()
            await follower.until_leading()
    finally:
        await cancel(first, second)
    assert cluster.api.get("leases", NAME, "headgate")["spec"]["leaseTransitions"] == 1
