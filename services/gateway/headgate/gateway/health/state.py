"""Everything that is remembered of an upstream over swaps: who is unfit for requests, and how much is under way.

One `UpstreamState` per upstream key; a new revision of the upstream changes its policies and members, and what is
known of endpoints that stay is kept. Verdicts are kept here and not on the endpoints' slots: a slot is shared by all
upstreams that name the address, while each of them has checks and thresholds of its own. The balancer reads
`unavailable` when it is compiled, and is told of every change by `on_change`.

What an upstream has no policy for is None, so that the exchange pays one comparison for it. Pure: clock and timers are
passed in.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, NamedTuple, Protocol

from headgate.gateway.counting.load import SharedLoad
from headgate.gateway.health.budget import RecentBudget, RetryBudget
from headgate.gateway.health.circuit import Circuit, Resume
from headgate.gateway.health.ejection import Ejector, Outcome
from headgate.gateway.health.policies import HealthPolicies
from headgate.gateway.health.stats import HealthStats
from headgate.gateway.health.target import CheckTarget
from headgate.gateway.model.connection import ConnectionSpec
from headgate.gateway.model.steps import Steps

CHECKS_AT_ONCE: Final = 128
"""New endpoints that checks are begun for between two turns of the event loop: about a millisecond."""


class Slot(Hashable, Protocol):
    """What an endpoint is known by: the balancing's `EndpointSlot`."""

    @property
    def key(self) -> tuple[str, int, object]:
        """Address, port, and what else tells it from others."""

    @property
    def active(self) -> int:
        """Requests under way to it."""

    @property
    def pool(self) -> object | None:
        """Its connections, by which the exchange knows it; None before the first request."""


OnChange = Callable[[Any, bool], None]
"""Called with an endpoint, of the caller's own type of slot, and whether it may get requests from now on."""


class Stoppable(Protocol):
    """What can be called off; twice does no harm."""

    def cancel(self) -> None:
        """Call it off."""


class Watching(Stoppable, Protocol):
    """Active checks of an endpoint."""

    def why_unhealthy(self) -> str:
        """What the last check said, if it failed."""


class Surroundings(Protocol):
    """What states need of the world: the event loop and the checker behind it."""

    @property
    def stats(self) -> HealthStats:
        """Where things are counted."""

    def shared_load(self, key: str) -> SharedLoad | None:
        """Return what other workers ask of an upstream; None: there are none."""

    def time(self) -> float:
        """Monotonic seconds."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Stoppable:
        """Call back at a monotonic time."""

    def watch(self, target: CheckTarget, is_healthy: bool, on_verdict: Callable[[bool], None]) -> Watching:
        """Check an endpoint from now on.

        It begins with this verdict; `on_verdict` hears of every change, and at once if the target is checked already
        with another verdict.
        """


def _tell_nobody(slot: Slot, is_available: bool) -> None:
    """Stand in while there is no balancer."""


class Knowledge(NamedTuple):
    """What is known of one endpoint."""

    address: str
    port: int
    is_unhealthy: bool
    """By active checks."""
    ejected_s: float
    """Until it is let back in; 0: it is not ejected."""
    failures: int
    """Requests that failed as ejection counts them, since it is in use."""
    last_error: str
    """A status code, `connect`, `reset` or `timeout`."""
    failed_s: float
    """Seconds since the last failure."""
    out_s: float = 0.0
    """Since it gets no requests; 0: it gets some."""
    check_error: str = ""
    """Of the last active check, if that failed and the endpoint is unhealthy."""


class UpstreamState:
    """What one worker remembers of one upstream."""

    __slots__ = (
        "__weakref__",
        "_by_pool",
        "_check",
        "_members",
        "_out_since",
        "_timer",
        "_unhealthy",
        "_watches",
        "_world",
        "circuit",
        "ejector",
        "key",
        "on_change",
        "recent",
        "retries",
        "unavailable",
    )

    def __init__(self, key: str, world: Surroundings) -> None:
        self.key: Final = key
        self.circuit: Circuit | None = None
        """None: no bounds, and nothing to call."""
        self.ejector: Ejector[Slot] | None = None
        """None: nothing to report."""
        self.retries: Final = RetryBudget()
        self.recent: RecentBudget | None = None
        """Bounds retries by what has begun lately; None: what is under way bounds them."""
        self.unavailable: Final[set[Slot]] = set()
        """Endpoints that should get no requests: unhealthy or ejected."""
        self.on_change: OnChange = _tell_nobody
        self._out_since: dict[Slot, float] = {}
        """When those in `unavailable` came there."""
        self._world = world
        self._members: frozenset[Slot] = frozenset()
        self._by_pool: dict[object, Slot] = {}
        """Filled when a pool is first reported: finding it among thousands of members takes a while."""
        self._check: CheckTarget | None = None
        self._watches: dict[Slot, Watching] = {}
        self._unhealthy: set[Slot] = set()
        self._timer: Stoppable | None = None

    @property
    def hears_of_requests(self) -> bool:
        """Whether requests have to tell how they went."""
        return self.circuit is not None or self.ejector is not None or self.recent is not None

    # What the exchange calls.

    def report(self, slot: Slot, outcome: Outcome) -> None:
        """Learn how a request to an endpoint went: the answer's status code, or why there was none."""
        ejector = self.ejector
        if ejector is not None and ejector.report(slot, outcome, self._world.time()):
            self._world.stats.ejections[self.key] += 1
            self._settle(slot)
            self._set_timer()

    def report_pool(self, pool: object, outcome: Outcome) -> None:
        """Do as `report`, for an endpoint that is known by its pool; one that is gone is passed over."""
        if self.ejector is None:
            return
        slot = self._by_pool.get(pool)
        if slot is None:
            slot = next((slot for slot in self._members if slot.pool is pool), None)
            if slot is None:
                return
            self._by_pool[pool] = slot
        self.report(slot, outcome)

    def may_begin(self) -> str | None:
        """Count a request that begins; if the circuit breaker forbids it, return why, and count nothing."""
        circuit = self.circuit
        reason = circuit.begin() if circuit is not None else None
        if reason is None:
            if self.recent is not None:
                self.recent.begin(self._world.time())
            return None
        self._world.stats.circuit_rejections[self.key, "requests"] += 1
        return f"circuit breaker of {self.key}: {reason}"

    def ended(self) -> None:
        """Count the end of a request that `may_begin` let through under the same circuit."""
        if self.circuit is not None:
            self.circuit.end()

    def wait(self, resume: Resume) -> str | None:
        """Wait for a connection as `Circuit.wait` does, counting refusals; only with a circuit."""
        assert self.circuit is not None
        reason = self.circuit.wait(resume)
        if reason is None:
            return None
        self._world.stats.circuit_rejections[self.key, "pending"] += 1
        return f"circuit breaker of {self.key}: {reason}"

    def may_retry(self, share: float | None, *, is_free: bool = False) -> bool:
        """Count a retry that begins, to be ended by `retry_ended` unless it is free; False if the budget is spent.

        `share` is the route's `Retries.budget`. A free one is bounded by a budget of the upstream's own alone.
        """
        recent = self.recent
        if recent is not None:
            may_begin = recent.begin_retry(self._world.time())
            if may_begin and not is_free:
                self.retries.begin(None, 0)
        else:
            may_begin = is_free or self.retries.begin(share, sum(slot.active for slot in self._members))
        if may_begin:
            return True
        self._world.stats.budget_rejections[self.key] += 1
        return False

    def retry_ended(self) -> None:
        """Count the end of a retry that `may_retry` let through."""
        self.retries.end()

    def knowledge(self) -> "list[Knowledge]":
        """Return what is known of endpoints that are not well or failed requests."""
        now, ejector = self._world.time(), self.ejector
        until = ejector.ejected_until if ejector is not None else {}
        failed = ejector.failures() if ejector is not None else {}
        found = []
        for slot in {*self._unhealthy, *until, *failed}:
            address, port, _ = slot.key
            failures, watching = failed.get(slot), self._watches.get(slot)
            found.append(
                Knowledge(
                    address=address,
                    port=port,
                    is_unhealthy=slot in self._unhealthy,
                    ejected_s=max(0.0, until.get(slot, now) - now),
                    failures=failures.number if failures else 0,
                    last_error=str(failures.last) if failures else "",
                    failed_s=now - failures.at if failures else 0.0,
                    out_s=now - self._out_since.get(slot, now),
                    check_error=watching.why_unhealthy() if watching is not None and slot in self._unhealthy else "",
                )
            )
        return found

    # What a swap calls.

    def adopt(self, policies: HealthPolicies, slots: Iterable[Slot]) -> Steps[None]:
        """Go on with a revision of the upstream: its policies, and its endpoints.

        All is in effect with the first step but the checks of new endpoints, of which there may be thousands.
        """
        members = frozenset(slots)
        for gone in self._members - members:
            self._by_pool.pop(gone.pool, None)
        self._members = members
        self._adopt_circuit(policies)
        budget = policies.retry_budget
        if budget is None:
            self.recent = None
        elif self.recent is None or self.recent.policy != budget:
            self.recent = RecentBudget(budget)
        self._adopt_ejection(policies, members)
        checking = self._adopt_checks(policies, members)
        next(checking, None)
        self.unavailable.intersection_update(members)
        self._out_since = {slot: since for slot, since in self._out_since.items() if slot in members}
        self._world.stats.show_unavailable(self.key, len(self.unavailable))
        ejected = self.ejector.ejected_until if self.ejector is not None else {}
        for slot in {*self.unavailable, *self._unhealthy, *ejected}:
            self._settle(slot)
        self._set_timer()
        yield from checking

    def close(self) -> None:
        """End all checks: the upstream left the table."""
        if self.circuit is not None:
            self.circuit.part()
        for watch in self._watches.values():
            watch.cancel()
        self._watches.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._members = frozenset()
        self._by_pool.clear()
        self.unavailable.clear()
        self._out_since.clear()
        self._unhealthy.clear()
        self.ejector = None
        self.on_change = _tell_nobody
        self._world.stats.forget(self.key)

    def _adopt_circuit(self, policies: HealthPolicies) -> None:
        policy = policies.circuit_breaker
        if policy is None:
            if self.circuit is not None:
                self.circuit.lift()
            self.circuit = None
        elif self.circuit is None:
            self.circuit = Circuit(policy, self._world.shared_load(self.key))
        elif policy != self.circuit.policy:
            self.circuit.adopt(policy)

    def _adopt_ejection(self, policies: HealthPolicies, members: frozenset[Slot]) -> None:
        policy = policies.ejection
        if policy is None:
            self.ejector = None
            return
        if self.ejector is None:
            self.ejector = Ejector(policy)
        self.ejector.policy = policy
        self.ejector.set_members(members)

    def _adopt_checks(self, policies: HealthPolicies, members: frozenset[Slot]) -> Steps[None]:
        pattern = _pattern(policies)
        before = self._watches
        is_same = pattern == self._check
        self._watches = {slot: watch for slot, watch in before.items() if is_same and slot in members}
        self._unhealthy.intersection_update(members if pattern else ())
        self._check = pattern
        if pattern is not None:
            for count, slot in enumerate(members - self._watches.keys(), 1):
                self._watch(slot, pattern)
                if count % CHECKS_AT_ONCE == 0:
                    yield
        # Last, so that a target that is asked for again keeps its verdict.
        for slot, watch in before.items():
            if self._watches.get(slot) is not watch:
                watch.cancel()

    def _watch(self, slot: Slot, pattern: CheckTarget) -> None:
        address, port, spec = slot.key
        check = pattern.check
        if isinstance(spec, ConnectionSpec) and spec.name and not check.host:
            check = check.model_copy(update={"host": spec.name})
        _, _, _, protocol, ca_pem, server_name = pattern
        target = CheckTarget(address, check.port or port, check, protocol, ca_pem, server_name)

        def take(is_healthy: bool) -> None:
            if is_healthy:
                self._unhealthy.discard(slot)
            elif slot not in self._unhealthy:
                self._unhealthy.add(slot)
                self._world.stats.became_unhealthy[self.key] += 1
            self._settle(slot)

        self._watches[slot] = self._world.watch(target, slot not in self._unhealthy, take)

    def _settle(self, slot: Slot) -> None:
        """Let all know whether an endpoint may get requests, if that has changed."""
        is_ejected = self.ejector is not None and slot in self.ejector.ejected_until
        is_available = not is_ejected and slot not in self._unhealthy
        if is_available == (slot not in self.unavailable):
            return
        if is_available:
            self.unavailable.discard(slot)
            self._out_since.pop(slot, None)
        else:
            self.unavailable.add(slot)
            self._out_since[slot] = self._world.time()
        self._world.stats.show_unavailable(self.key, len(self.unavailable))
        self.on_change(slot, is_available)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        when = self.ejector.next_return if self.ejector is not None else None
        self._timer = None if when is None else self._world.call_at(when, self._take_returned)

    def _take_returned(self) -> None:
        if self.ejector is not None:
            for slot in self.ejector.take_returned(self._world.time()):
                self._settle(slot)
        self._set_timer()


def _pattern(policies: HealthPolicies) -> CheckTarget | None:
    """What all endpoints of an upstream are checked by; address and port are yet to come."""
    if policies.active_check is None:
        return None
    return CheckTarget("", 0, policies.active_check, policies.protocol, policies.ca_pem, policies.server_name)
