"""What a worker counted of routes that left its table."""

import asyncio
from types import SimpleNamespace

import pytest

from fakes.gateway.table import host, load, route
from headgate.common.sealing import Unsealer
from headgate.common.table_image import TableImage
from headgate.gateway.observability.rollout_watch import RolloutWatch
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.settings import GatewaySettings
from headgate.gateway.worker.upkeep import Upkeep
from headgate.gateway.worker.wiring import TableParts, make_table


async def no_page() -> object:
    raise NotImplementedError


class World:
    """A worker's table, its counters and its upkeep."""

    def __init__(self) -> None:
        self.table: TableParts = make_table(GatewaySettings(), Unsealer([]).open, no_page)
        self.stats = ProxyStats()
        self.upkeep = Upkeep(self.table, self.stats, RolloutWatch(self.stats, "g1"))
        self.image = TableImage()
        self.revision = 0

    def serve(self, *names: str) -> None:
        self.image = TableImage(host(name, route("/", name="r")) for name in names)
        self.revision += 1
        load(self.table.compiler, self.image, (1, self.revision))

    def count(self, *names: str) -> None:
        for name in names:
            self.stats.of_route(SimpleNamespace(name=f"{name}|r", upstream_label="up", traffic=None), "")

    @property
    def counted(self) -> set[str]:
        return {name for name, _ in self.stats.routes}


@pytest.fixture
async def world() -> World:
    return World()


async def test_what_was_counted_of_routes_goes_with_their_hosts(world: World) -> None:
    names = [f"{number}.com" for number in range(1000)]
    world.serve(*names)
    world.count(*names)
    world.serve(*names[:-2])
    await world.upkeep.forget_routes()
    assert world.counted == {f"{name}|r" for name in names[:-2]}


async def test_a_route_that_comes_back_while_they_are_looked_for_counts_on(world: World) -> None:
    names = [f"{number}.com" for number in range(1000)]
    world.count(*names)
    world.serve("1.com")
    looking = asyncio.create_task(world.upkeep.forget_routes())
    await asyncio.sleep(0)
    assert {"1.com|r", "999.com|r"} < world.counted < {f"{name}|r" for name in names}
    world.serve("1.com", "999.com")
    await looking
    assert world.counted == {"1.com|r", "999.com|r"}


async def test_nothing_is_forgotten_before_there_is_a_table(world: World) -> None:
    world.count("a.com")
    await world.upkeep.forget_routes()
    assert world.counted == {"a.com|r"}
