"""Processes that want one lease, in virtual time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from fakes.virtual_time import in_virtual_time
from headgate.common.errors import NotPermitted, StoreUnavailable
from headgate.common.leadership.election import Timing
from headgate.common.leadership.leadership import Elector, Sole, run_while_leading
from headgate.common.leadership.leases import Lease, StoredLease
from headgate.common.service.tasks import cancel
from headgate.common.stores import LeaseBoard
from headgate.common.stores.memory.boards import MemoryLeaseBoard

TIMING = Timing(duration_s=2.0, renew_deadline_s=1.4, retry_s=0.3)


class Board(MemoryLeaseBoard):
    """A board that can be away, silent or forbidden."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: Exception | None = None
        self.is_silent = False
        self.loses_answers = False
        self.way_s = 0.0
        self.attempts = 0

    async def _suffer(self) -> None:
        self.attempts += 1
        if self.is_silent:
            await asyncio.Event().wait()
        if self.fault:
            raise self.fault

    async def read(self, name: str) -> StoredLease | None:
        await self._suffer()
        return await super().read(name)

    async def write(self, name: str, lease: Lease, expected: str | None) -> StoredLease:
        await self._suffer()
        await asyncio.sleep(self.way_s)
        stored = await super().write(name, lease, expected)
        if self.loses_answers:
            raise StoreUnavailable("no answer")
        return stored


def elector(board: LeaseBoard, name: str, is_ready: Callable[[], bool] = lambda: True) -> Elector:
    clock = asyncio.get_running_loop().time
    return Elector(board, "l", name, TIMING, is_ready=is_ready, clock=clock)


@asynccontextmanager
async def running(*electors: Elector) -> AsyncIterator[list["asyncio.Task[None]"]]:
    tasks = [asyncio.create_task(each.run()) for each in electors]
    try:
        yield tasks
        assert not [task.exception() for task in tasks if task.done() and not task.cancelled()]
    finally:
        await cancel(*tasks)


def now() -> float:
    return asyncio.get_running_loop().time()


@in_virtual_time
async def test_the_first_leads_and_stays_the_one() -> None:
    board = Board()
    one, other = elector(board, "one"), elector(board, "other")
    async with running(one):
        await one.until_leading()
        async with running(other):
            for _ in range(50):
                await asyncio.sleep(0.2)
                assert (one.is_leader, other.is_leader) == (True, False)


@in_virtual_time
async def test_one_that_falls_silent_is_replaced_after_the_duration() -> None:
    board = Board()
    one, other = elector(board, "one"), elector(board, "other")
    async with running(one) as [task], running(other):
        await one.until_leading()
        await asyncio.sleep(5.1)
        died_at = now()
        await cancel(task)
        await other.until_leading()
        assert 1.4 < now() - died_at < 2.5
        assert not one.is_leader


@in_virtual_time
async def test_one_that_gives_back_is_replaced_at_once() -> None:
    board = Board()
    one, other = elector(board, "one"), elector(board, "other")
    async with running(one) as [task], running(other):
        await one.until_leading()
        await asyncio.sleep(5)
        await cancel(task)
        ended_at = now()
        await one.release()
        await other.until_leading()
        assert now() - ended_at < 0.4
        stored = await board.read("l")
        assert stored is not None
        assert (stored.lease.holder, stored.lease.transitions) == ("other", 1)


@in_virtual_time
async def test_one_that_is_ready_goes_before_one_that_is_not() -> None:
    board = Board()
    cold, warm = elector(board, "cold", lambda: False), elector(board, "warm")
    await board.write("l", Lease.model_validate(GIVEN_BACK), None)
    async with running(cold):
        await asyncio.sleep(1)
        assert not cold.is_leader
        async with running(warm):
            await warm.until_leading()
            assert not cold.is_leader


GIVEN_BACK = {
    "holder": "",
    "duration_s": 2,
    "acquired_at": "2026-01-01T00:00:00Z",
    "renewed_at": "2026-01-01T00:00:00Z",
}


@in_virtual_time
async def test_a_leader_that_cannot_renew_stops_before_another_may_begin() -> None:
    board = Board()
    one = elector(board, "one")
    async with running(one):
        await one.until_leading()
        await asyncio.sleep(3)
        board.fault, began_at = StoreUnavailable("away"), now()
        await one.until_following()
        assert now() - began_at <= 1.4
        board.fault = None
        await one.until_leading()


@in_virtual_time
async def test_a_board_that_never_answers_is_as_one_that_is_away() -> None:
    board = Board()
    one = elector(board, "one")
    async with running(one):
        await one.until_leading()
        await asyncio.sleep(3)
        board.is_silent, began_at = True, now()
        await one.until_following()
        assert now() - began_at <= 1.4 + 0.7
        board.is_silent = False
        await one.until_leading()


@in_virtual_time
async def test_a_process_that_stood_still_does_not_lead_when_it_goes_on() -> None:
    board, still = Board(), 0.0
    loop = asyncio.get_running_loop()
    one = Elector(board, "l", "one", TIMING, clock=lambda: loop.time() + still)
    async with running(one):
        await one.until_leading()
        assert one.is_leader
        still = 30.0
        assert not one.is_leader


@in_virtual_time
async def test_a_renewal_that_comes_too_late_begins_another_term() -> None:
    """Who acted as one that follows in between has to hear of it."""
    board = Board()
    one = elector(board, "one")
    async with running(one):
        await one.until_leading()
        followed = asyncio.create_task(one.until_following())
        board.fault = StoreUnavailable("away")
        await asyncio.sleep(1.0)
        board.fault, board.way_s = None, 0.6
        while one.is_leader:  # noqa: ASYNC110 - it expires without an event
            await asyncio.sleep(0.01)
        await followed
        await one.until_leading()
        assert (one.is_leader, one.term) == (True, 2)


@in_virtual_time
async def test_a_slow_way_to_the_board_costs_the_lease_a_few_times_only() -> None:
    """Each answer takes longer than an attempt may at first; another process wants the lease all the time."""
    board = Board()
    one, other = elector(board, "one"), elector(board, "other")
    async with running(one, other):
        await one.until_leading()
        board.way_s = 1.3
        await asyncio.sleep(60)
        terms = one.term + other.term
        await asyncio.sleep(120)
        assert one.term + other.term == terms
        assert one.is_leader or other.is_leader


@in_virtual_time
async def test_answers_that_are_lost_do_not_cost_the_lease() -> None:
    board = Board()
    one = elector(board, "one")
    async with running(one):
        await one.until_leading()
        board.loses_answers = True
        await asyncio.sleep(1.0)
        board.loses_answers = False
        await asyncio.sleep(1.0)
        assert one.is_leader
        stored = await board.read("l")
        assert stored is not None
        assert stored.lease.transitions == 0


@in_virtual_time
async def test_a_board_that_is_away_is_not_asked_all_the_time() -> None:
    board = Board()
    board.fault = StoreUnavailable("away")
    async with running(elector(board, "one")):
        await asyncio.sleep(10)
    assert board.attempts < 40


@in_virtual_time
async def test_a_missing_right_means_that_all_lead_until_it_is_given() -> None:
    board = Board()
    board.fault = NotPermitted("leases.coordination.k8s.io is forbidden")
    one, other = elector(board, "one"), elector(board, "other")
    async with running(one, other):
        await one.until_leading()
        await other.until_leading()
        await asyncio.sleep(1000)
        assert one.is_leader
        assert other.is_leader
        assert board.attempts < 100
        board.fault = None
        await asyncio.sleep(60)
        assert [one.is_leader, other.is_leader].count(True) == 1


@in_virtual_time
async def test_a_lost_board_costs_no_leader() -> None:
    board = Board()
    one = elector(board, "one")
    async with running(one):
        await one.until_leading()
        board.leases.clear()
        await asyncio.sleep(3)
        assert one.is_leader


@in_virtual_time
async def test_what_runs_while_leading_ends_with_the_lease_and_begins_anew() -> None:
    board, begun, ended = Board(), 0, 0
    one = elector(board, "one")

    async def work() -> None:
        nonlocal begun, ended
        begun += 1
        try:
            await asyncio.Event().wait()
        finally:
            ended += 1

    async with running(one):
        task = asyncio.create_task(run_while_leading(one, work))
        await one.until_leading()
        await asyncio.sleep(0.1)
        assert (begun, ended) == (1, 0)
        board.fault = StoreUnavailable("away")
        await one.until_following()
        await asyncio.sleep(0.1)
        assert (begun, ended) == (1, 1)
        board.fault = None
        await one.until_leading()
        await asyncio.sleep(0.1)
        assert (begun, ended) == (2, 1)
        await cancel(task)


@in_virtual_time
async def test_what_fails_while_leading_is_heard_of() -> None:
    async def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await run_while_leading(Sole(), work)
