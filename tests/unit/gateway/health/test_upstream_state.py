"""What is remembered of an upstream, and who hears of it."""

import heapq
from collections.abc import Callable

from headgate.common.table import ActiveCheck, BackendProtocol, CircuitBreaker, Ejection, RetryBudget
from headgate.gateway.health.policies import HealthPolicies
from headgate.gateway.health.state import Knowledge, Slot, UpstreamState
from headgate.gateway.health.stats import HealthStats
from headgate.gateway.health.target import CheckTarget
from headgate.gateway.model.steps import finish

CHECK = ActiveCheck(type="http", path="/healthz")
EJECT_AT_ONCE = Ejection(consecutive_errors=1, base_s=30)


class FakeSlot:
    def __init__(self, address: str) -> None:
        self.key = (address, 80, BackendProtocol.HTTP)
        self.pool: object | None = None
        self.active = 1


class Undo:
    def __init__(self, undo: Callable[[], None]) -> None:
        self.cancel = undo

    def why_unhealthy(self) -> str:
        return "status 500"


class FakeWorld:
    """A clock that is turned by hand, and checks whose results are said by the test."""

    def __init__(self) -> None:
        self.stats = HealthStats()
        self.now = 0.0
        self.verdicts: dict[CheckTarget, bool] = {}
        self.listeners: dict[CheckTarget, list[Callable[[bool], None]]] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def shared_load(self, key: str) -> None:
        """There are no other workers."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Undo:
        entry = (when, len(self._timers), callback)
        heapq.heappush(self._timers, entry)
        return Undo(lambda: self._timers.remove(entry) if entry in self._timers else None)

    def watch(self, target: CheckTarget, is_healthy: bool, on_verdict: Callable[[bool], None]) -> Undo:
        known = self.verdicts.setdefault(target, is_healthy)
        self.listeners.setdefault(target, []).append(on_verdict)
        if known != is_healthy:
            on_verdict(known)
        return Undo(lambda: self.forget(target, on_verdict))

    def forget(self, target: CheckTarget, on_verdict: Callable[[bool], None]) -> None:
        if on_verdict in self.listeners.get(target, []):
            self.listeners[target].remove(on_verdict)
            if not self.listeners[target]:
                del self.listeners[target], self.verdicts[target]

    def say(self, address: str, is_healthy: bool) -> None:
        for target in [target for target in self.verdicts if target.address == address]:
            self.verdicts[target] = is_healthy
            for listener in list(self.listeners[target]):
                listener(is_healthy)

    def advance(self, seconds: float) -> None:
        self.now += seconds
        while self._timers and self._timers[0][0] <= self.now:
            heapq.heappop(self._timers)[2]()

    @property
    def timers(self) -> int:
        return len(self._timers)


def policies(
    check: ActiveCheck | None = None, ejection: Ejection | None = None, circuit: CircuitBreaker | None = None
) -> HealthPolicies:
    return HealthPolicies(check, ejection, circuit)


def state_of(world: FakeWorld, upstream: HealthPolicies, *slots: Slot) -> tuple[UpstreamState, list[tuple[Slot, bool]]]:
    state, heard = UpstreamState("up", world), list[tuple[Slot, bool]]()
    state.on_change = lambda slot, is_available: heard.append((slot, is_available))
    finish(state.adopt(upstream, slots))
    return state, heard


A, B, C = FakeSlot("10.0.0.1"), FakeSlot("10.0.0.2"), FakeSlot("10.0.0.3")


def test_a_plain_upstream_has_nothing_to_count_and_nothing_to_report_to() -> None:
    state, _ = state_of(FakeWorld(), policies(), A, B)
    assert state.circuit is None
    assert state.ejector is None
    assert state.may_begin() is None
    state.report(A, 500)
    state.ended()
    assert not state.unavailable


def test_an_ejection_is_told_and_so_is_its_end() -> None:
    world = FakeWorld()
    state, heard = state_of(world, policies(ejection=EJECT_AT_ONCE), A, B)
    state.report(A, 502)
    assert heard == [(A, False)]
    assert state.unavailable == {A}
    world.advance(29.9)
    assert heard == [(A, False)]
    world.advance(0.1)
    assert heard == [(A, False), (A, True)]
    assert world.timers == 0


def test_pools_of_endpoints_that_stay_are_known_over_a_swap_and_those_of_others_forgotten() -> None:
    kept, gone = FakeSlot("10.0.0.4"), FakeSlot("10.0.0.5")
    kept.pool, gone.pool = "kept", "gone"
    state, _ = state_of(FakeWorld(), policies(ejection=EJECT_AT_ONCE), kept, gone)
    for pool in ("kept", "gone"):
        state.report_pool(pool, 200)
    finish(state.adopt(policies(ejection=EJECT_AT_ONCE), [kept, A]))
    state.report_pool("gone", 502)
    assert not state.unavailable
    state.report_pool("kept", 502)
    assert state.unavailable == {kept}


def test_verdicts_of_checks_are_told() -> None:
    world = FakeWorld()
    state, heard = state_of(world, policies(CHECK), A, B)
    world.say("10.0.0.2", False)
    assert state.unavailable == {B}
    world.say("10.0.0.2", True)
    assert heard == [(B, False), (B, True)]


def test_what_is_known_of_endpoints_names_ejection_checks_and_the_last_error() -> None:
    world = FakeWorld()
    state, _ = state_of(world, policies(CHECK, EJECT_AT_ONCE), A, B, C)
    state.report(A, "connect")
    world.say("10.0.0.2", False)
    world.advance(10)
    known = {one.address: one for one in state.knowledge()}
    assert known == {
        "10.0.0.1": Knowledge("10.0.0.1", 80, False, 20.0, 1, "connect", 10.0, 10.0),
        "10.0.0.2": Knowledge("10.0.0.2", 80, True, 0.0, 0, "", 0.0, 10.0, "status 500"),
    }


def test_an_endpoint_that_is_ejected_and_unhealthy_returns_when_it_is_neither() -> None:
    world = FakeWorld()
    state, heard = state_of(world, policies(CHECK, EJECT_AT_ONCE), A, B)
    state.report(A, 502)
    world.say("10.0.0.1", False)
    world.advance(30)
    assert heard == [(A, False)]
    world.say("10.0.0.1", True)
    assert heard == [(A, False), (A, True)]


def test_upstreams_with_different_checks_judge_one_endpoint_apart() -> None:
    world = FakeWorld()
    one, _ = state_of(world, policies(CHECK), A)
    other, _ = state_of(world, policies(ActiveCheck(type="tcp")), A)
    for target in world.verdicts:
        if target.check.type == "tcp":
            world.listeners[target][0](False)
    assert not one.unavailable
    assert other.unavailable == {A}


def test_verdicts_and_ejections_survive_a_swap() -> None:
    world = FakeWorld()
    state, heard = state_of(world, policies(CHECK, EJECT_AT_ONCE), A, B, C)
    state.report(A, 502)
    world.say("10.0.0.2", False)
    heard.clear()
    finish(state.adopt(policies(CHECK, EJECT_AT_ONCE.model_copy(update={"base_s": 60.0})), [A, B]))
    assert state.unavailable == {A, B}
    assert not heard
    assert len(world.verdicts) == 2


def test_a_verdict_survives_a_change_of_the_check_until_the_new_one_has_another() -> None:
    world = FakeWorld()
    state, heard = state_of(world, policies(CHECK), A, B)
    world.say("10.0.0.1", False)
    finish(state.adopt(policies(ActiveCheck(type="tcp")), [A, B]))
    assert state.unavailable == {A}
    assert {target.check.type for target in world.verdicts} == {"tcp"}
    world.say("10.0.0.1", True)
    assert not state.unavailable
    assert heard == [(A, False), (A, True)]


def test_a_policy_that_is_gone_lets_its_endpoints_back_in() -> None:
    world = FakeWorld()
    state, heard = state_of(world, policies(CHECK, EJECT_AT_ONCE), A, B)
    state.report(A, 502)
    world.say("10.0.0.2", False)
    finish(state.adopt(policies(), [A, B]))
    assert not state.unavailable
    assert set(heard[2:]) == {(A, True), (B, True)}
    assert not world.verdicts
    assert world.timers == 0


def test_an_endpoint_that_left_is_no_longer_unavailable_nor_checked() -> None:
    world = FakeWorld()
    state, _ = state_of(world, policies(CHECK), A, B)
    world.say("10.0.0.1", False)
    finish(state.adopt(policies(CHECK), [B]))
    assert not state.unavailable
    assert [target.address for target in world.verdicts] == ["10.0.0.2"]
    assert world.stats.unavailable == {}


def test_a_new_endpoint_takes_over_a_verdict_that_another_upstream_knows() -> None:
    world = FakeWorld()
    state_of(world, policies(CHECK), A)
    world.say("10.0.0.1", False)
    later, heard = state_of(world, policies(CHECK), A, B)
    assert later.unavailable == {A}
    assert heard == [(A, False)]


def test_a_check_on_a_port_of_its_own_goes_there() -> None:
    world = FakeWorld()
    state_of(world, policies(ActiveCheck(port=9000)), A)
    assert [target.port for target in world.verdicts] == [9000]


def test_requests_beyond_the_circuit_breaker_are_refused_with_its_name_and_counted() -> None:
    world = FakeWorld()
    state, _ = state_of(world, policies(circuit=CircuitBreaker(max_requests=1, max_pending=0)), A)
    assert state.may_begin() is None
    assert state.may_begin() == "circuit breaker of up: 1 requests are under way"
    assert state.wait(lambda: None) is not None
    state.ended()
    assert state.may_begin() is None
    assert world.stats.circuit_rejections == {("up", "requests"): 1, ("up", "pending"): 1}


def test_load_is_kept_when_the_bounds_change() -> None:
    state, _ = state_of(FakeWorld(), policies(circuit=CircuitBreaker(max_requests=2)), A)
    state.may_begin()
    state.may_begin()
    finish(state.adopt(policies(circuit=CircuitBreaker(max_requests=3)), [A]))
    assert state.may_begin() is None
    assert state.may_begin() is not None


def test_who_waits_is_let_through_when_the_circuit_breaker_goes() -> None:
    state, _ = state_of(FakeWorld(), policies(circuit=CircuitBreaker(max_connections=1)), A)
    called = list[str]()
    state.wait(lambda: called.append("resumed"))
    finish(state.adopt(policies(), [A]))
    assert called == ["resumed"]


def test_retries_beyond_the_budget_are_counted() -> None:
    world = FakeWorld()
    state, _ = state_of(world, policies(), A)
    assert [state.may_retry(0.2) for _ in range(4)].count(True) == 3
    assert world.stats.budget_rejections == {"up": 1}
    state.retry_ended()
    assert state.may_retry(0.2)


def test_closing_leaves_neither_checks_nor_timers_nor_counters() -> None:
    world = FakeWorld()
    state, _ = state_of(world, policies(CHECK, EJECT_AT_ONCE), A, B)
    state.report(A, 502)
    state.close()
    assert not world.verdicts
    assert world.timers == 0
    assert not world.stats.ejections


def test_an_endpoint_is_reported_by_its_pool_too() -> None:
    slot, pool = FakeSlot("10.0.0.9"), object()
    state, _ = state_of(FakeWorld(), policies(ejection=Ejection(consecutive_errors=2)), slot, B)
    state.report_pool(pool, 500)
    slot.pool = pool
    state.report_pool(pool, 500)
    assert not state.unavailable
    state.report_pool(pool, 500)
    assert state.unavailable == {slot}


def test_a_pool_of_an_endpoint_that_left_is_passed_over() -> None:
    slot = FakeSlot("10.0.0.9")
    slot.pool = object()
    state, _ = state_of(FakeWorld(), policies(ejection=EJECT_AT_ONCE), slot, A, B)
    state.report_pool(slot.pool, 200)
    finish(state.adopt(policies(ejection=EJECT_AT_ONCE), [A, B]))
    state.report_pool(slot.pool, 500)
    assert not state.unavailable


def test_a_budget_of_the_upstreams_own_holds_instead_of_the_routes_and_for_free_retries_too() -> None:
    world = FakeWorld()
    bounds = RetryBudget(share=0.5, interval_s=10, least=1, least_interval_s=10)
    state, _ = state_of(world, HealthPolicies(retry_budget=bounds), A)
    assert state.hears_of_requests
    for _ in range(2):
        assert state.may_begin() is None
    assert [state.may_retry(0.0, is_free=True), state.may_retry(None), state.may_retry(None)] == [True, True, False]
    assert (state.retries.under_way, world.stats.budget_rejections) == (1, {"up": 1})
    world.advance(11)
    assert state.may_retry(0.0)
    finish(state.adopt(policies(), [A]))
    assert (state.hears_of_requests, state.may_retry(None)) == (False, True)
