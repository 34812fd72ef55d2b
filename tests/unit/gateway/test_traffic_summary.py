"""What a worker tells of its traffic."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from fakes.virtual_time import in_virtual_time
from headgate.common.errors import StoreUnavailable
from headgate.common.service.tasks import cancel
from headgate.common.stores import TrafficBoard
from headgate.common.stores.memory.boards import MemoryTrafficBoard
from headgate.common.traffic import MAX_ROWS, Counts, Tap, TrafficSummary
from headgate.gateway.observability.tapping import Tapping
from headgate.gateway.observability.traffic_summary import MAX_TOLD, TrafficTeller
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.proxy.traffic import EndpointTraffic, RouteTraffic, Traffic

NOTES = SimpleNamespace(attempts=None, scheme=b"http")


class Telling(MemoryTrafficBoard):
    """A board that keeps what was told, unless it is away."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[TrafficSummary] = []
        self.is_away = False

    async def tell(self, summary: TrafficSummary) -> None:
        if self.is_away:
            raise StoreUnavailable("away")
        self.heard.append(summary)


@asynccontextmanager
async def telling(
    routes: list[Traffic], endpoints: list[Traffic], tapping: Tapping | None = None
) -> AsyncIterator[Telling]:
    board = Telling()
    as_board: TrafficBoard = board
    running = asyncio.create_task(TrafficTeller("default", "gw", 1, routes, endpoints, tapping).run(as_board))
    try:
        yield board
    finally:
        await cancel(running)


def route(name: str, news: list[Traffic]) -> RouteTraffic:
    made = RouteTraffic(name, "up")
    made.tell_by(news)
    return made


def test_news_are_what_was_counted_since() -> None:
    traffic = Traffic()
    traffic.tell_by([])
    for status in (200, 200, 204, 302, 404, 503, 0, 999):
        traffic.count(status, 3, 0.5, 1, 10)
    assert traffic.take_news() == Counts((1, 0, 3, 1, 1, 2), 8, 80, 4.0, {3: 8})
    traffic.count(503, 4, 0.25, 0, 0)
    assert traffic.take_news() == Counts((0, 0, 0, 0, 0, 1), 0, 0, 0.25, {4: 1})
    assert traffic.take_news() == Counts()


def test_counts_that_begin_again_are_told_from_there() -> None:
    traffic = RouteTraffic("a|r", "up", RouteTraffic("other", ""))
    traffic.count(200, 3, 0.5, 1, 10)
    traffic.take_news()
    traffic.show_with(None)
    traffic.count(200, 3, 0.5, 1, 10)
    assert traffic.take_news().requests == 1


@in_virtual_time
async def test_the_first_request_of_a_wish_is_told_at_once_and_further_ones_each_second() -> None:
    routes, stats = list[Traffic](), ProxyStats()
    traffic, tapping = route("a|r", routes), Tapping(stats)

    def finish() -> None:
        traffic.count(200, 3, 0.5, 1, 10)
        record: Any = (b"", b"192.0.2.1", b"GET", b"/", b"1.1", 200, 5, 0.1, None, b"id", "a|r", "up", "e", NOTES, "")
        assert stats.tap is not None
        stats.tap(record, b"a.example")

    async with telling(routes, [], tapping) as board:
        for number, name in enumerate(("one", "another")):
            tapping.heed(Tap(name))
            await asyncio.sleep(0.2)
            finish()
            await asyncio.sleep(0.1)
            assert [len(told.tapped) for told in board.heard] == [1, 1][: number + 1]
            assert 0.2 < board.heard[-1].seconds < 0.4
        finish()
        await asyncio.sleep(0.9)
        assert len(board.heard) == 2
        await asyncio.sleep(0.2)
        assert sum(row.counts.requests for told in board.heard for row in told.routes) == 3


@in_virtual_time
async def test_each_second_with_traffic_is_told_once() -> None:
    routes, endpoints = list[Traffic](), list[Traffic]()
    traffic, endpoint = route("a|r", routes), EndpointTraffic("10.0.0.1:80")
    endpoint.tell_by(endpoints)
    async with telling(routes, endpoints) as board:
        await asyncio.sleep(3)
        assert board.heard == []
        for _ in range(2):
            traffic.count(200, 3, 0.5, 1, 10)
            endpoint.count(200, 3, 0.5, 1, 10)
        await asyncio.sleep(3)
        [told] = board.heard
        assert (told.table, told.replica, told.worker) == ("default", "gw", 1)
        assert [(row.route, row.upstream, row.counts.requests) for row in told.routes] == [("a|r", "up", 2)]
        assert [(row.endpoint, row.counts.requests) for row in told.endpoints] == [("10.0.0.1:80", 2)]
        traffic.count(200, 3, 0.5, 1, 10)
        await asyncio.sleep(1)
        assert [row.counts.requests for row in board.heard[1].routes] == [1]


@in_virtual_time
async def test_what_cannot_be_told_is_forgotten() -> None:
    routes: list[Traffic] = []
    traffic = route("a|r", routes)
    async with telling(routes, []) as board:
        board.is_away = True
        traffic.count(200, 3, 0.5, 1, 10)
        await asyncio.sleep(2)
        board.is_away = False
        traffic.count(200, 3, 0.5, 1, 10)
        await asyncio.sleep(2)
        assert [row.counts.requests for told in board.heard for row in told.routes] == [1]


@in_virtual_time
async def test_of_many_routes_the_busiest_are_told_apart_and_none_is_lost() -> None:
    routes: list[Traffic] = []
    many = [route(f"a|{number}", routes) for number in range(MAX_TOLD + 100)]
    for number, traffic in enumerate(many):
        for _ in range(1 + (number < 7)):
            traffic.count(200, 3, 0.5, 1, 10)
    async with telling(routes, []) as board:
        await asyncio.sleep(4)
    first, second = board.heard
    assert len(first.routes) == MAX_ROWS
    assert [row.counts.requests for row in first.routes[:8]] == [2] * 7 + [1]
    assert (first.folded, first.others.requests) == (MAX_TOLD - MAX_ROWS, MAX_TOLD - MAX_ROWS)
    assert (len(second.routes), second.folded) == (100, 0)


def test_a_proxy_notes_routes_with_news() -> None:
    stats = ProxyStats()
    stats.unrouted.count(404, 3, 0.5, 1, 10)
    stats.unrouted.count(404, 3, 0.5, 1, 10)
    assert stats.news == [stats.unrouted]
