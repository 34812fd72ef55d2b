"""From a table's policies to the choice of endpoints, over swaps."""

import asyncio
import contextlib
import itertools

import pytest
from prometheus_client import CollectorRegistry

from fakes.gateway.balanced import number, tally
from fakes.gateway.table import FakePools, endpoint, host, load, publish, route, upstream
from fakes.stores.chunks import StoredChunks
from fakes.virtual_time import in_virtual_time
from headgate.common.sealing import Unsealer
from headgate.common.table import ActiveCheck, Ejection, Upstream
from headgate.common.table_image import TableImage
from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.balancing.upstream import UpstreamBalancer
from headgate.gateway.following.apply import TableApplier
from headgate.gateway.health.stats import HealthStats
from headgate.gateway.health.target import CheckTarget
from headgate.gateway.health.upstreams import UpstreamHealth
from headgate.gateway.observability.metrics import TableMetrics
from headgate.gateway.table.compiler import TableCompiler
from headgate.gateway.table.port_routers import PortRouters

EJECT_AT_ONCE = Ejection(consecutive_errors=1, base_s=30)
CHECK = ActiveCheck(interval_s=1, unhealthy_after=1, healthy_after=1)


class World:
    """A compiler whose upstreams are watched; endpoints in `down` fail their checks."""

    def __init__(self) -> None:
        self.down: set[str] = set()
        self.probes = 0
        self.health = UpstreamHealth(HealthStats(), self.probe)
        directory = EndpointDirectory(FakePools(), asyncio.get_running_loop().time)  # type: ignore[arg-type]
        self.compiler = TableCompiler(directory, Unsealer([]).open, health=self.health)
        self.revision = 0

    async def probe(self, target: CheckTarget) -> str | None:
        self.probes += 1
        return "down" if target.address in self.down else None

    def serve(self, *upstreams: Upstream) -> None:
        self.revision += 1
        keys = tuple(entry.key for entry in upstreams)
        load(self.compiler, TableImage([host("h", route("/", "prefix", *keys)), *upstreams]), (1, self.revision))

    def balancer(self, key: str = "up") -> UpstreamBalancer:
        return dict(self.compiler.upstreams.compiled())[key].balancer


def watched(key: str, *numbers: int, ejection: Ejection | None = None, check: ActiveCheck | None = None) -> Upstream:
    entry = upstream(key, *map(endpoint, numbers))
    return entry.model_copy(update={"ejection": ejection, "active_check": check})


@in_virtual_time
async def test_an_ejected_endpoint_gets_nothing_until_its_time_is_over_whatever_is_swapped() -> None:
    world = World()
    world.serve(watched("up", 1, 2, 3, ejection=EJECT_AT_ONCE))
    bad = next(slot for slot in world.balancer().slots if number(slot) == 2)
    world.health.state("up").report(bad, 503)
    assert set(tally(world.balancer(), 30)) == {1, 3}
    world.serve(watched("up", 1, 2, 3, 4, ejection=EJECT_AT_ONCE))
    assert set(tally(world.balancer(), 30)) == {1, 3, 4}
    await asyncio.sleep(31)
    assert set(tally(world.balancer(), 30)) == {1, 2, 3, 4}
    await world.health.close()


@in_virtual_time
async def test_an_unhealthy_endpoint_is_left_out_by_the_upstream_that_checks_it_only() -> None:
    world = World()
    world.serve(watched("up", 1, 2, 3, check=CHECK), watched("plain", 1, 2, 3))
    world.down.add("10.0.0.1")
    await asyncio.sleep(3)
    assert set(tally(world.balancer("up"), 30)) == {2, 3}
    assert set(tally(world.balancer("plain"), 30)) == {1, 2, 3}
    world.down.clear()
    await asyncio.sleep(3)
    assert set(tally(world.balancer("up"), 30)) == {1, 2, 3}
    await world.health.close()


@in_virtual_time
async def test_an_upstream_that_leaves_the_table_takes_its_checks_along() -> None:
    world = World()
    world.serve(watched("up", 1, check=CHECK), watched("other", 2, check=CHECK))
    assert len(world.health) == 2
    await asyncio.sleep(10)
    world.serve(watched("other", 2))
    assert len(world.health) == 1
    probes = world.probes
    await asyncio.sleep(10)
    assert world.probes == probes > 0
    await world.health.close()


MANY = 300


def many_watched() -> TableImage:
    return TableImage(watched(f"up{number}", 1, 2, check=CHECK) for number in range(MANY))


@in_virtual_time
async def test_watching_many_upstreams_is_begun_in_steps_after_the_swap() -> None:
    world = World()
    manifest, chunks = publish(many_watched(), (1, 1))
    update = world.compiler.stage(manifest.version, manifest.chunks)
    for name, chunk in zip(manifest.chunks, chunks, strict=True):
        list(update.add(name, chunk.content))
    update.commit()
    begun = [len(world.health)]
    begun.extend(len(world.health) for _ in update.settling)
    assert 0 < begun[0] < MANY / 5
    assert max(after - before for before, after in itertools.pairwise(begun)) < MANY / 5
    assert len(world.health) == MANY
    world.serve(watched("up0", 1, check=CHECK))
    assert len(world.health) == 1
    await world.health.close()


@pytest.mark.parametrize("is_cancelled", [False, True])
@in_virtual_time
async def test_all_upstreams_of_a_swap_are_watched_even_if_the_gateway_is_told_to_stop(is_cancelled: bool) -> None:
    world = World()
    manifest, chunks = publish(many_watched(), (1, 1))
    metrics = TableMetrics(CollectorRegistry())
    applier = TableApplier(world.compiler, PortRouters().swap, metrics, lambda arrived, gone: None)
    applying = asyncio.create_task(applier.apply(manifest, StoredChunks(chunks).get_chunks))
    while applier.manifest is None:  # noqa: ASYNC110 - an ordinary attribute
        await asyncio.sleep(0)
    assert len(world.health) < MANY
    if is_cancelled:
        applying.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await applying
    assert applying.cancelled() is is_cancelled
    assert len(world.health) == MANY
    await world.health.close()
