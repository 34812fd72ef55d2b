"""Circuit breaking: bounds of what the workers of a gateway ask of an upstream at a time. Pure accounting.

As Envoy's circuit breakers (`max_connections`, `max_pending_requests`, `max_requests`): beyond a bound there is no
queue that grows, but a quick refusal. Connections count over all endpoints of the upstream together.

The way of a request: `begin`; if it needs a new connection `acquire_connection`; if that is refused `wait`, which calls
back, first come first served, when a connection was closed or has come to rest. Each of the three is paired: `end`,
`release_connection`, `cancel` (only for a wait that was not called back).

The load of other workers counts for the bounds. What they release wakes nobody here; so a worker without a connection
may open one in any case, as in Envoy, and whoever waits here waits for connections of this worker.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from headgate.common.table import CircuitBreaker
from headgate.gateway.counting.load import NO_LOAD, Load, SharedLoad

Resume = Callable[[], None]


class Resting(Protocol):
    """A connection that serves nobody."""

    def make_room(self) -> None:
        """Close; another is counted instead."""


class Circuit:
    """The load on one upstream and its bounds.

    Args:
        policy: bounds; may be replaced at any time. What is under way beyond a new bound finishes.
        shared: what other workers ask of the upstream; None: there are none.
    """

    __slots__ = ("_resting", "_shared", "_waiting", "connections", "policy", "requests")

    def __init__(self, policy: CircuitBreaker, shared: SharedLoad | None = None) -> None:
        self._shared = shared
        self.policy = policy
        self.requests = 0
        """Under way, waiting ones included."""
        self.connections = 0
        """Open or being opened."""
        self._waiting: OrderedDict[Resume, None] = OrderedDict()
        self._resting: dict[Resting, None] = {}
        """Counted connections that serve nobody, the one that has rested longest first."""

    @property
    def pending(self) -> int:
        """Requests that wait for a connection."""
        return len(self._waiting)

    def _others(self) -> Load:
        """Return the load of the other workers, after having shown them this one's."""
        if self._shared is None:
            return NO_LOAD
        self._show()
        return self._shared.of_others()

    def _show(self) -> None:
        if self._shared is not None:
            self._shared.show(self.requests, self.connections, self.pending)

    def begin(self) -> str | None:
        """Count a request that begins; if it must not, return why."""
        bound = self.policy.max_requests
        self.requests += 1
        if bound is not None and self.requests + self._others().requests > bound:
            self.requests -= 1
            self._show()
            return f"{bound} requests are under way"
        return None

    def end(self) -> None:
        """Count a request that ended.

        One that began before there was a circuit was not counted and must not make the count negative.
        """
        if self.requests:
            self.requests -= 1
            self._show()

    def acquire_connection(self) -> bool:
        """Count a connection that is about to be opened; False if it must not be.

        At the bound one that rests, to whatever endpoint, has to make room. Beyond it, as where each worker has its
        first, those in use are waited for; if there are none here, nothing would end the wait.
        """
        bound = self.policy.max_connections
        self.connections += 1
        if bound is None or self.connections == 1:
            self._show()
            return True
        count = self.connections + self._others().connections
        if count <= bound:
            return True
        self.connections -= 1
        self._show()
        if not self._resting or (count > bound + 1 and len(self._resting) < self.connections):
            return False
        oldest = next(iter(self._resting))
        del self._resting[oldest]
        oldest.make_room()
        return True

    def rest(self, connection: "Resting") -> None:
        """Hear that a counted connection rests, and let the one that has waited longest have it."""
        self._resting[connection] = None
        self.wake()

    def unrest(self, connection: "Resting") -> None:
        """Hear that a connection is in use again, or gone."""
        self._resting.pop(connection, None)

    def release_connection(self) -> None:
        """Count a connection that was closed, or could not be opened, and let the next request try."""
        if self.connections:
            self.connections -= 1
            self._show()
        self.wake()

    def wait(self, resume: Resume) -> str | None:
        """Have `resume` called, once, when a connection may be had; if too many wait already, return why it is not.

        Whoever is called back and finds nothing may wait again.
        """
        bound = self.policy.max_pending
        self._waiting[resume] = None
        if bound is not None and len(self._waiting) + self._others().pending > bound:
            self.cancel(resume)
            return f"{bound} requests wait for one of {self.policy.max_connections} connections"
        return None

    def cancel(self, resume: Resume) -> None:
        """Forget who waits; no effect on one that was called back."""
        self._waiting.pop(resume, None)
        self._show()

    def wake(self) -> None:
        """Let the one that has waited longest try: a connection was closed, or rests."""
        if self._waiting:
            resume, _ = self._waiting.popitem(last=False)
            self._show()
            resume()

    def adopt(self, policy: CircuitBreaker) -> None:
        """Go on with other bounds; requests that wait for a bound that was widened try again."""
        self.policy = policy
        for _ in range(len(self._waiting)):
            self.wake()

    def lift(self) -> None:
        """Go on without bounds: whoever waits is let through."""
        self.part()
        self.adopt(CircuitBreaker())

    def part(self) -> None:
        """Count alone from now on: the bounds are over, or others have them."""
        shared, self._shared = self._shared, None
        if shared is not None:
            shared.withdraw()
