"""When endpoints are asked, and what makes a verdict."""

import asyncio
import weakref
from collections.abc import Callable

from fakes.virtual_time import in_virtual_time
from headgate.common.table import ActiveCheck
from headgate.gateway.health.active import ActiveChecker
from headgate.gateway.health.stats import HealthStats
from headgate.gateway.health.target import CheckTarget

CHECK = ActiveCheck(interval_s=10, unhealthy_interval_s=2, timeout_s=1, healthy_after=2, unhealthy_after=3)


def target(number: int = 1, check: ActiveCheck = CHECK) -> CheckTarget:
    return CheckTarget(f"10.0.0.{number}", 80, check)


class FakeProbe:
    """Answers as it is told, and remembers when it was asked."""

    def __init__(self, *results: bool, takes_s: float = 0.0) -> None:
        self.asked: list[tuple[str, float]] = []
        self.at_once = self.most_at_once = 0
        self._results = list(results)
        self._takes_s = takes_s

    async def __call__(self, target: CheckTarget) -> str | None:
        self.asked.append((target.address, asyncio.get_running_loop().time()))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self._takes_s)
        finally:
            self.at_once -= 1
        if not self._results:
            return None
        return None if self._results.pop(0) else "refused"

    @property
    def times(self) -> list[float]:
        return [round(when, 1) for _, when in self.asked]


def checker_of(probe: FakeProbe, *, draw: Callable[[], float] = lambda: 0.5, max_under_way: int = 100) -> ActiveChecker:
    return ActiveChecker(probe, HealthStats(), draw, max_under_way)


@in_virtual_time
async def test_an_endpoint_is_healthy_until_so_many_checks_in_a_row_fail() -> None:
    probe, heard = FakeProbe(False, False, True, False, False, False), list[bool]()
    checker = checker_of(probe)
    checker.watch(target(), True, heard.append)
    await asyncio.sleep(49)
    assert heard == []
    await asyncio.sleep(3)
    assert heard == [False]
    assert checker.why_unhealthy(target()) == "refused"
    await checker.close()


@in_virtual_time
async def test_an_unhealthy_endpoint_is_asked_at_its_own_interval_and_returns() -> None:
    probe, heard = FakeProbe(False, False, False, True, False, True, True), list[tuple[float, bool]]()
    checker = checker_of(probe)
    loop = asyncio.get_running_loop()
    checker.watch(target(), True, lambda verdict: heard.append((round(loop.time(), 1), verdict)))
    await asyncio.sleep(40)
    assert probe.times == [0.5, 10.5, 20.5, 22.5, 24.5, 26.5, 28.5, 38.5]
    assert heard == [(20.5, False), (28.5, True)]
    await checker.close()


@in_virtual_time
async def test_first_checks_are_spread_and_intervals_vary() -> None:
    draws = iter([0.0, 0.9, 0.0, 1.0])
    probe = FakeProbe()
    checker = checker_of(probe, draw=lambda: next(draws))
    checker.watch(target(1), True, lambda verdict: None)
    checker.watch(target(2), True, lambda verdict: None)
    await asyncio.sleep(8)
    assert probe.times == [0.0, 0.9]
    await asyncio.sleep(1.5)
    assert probe.times == [0.0, 0.9, 9.0]
    await checker.close()


@in_virtual_time
async def test_upstreams_that_ask_the_same_share_one_check_and_its_verdict() -> None:
    probe, first, second, late = FakeProbe(False, False, False), list[bool](), list[bool](), list[bool]()
    checker = checker_of(probe)
    checker.watch(target(), True, first.append)
    checker.watch(target(), True, second.append)
    await asyncio.sleep(21)
    checker.watch(target(), True, late.append)
    assert len(probe.asked) == 3
    assert first == second == late == [False]
    await checker.close()


@in_virtual_time
async def test_different_checks_of_one_endpoint_are_apart() -> None:
    probe = FakeProbe()
    checker = checker_of(probe)
    checker.watch(target(), True, lambda verdict: None)
    checker.watch(target(check=ActiveCheck(type="tcp", interval_s=10)), True, lambda verdict: None)
    await asyncio.sleep(5)
    assert len(probe.asked) == 2
    await checker.close()


@in_virtual_time
async def test_a_check_ends_when_the_last_who_wants_it_leaves() -> None:
    probe = FakeProbe()
    checker = checker_of(probe)
    first = checker.watch(target(), True, lambda verdict: None)
    second = checker.watch(target(), True, lambda verdict: None)
    first.cancel()
    await asyncio.sleep(5)
    second.cancel()
    second.cancel()
    await asyncio.sleep(50)
    assert len(probe.asked) == 1
    assert len(checker) == 0
    await checker.close()


@in_virtual_time
async def test_who_leaves_while_a_check_is_under_way_hears_nothing_of_it() -> None:
    probe, heard = FakeProbe(False, takes_s=0.5), list[bool]()
    checker = checker_of(probe)
    watch = checker.watch(target(check=ActiveCheck(unhealthy_after=1)), True, heard.append)
    await asyncio.sleep(0.7)
    watch.cancel()
    await asyncio.sleep(30)
    assert heard == []
    assert len(probe.asked) == 1
    await checker.close()


@in_virtual_time
async def test_checks_beyond_the_bound_begin_late_and_none_is_lost() -> None:
    probe = FakeProbe(takes_s=1.0)
    checker = checker_of(probe, max_under_way=3)
    for number in range(9):
        checker.watch(target(number), True, lambda verdict: None)
    await asyncio.sleep(4)
    assert probe.most_at_once == 3
    assert len({address for address, _ in probe.asked}) == 9
    await checker.close()


@in_virtual_time
async def test_a_check_that_breaks_counts_as_failed_and_goes_on() -> None:
    asked = list[float]()

    async def broken(target: CheckTarget) -> str | None:
        asked.append(asyncio.get_running_loop().time())
        raise RuntimeError("no idea")

    heard, stats = list[bool](), HealthStats()
    checker = ActiveChecker(broken, stats, lambda: 0.5)
    checker.watch(target(), True, heard.append)
    await asyncio.sleep(25)
    assert heard == [False]
    assert len(asked) == 5
    assert stats.checks == {("http", "failure"): 5}
    await checker.close()


@in_virtual_time
async def test_closing_ends_checks_that_are_under_way() -> None:
    probe = FakeProbe(takes_s=100)
    checker = checker_of(probe)
    checker.watch(target(), True, lambda verdict: None)
    await asyncio.sleep(1)
    assert probe.at_once == 1
    await checker.close()
    assert probe.at_once == 0
    assert len(asyncio.all_tasks()) == 1


@in_virtual_time
async def test_endpoints_that_come_and_go_do_not_pile_up() -> None:
    checker = checker_of(FakeProbe())
    checks = [ActiveCheck(interval_s=3600) for _ in range(5000)]
    known = [weakref.ref(check) for check in checks]
    while checks:
        checker.watch(target(1, checks.pop()), True, lambda verdict: None).cancel()
    assert sum(check() is not None for check in known) < 200
    await checker.close()
