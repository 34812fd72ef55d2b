"""Finished requests that somebody wishes to see."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from fakes.gateway.proxied import OK, answering, proxied
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.service.tasks import cancel
from headgate.common.stores.memory.boards import MemoryTrafficBoard
from headgate.common.traffic import MAX_FAILED, MAX_TAPPED, MAX_TAPS, TAP_S, Attempt, Tap
from headgate.gateway.observability.tapping import Tapping
from headgate.gateway.proxy.stats import ProxyStats


class Tapped:
    """A worker's wishes, with a clock of the test's."""

    def __init__(self, draw: float = 0.5) -> None:
        self.now = 0.0
        self.stats = ProxyStats()
        self.tapping = Tapping(self.stats, lambda: self.now, lambda: draw)

    def finish(self, target: bytes = b"/a?token=x", status: int = 200, seconds: float = 0.1, **more: Any) -> None:
        """End a request, as the proxy does."""
        client, host = more.get("client", b"192.0.2.1"), more.get("host", b"a.example")
        notes, reason = SimpleNamespace(attempts=more.get("attempts"), scheme=b"https"), more.get("reason", "")
        record: Any = (b"now", client, b"GET", target, b"1.1", status, 5, seconds, None, b"id-1")
        record = (*record, "a.example|local/a", "up", "10.0.0.1:80", notes, reason)
        if self.stats.tap is not None:
            self.stats.tap(record, host)
        if self.stats.failures is not None and (status >= 500 or reason):
            self.stats.failures(record, host)

    def taken(self) -> list[str]:
        return [request.path for request in self.tapping.take()[0]]


def test_without_a_wish_nothing_is_looked_at() -> None:
    one = Tapped()
    one.finish()
    assert one.stats.tap is None
    assert one.tapping.take() == ((), 0)


def test_a_request_is_told_without_its_query() -> None:
    one = Tapped()
    one.tapping.heed(Tap("t"))
    one.finish()
    [request], untold = one.tapping.take()
    assert (request.taps, request.method, request.scheme) == (("t",), "GET", "https")
    assert (request.host, request.path) == ("a.example", "/a")
    assert (request.status, request.seconds, request.sent, request.client) == (200, 0.1, 5, "192.0.2.1")
    assert (request.route, request.upstream, request.endpoint) == ("a.example|local/a", "up", "10.0.0.1:80")
    assert (request.request_id, request.reason, untold) == ("id-1", "", 0)
    assert one.taken() == []


@pytest.mark.parametrize(
    ("wish", "is_told"),
    [
        (Tap("t", host="a.example"), True),
        (Tap("t", host="b.example"), False),
        (Tap("t", route="local/a"), True),
        (Tap("t", route="local/b"), False),
        (Tap("t", path="/a"), True),
        (Tap("t", path="/b"), False),
        (Tap("t", statuses=(2,)), True),
        (Tap("t", statuses=(404, 200)), True),
        (Tap("t", statuses=(0, 5)), False),
        (Tap("t", client="192.0.2.1"), True),
        (Tap("t", client="192.0.2.2"), False),
        (Tap("t", request_id="id-1"), True),
        (Tap("t", request_id="id-2"), False),
        (Tap("t", slower_than_s=0.1), True),
        (Tap("t", slower_than_s=0.2), False),
        (Tap("t", share=0.6), True),
        (Tap("t", share=0.4), False),
    ],
)
def test_wishes_select(wish: Tap, is_told: bool) -> None:
    one = Tapped()
    one.tapping.heed(wish)
    one.finish()
    assert one.taken() == ["/a"] * is_told


def test_a_wish_ends_unless_it_is_said_again() -> None:
    one = Tapped()
    one.tapping.heed(Tap("t"))
    one.now = TAP_S - 1
    one.tapping.heed(Tap("t"))
    one.now += TAP_S - 1
    one.finish()
    assert one.taken() == ["/a"]
    one.now += 2
    one.tapping.take()
    assert one.stats.tap is None


def test_requests_and_wishes_beyond_the_bounds_are_counted_or_passed_over() -> None:
    one = Tapped()
    for number in range(MAX_TAPS + 1):
        one.tapping.heed(Tap(f"t{number}"))
    for _ in range(MAX_TAPPED + 7):
        one.finish()
    told, untold = one.tapping.take()
    assert (len(told), untold, len(told[0].taps)) == (MAX_TAPPED, 7, MAX_TAPS)


def test_long_paths_are_cut() -> None:
    one = Tapped()
    one.tapping.heed(Tap("t"))
    one.finish(b"/" + b"a" * 8000)
    assert len(one.taken()[0]) == 1024


def test_what_failed_or_was_refused_is_told_without_a_wish() -> None:
    one = Tapped()
    tried = Attempt("10.0.0.9:80", "connect", 0.25)
    one.finish(b"/fine")
    one.finish(b"/lost?token=x", 502, attempts=[tried], reason="cannot connect")
    one.finish(b"/shut", 403, reason="no key")
    refused, failed = one.tapping.take_failed()
    assert (refused.path, refused.status, refused.reason) == ("/shut", 403, "no key")
    assert (failed.path, failed.taps, failed.attempts) == ("/lost", (), (tried,))
    assert one.tapping.take_failed() == ()


def test_of_many_that_were_refused_the_first_are_told_and_of_many_that_failed_the_last() -> None:
    one = Tapped()
    for number in range(3 * MAX_FAILED):
        one.finish(f"/{number}".encode(), 429, reason="too many")
        one.finish(f"/{number}".encode(), 503)
    told = [(request.status, int(request.path[1:])) for request in one.tapping.take_failed()]
    assert told == [
        *((429, number) for number in range(MAX_FAILED)),
        *((503, number) for number in range(2 * MAX_FAILED, 3 * MAX_FAILED)),
    ]


@in_virtual_time
async def test_wishes_are_heard_over_the_board() -> None:
    one, board = Tapped(), MemoryTrafficBoard()
    running = asyncio.create_task(one.tapping.run(board, "default"))
    await asyncio.sleep(0)
    await board.tap("other", Tap("o"))
    await board.tap("default", Tap("t"))
    await until(lambda: one.stats.tap is not None)
    one.finish()
    assert [request.taps for request in one.tapping.take()[0]] == [("t",)]
    await cancel(running)


async def test_a_proxy_hands_finished_requests_over() -> None:
    async with proxied(answering(OK)) as proxy:
        tapping = Tapping(proxy.stats)
        tapping.heed(Tap("t", host="a"))
        await proxy.talk(b"GET /x?y=1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        [request], _ = tapping.take()
        assert (request.path, request.host, request.status) == ("/x", "a", 200)
