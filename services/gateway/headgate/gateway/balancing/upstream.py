"""The endpoints of one upstream, balanced.

Routes refer to an `UpstreamHolder`, never to endpoints: an endpoint change stores one attribute of one holder, whatever
the number of routes that use it.

A balancer works by a plan: who may be chosen, in which share of the requests, by which policy. The plan holds until a
slot's health changes (`EndpointSlot.mark` throws it away) or its time is over (an ejection ends, a slow start moves
on), and is made anew by the next choice. So health costs nothing while nothing changes, and a plan of round robin over
healthy endpoints of one level, which nearly all are, is the ring itself.
"""

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Protocol
from weakref import ref

from headgate.common.table import Balancing, Endpoint, Upstream
from headgate.gateway.balancing.endpoints import EndpointDirectory, EndpointSlot, SlotUser
from headgate.gateway.balancing.levels import NOWHERE, Place
from headgate.gateway.balancing.planning import Plan, Planner
from headgate.gateway.balancing.round_robin import SmoothRoundRobin
from headgate.gateway.balancing.sessions import Session, backend_token, endpoint_token
from headgate.gateway.proxy.spec import PLAIN, ConnectionSpec

if TYPE_CHECKING:
    from headgate.gateway.proxy.pool import EndpointPool
    from headgate.gateway.proxy.seam import RequestSource, UpstreamState


def usable_endpoints(endpoints: Sequence[Endpoint]) -> list[Endpoint]:
    """Return who may get requests: the ready ones; if there is none, those that still serve while they terminate.

    As kube-proxy does for terminating endpoints (KEP-1669).
    """
    ready = [endpoint for endpoint in endpoints if endpoint.ready]
    return ready or [endpoint for endpoint in endpoints if endpoint.serving and endpoint.terminating]


class UpstreamBalancer:
    """One revision of an upstream.

    Args:
        key: of the upstream.
        planner: makes plans.
        draining: slots that get nothing but the requests of sessions that they have.
        resting: slots that get nothing but the requests of sessions that persist.
        unavailable: why there is nobody to plan with; empty if there is.
        clock: monotonic seconds.
    """

    __slots__ = (
        "__weakref__",
        "_clock",
        "_draining",
        "_plan",
        "_planner",
        "_resting",
        "_ring",
        "_sessions",
        "_tokens",
        "_unavailable",
        "key",
    )

    def __init__(
        self,
        key: str,
        planner: Planner,
        draining: Iterable[EndpointSlot],
        resting: Iterable[EndpointSlot],
        unavailable: str,
        clock: Callable[[], float],
    ) -> None:
        self.key = key
        self._planner = planner
        self._draining = frozenset(draining)
        self._resting = frozenset(resting)
        self._unavailable = unavailable
        self._clock = clock
        self._plan: Plan | None = None
        """None: to be made before the next choice."""
        self._ring: SmoothRoundRobin[EndpointSlot] | None = None
        """The plan, if it is a ring and has no end."""
        self._tokens: dict[EndpointSlot, bytes] = {}
        """Filled when the first session is asked for."""
        self._sessions: dict[bytes, EndpointSlot] = {}
        myself: ref[SlotUser] = ref(self)
        for slot in planner.slots:
            slot.add_user(myself)

    @property
    def slots(self) -> Sequence[EndpointSlot]:
        """Who may get new requests while healthy."""
        return self._planner.slots

    @property
    def unavailable(self) -> str:
        """Why there is nobody to choose; empty if there is."""
        if self._unavailable or self._current_plan().picker is not None:
            return self._unavailable
        return f"none of the {len(self.slots)} endpoints of {self.key} that are ready is healthy"

    def choose(self, tried: "Collection[EndpointPool]", source: "RequestSource") -> "EndpointPool | None":
        """Return the next endpoint's pool, a tried one only if there is no other; None if there is none."""
        ring = self._ring
        if ring is not None and not tried:
            slot = ring.choose()
        else:
            slot = self.pick([slot for slot in self.slots if slot.pool in tried] if tried else (), source)
        if slot is None:
            return None
        return slot.pool or slot.open_pool()

    def pick(self, tried: Collection[EndpointSlot], source: "RequestSource") -> EndpointSlot | None:
        """Return the next endpoint, for what needs no pool."""
        picker = self._current_plan().picker
        return None if picker is None else picker.choose(tried, source)

    def note_change(self) -> None:
        """Plan anew before the next choice."""
        self._plan = None
        self._ring = None

    def mark(self, slot: EndpointSlot, *, is_available: bool) -> None:
        """Take an endpoint out of this upstream, or let it back in; later revisions go on with that."""
        self._planner.mark(slot, is_available=is_available)
        # A revision that is about to replace this one has to plan anew as well, and is known by the slot.
        slot.notify_users()

    def adopt(self, previous: "UpstreamBalancer") -> None:
        """Take over the balancing state for unchanged endpoints."""
        self._planner.adopt(previous._planner)
        self._tokens = dict(previous._tokens)
        self.note_change()

    def plan_now(self) -> None:
        """Make the first plan, rather than at the first request."""
        self._current_plan()

    def _current_plan(self) -> Plan:
        plan = self._plan
        if plan is None or (plan.ends_at != math.inf and self._clock() >= plan.ends_at):
            plan = self._plan = self._planner.make_plan(self._clock())
            self._ring = plan.ring
        return plan

    # Sessions

    def resume(self, endpoint: bytes, *, persists: bool) -> EndpointSlot | None:
        """Return the slot that a session is with; None if it is to be given up.

        A session that persists is kept for as long as the endpoint is in the table; another one for as long as it is
        ready or drains, and is not out for its health.
        """
        if not self._sessions:
            self._index_sessions()
        slot = self._sessions.get(endpoint)
        if slot is None or persists:
            return slot
        if slot in self._draining:
            is_kept = self._planner.is_fit(slot, self._clock())
        else:
            is_kept = slot not in self._resting and slot not in self._current_plan().out
        return slot if is_kept else None

    def session(self, pool: "EndpointPool") -> Session | None:
        """Return what names an endpoint in a cookie; None if it is not of this upstream any more."""
        if not self._sessions:
            self._index_sessions()
        slot = next((slot for slot in self._tokens if slot.pool is pool), None)
        return Session(backend_token(self.key), self._tokens[slot]) if slot is not None else None

    def _index_sessions(self) -> None:
        known = self._tokens
        slots = (*self.slots, *self._draining, *self._resting)
        self._tokens = {slot: known.get(slot) or endpoint_token(self.key, slot.name) for slot in slots}
        self._sessions = {token: slot for slot, token in self._tokens.items()}


def compile_upstream(
    upstream: Upstream,
    directory: EndpointDirectory,
    offset: int,
    place: Place = NOWHERE,
    previous: UpstreamBalancer | None = None,
    spec: ConnectionSpec = PLAIN,
    named: Mapping[tuple[str, int], ConnectionSpec] | None = None,
) -> UpstreamBalancer:
    """Make the balancer of an upstream.

    Args:
        upstream: its entry.
        directory: where slots are found.
        offset: how many turns it begins with.
        place: where this gateway is.
        previous: the revision before.
        spec: how its endpoints are connected to.
        named: the same for those that have a DNS name, by address and port.
    """

    def slot(endpoint: Endpoint) -> EndpointSlot:
        own = named.get((endpoint.address, endpoint.port), spec) if named else spec
        return directory.slot(endpoint.address, endpoint.port, own)

    usable = usable_endpoints(upstream.endpoints)
    chosen = [(endpoint, slot(endpoint)) for endpoint in usable if endpoint.weight]
    taken = {id(endpoint) for endpoint, _ in chosen}
    others = [endpoint for endpoint in upstream.endpoints if id(endpoint) not in taken]
    balancer = UpstreamBalancer(
        upstream.key,
        Planner(upstream.balancing, chosen, directory.clock, directory.chance, offset, place),
        [slot(endpoint) for endpoint in others if _may_finish_sessions(endpoint)],
        [slot(endpoint) for endpoint in others if not _may_finish_sessions(endpoint)],
        "" if chosen else why_unavailable(upstream),
        directory.clock,
    )
    if previous is not None:
        balancer.adopt(previous)
    balancer.plan_now()
    return balancer


def _may_finish_sessions(endpoint: Endpoint) -> bool:
    return endpoint.ready or (endpoint.serving and endpoint.terminating)


def why_unavailable(upstream: Upstream) -> str:
    """Say why an upstream has nobody to send to."""
    if upstream.unavailable:
        return upstream.unavailable
    if not upstream.endpoints:
        return f"{upstream.key} has no endpoints"
    if usable_endpoints(upstream.endpoints):
        return f"all ready endpoints of {upstream.key} have weight 0"
    return f"none of the {len(upstream.endpoints)} endpoints of {upstream.key} is ready"


_NOBODY = Planner(Balancing(), (), time.monotonic, Random(0))  # noqa: S311 - it has nothing to draw


def missing_balancer(key: str) -> UpstreamBalancer:
    """Stand in for an upstream that routes refer to and the table lacks."""
    return UpstreamBalancer(key, _NOBODY, (), (), f"{key} is not in the table", time.monotonic)


class CountsRetries(Protocol):
    """What knows the retry budgets of upstreams without policies: `health.policies.WatchesUpstreams`."""

    def count_retries(self, key: str, slots: Iterable[EndpointSlot]) -> "UpstreamState | None":
        """Return what counts the retries of an upstream."""


class UpstreamHolder:
    """Where routes find the current revision of an upstream."""

    __slots__ = ("__weakref__", "balancer", "health", "key", "state", "token")

    def __init__(self, key: str) -> None:
        self.key = key
        self.token = backend_token(key)
        """What names it in cookies."""
        self.balancer = missing_balancer(key)
        self.state: UpstreamState | None = None
        """What is remembered of its health and load; None: nothing that requests have to do with."""
        self.health: CountsRetries | None = None
        """Where retries are counted if there is nothing else to remember."""

    def state_for(self, tried: "Collection[EndpointPool]") -> "UpstreamState | None":
        """Return what a request has to do with: `state`, or what counts its retry once something was tried."""
        if self.state is not None or not tried or self.health is None:
            return self.state
        return self.health.count_retries(self.key, self.balancer.slots)

    def choose(self, tried: "Collection[EndpointPool]", source: "RequestSource") -> "EndpointPool | None":
        """Choose an endpoint for a request to this upstream; as `UpstreamBalancer.choose`."""
        source.note_upstream(self.state_for(tried))
        return self.balancer.choose(tried, source)

    @property
    def unavailable(self) -> str:
        """Why there is nobody to choose; empty if there is."""
        return self.balancer.unavailable

    def mark(self, slot: EndpointSlot, is_available: bool) -> None:
        """Take an endpoint out of this upstream, or let it back in, whatever other upstreams think of it."""
        self.balancer.mark(slot, is_available=is_available)
