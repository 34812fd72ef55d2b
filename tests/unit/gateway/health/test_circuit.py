"""Bounds of connections, waiting requests and requests; and the budget of retries."""

from headgate.common.table import CircuitBreaker
from headgate.gateway.health.budget import RetryBudget
from headgate.gateway.health.circuit import Circuit


def test_requests_beyond_the_bound_are_refused_until_one_ends() -> None:
    circuit = Circuit(CircuitBreaker(max_requests=2))
    assert [circuit.begin(), circuit.begin()] == [None, None]
    assert circuit.begin() == "2 requests are under way"
    circuit.end()
    assert circuit.begin() is None


def test_an_end_without_a_beginning_does_not_widen_the_bound() -> None:
    circuit = Circuit(CircuitBreaker(max_requests=1))
    circuit.end()
    assert circuit.begin() is None
    assert circuit.begin() is not None


def test_without_bounds_everything_passes() -> None:
    circuit = Circuit(CircuitBreaker())
    assert all(circuit.begin() is None and circuit.acquire_connection() for _ in range(1000))
    assert all(circuit.wait(lambda number=number: None) is None for number in range(1000))  # type: ignore[misc]


def test_who_waits_is_called_first_come_first_served_when_connections_end() -> None:
    circuit, called = Circuit(CircuitBreaker(max_connections=1)), list[str]()
    assert circuit.acquire_connection()
    assert not circuit.acquire_connection()
    circuit.wait(lambda: called.append("first"))
    circuit.wait(lambda: called.append("second"))
    circuit.release_connection()
    assert called == ["first"]
    circuit.wake()
    assert called == ["first", "second"]


def test_too_many_that_wait_are_refused() -> None:
    circuit = Circuit(CircuitBreaker(max_connections=1, max_pending=1))
    assert circuit.wait(lambda: None) is None
    assert circuit.wait(lambda: None) == "1 requests wait for one of 1 connections"


def test_nobody_may_wait_with_a_bound_of_nothing() -> None:
    assert Circuit(CircuitBreaker(max_connections=1, max_pending=0)).wait(lambda: None) is not None


def test_who_gave_up_is_not_called() -> None:
    circuit, called = Circuit(CircuitBreaker(max_connections=1)), list[str]()

    def resume() -> None:
        called.append("resumed")

    circuit.wait(resume)
    circuit.cancel(resume)
    circuit.cancel(resume)
    circuit.wake()
    assert not called
    assert circuit.pending == 0


def test_wider_bounds_let_those_who_wait_try_again() -> None:
    circuit, got = Circuit(CircuitBreaker(max_connections=1)), list[bool]()
    circuit.acquire_connection()

    def attempt() -> None:
        got.append(circuit.acquire_connection())
        if not got[-1]:
            circuit.wait(attempt)

    circuit.wait(attempt)
    circuit.adopt(CircuitBreaker(max_connections=1, max_requests=5))
    assert got == [False]
    assert circuit.pending == 1
    circuit.lift()
    assert got == [False, True]


def test_three_retries_may_always_be_under_way() -> None:
    budget = RetryBudget()
    assert [budget.begin(0.2, 4) for _ in range(4)] == [True, True, True, False]
    budget.end()
    assert budget.begin(0.2, 4)


def test_retries_beyond_the_floor_are_a_share_of_the_load() -> None:
    budget = RetryBudget()
    assert [budget.begin(0.2, 25) for _ in range(6)].count(True) == 5


def test_a_route_without_a_budget_retries_but_counts_for_the_others() -> None:
    budget = RetryBudget()
    assert all(budget.begin(None, 0) for _ in range(50))
    assert not budget.begin(0.2, 100)
