"""The endpoints of one upstream, balanced.

Routes refer to an `UpstreamHolder`, never to endpoints: an endpoint change stores one attribute of one holder, whatever
the number of routes that use it.

A balancer works by a plan: who may be chosen, in which share of the requests, by which policy. The plan holds until a
slot's health changes (`EndpointSlot.mark` throws it away) or its time is over (an ejection ends, a slow start moves
on), and is made anew by the next choice. So health costs nothing while nothing changes. Round robin over healthy
endpoints of one level and equal weights, which nearly all upstreams are, needs neither plan nor planner but a ring:
they are made when the first endpoint is out. That saves half of the time and most of the memory an upstream takes.
"""

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import ref

from headgate.common.table import Balancing
from headgate.gateway.balancing.detours import Detours
from headgate.gateway.balancing.endpoints import EndpointSlot, SlotUser
from headgate.gateway.balancing.on_use import OnUse
from headgate.gateway.balancing.planning import EndpointPlan, Marks, Planner
from headgate.gateway.balancing.round_robin import SmoothRoundRobin, Turns
from headgate.gateway.balancing.sessions import backend_token, endpoint_token, old_traefik_tokens, traefik_token
from headgate.gateway.model.steps import Steps, finish

if TYPE_CHECKING:
    from headgate.gateway.health.ejection import Outcome
    from headgate.gateway.proxy.endpoint_pool import EndpointPool
    from headgate.gateway.proxy.request_source import RequestSource, UpstreamState

HEARD_AT_ONCE = 2048
"""Endpoints that a balancer begins to hear of between two turns of the event loop: about a millisecond."""
_UNFINISHED = EndpointPlan(None, frozenset(), math.inf)
_NO_SLOTS: frozenset[EndpointSlot] = frozenset()
_NONE_YET: Mapping[Any, Any] = MappingProxyType({})


class UpstreamBalancer:
    """One revision of an upstream.

    Args:
        key: of the upstream.
        balancing: what the upstream wants.
        turns: makes plans; or all there is to plan; or has it as soon as there is a request.
        marks: who is out of this upstream.
        draining: slots that get nothing but the requests of sessions that they have.
        resting: slots that get nothing but the requests of sessions that persist.
        unavailable: why there is nobody to plan with; empty if there is.
        clock: monotonic seconds.
        chance: what random choices are drawn from.
        detours: how pods are named and reached that are local to a cluster; None: there are none.
    """

    __slots__ = (
        "__weakref__",
        "_balancing",
        "_chance",
        "_clock",
        "_detours",
        "_draining",
        "_elsewhere",
        "_later",
        "_marks",
        "_old_urls",
        "_plan",
        "_planner",
        "_resting",
        "_ring",
        "_sessions",
        "_slots",
        "_tokens",
        "_unavailable",
        "_urls",
        "key",
    )

    def __init__(
        self,
        key: str,
        balancing: Balancing,
        turns: Turns[EndpointSlot] | Planner | OnUse,
        marks: Marks,
        draining: Collection[EndpointSlot],
        resting: Collection[EndpointSlot],
        unavailable: str,
        clock: Callable[[], float],
        chance: Random,
        detours: Detours | None = None,
    ) -> None:
        self.key = key
        self._detours = detours
        self._balancing = balancing
        self._marks = marks
        self._draining = frozenset(draining) if draining else _NO_SLOTS
        self._resting = frozenset(resting) if resting else _NO_SLOTS
        self._unavailable = unavailable
        self._clock = clock
        self._chance = chance
        self._later: OnUse | None = None
        """Endpoints without slots yet."""
        self._planner: Planner | None = None
        """None: the ring has all slots, and nobody was ever out."""
        self._plan: EndpointPlan | None = None
        """None: to be made before the next choice, if there is a planner."""
        self._ring: Turns[EndpointSlot] | None = None
        """The plan, if it is a ring and has no end."""
        self._tokens: Mapping[EndpointSlot, bytes] = _NONE_YET
        """Filled when the first session is asked for, as are the next two."""
        self._sessions: Mapping[bytes, EndpointSlot] = _NONE_YET
        self._elsewhere: Mapping[bytes, Sequence[EndpointSlot]] = _NONE_YET
        """Sessions with pods that only other gateways reach, and who these are."""
        self._urls: Mapping[bytes, Sequence[EndpointSlot]] = _NONE_YET
        """Sessions of cookies that name endpoints by their URLs; below as earlier releases of Traefik wrote them."""
        self._old_urls: Mapping[bytes, Sequence[EndpointSlot]] = _NONE_YET
        self._slots: Sequence[EndpointSlot] = ()
        if isinstance(turns, OnUse):
            self._later = turns
        elif isinstance(turns, Planner):
            self._planner, self._slots = turns, turns.slots
        else:
            self._ring, self._slots = turns, turns.items

    @property
    def is_at_rest(self) -> bool:
        """Whether nobody has asked for an endpoint yet, so that there are no slots."""
        return self._later is not None

    @property
    def slots(self) -> Sequence[EndpointSlot]:
        """Who may get new requests while healthy."""
        self._ensure_slots()
        return self._slots

    @property
    def size(self) -> int:
        """How many endpoints it has that get requests, or those of sessions."""
        if self._later is not None:
            return self._later.count
        return len(self._slots) + len(self._draining) + len(self._resting)

    def _ensure_slots(self) -> None:
        """Make the slots, if there are none yet."""
        later = self._later
        if later is None:
            return
        self._later = None
        ring = self._ring = later.ring()
        self._slots = ring.items
        finish(self._hear())

    @property
    def unavailable(self) -> str:
        """Why there is nobody to choose; empty if there is."""
        self._ensure_slots()
        if self._unavailable or self._planner is None or self._current_plan(self._planner).picker is not None:
            return self._unavailable
        return f"none of the {len(self.slots)} endpoints of {self.key} that are ready is healthy"

    @property
    def has_healthy(self) -> bool:
        """Whether an endpoint that gets new requests is healthy; without one they may go to unhealthy ones."""
        self._ensure_slots()
        if self._unavailable or self._planner is None:
            return not self._unavailable
        return self._current_plan(self._planner).has_healthy

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
        self._ensure_slots()
        if self._planner is None:
            assert self._ring is not None
            return self._ring.choose(tried.__contains__ if tried else None)
        plan = self._current_plan(self._planner)
        slot = None if plan.picker is None else plan.picker.choose(tried, source)
        if tried and slot in tried:
            return self._planner.find_untried(tried, plan.out) or slot
        return slot

    def note_change(self) -> None:
        """Plan anew before the next choice."""
        if self._later is not None:
            return  # the first plan is still to be made
        self._planner = self._find_planner()
        self._plan = None
        self._ring = None

    def _find_planner(self) -> Planner:
        if self._planner is not None:
            return self._planner
        assert self._ring is not None
        return Planner.of_ring(self._balancing, self._ring, self._marks, self._clock, self._chance)

    def mark(self, slot: EndpointSlot, *, is_available: bool) -> None:
        """Take an endpoint out of this upstream, or let it back in; later revisions go on with that."""
        self._marks.set(slot, is_available=is_available)
        # A revision that is about to replace this one has to plan anew as well, and is known by the slot.
        slot.notify_users()

    def adopt(self, previous: "UpstreamBalancer") -> None:
        """Take over the balancing state for unchanged endpoints."""
        self._marks = previous._marks
        if previous._later is not None:
            if self._later is not None:
                return
            previous._ensure_slots()
        self._ensure_slots()
        self._tokens = previous._tokens if previous._detours is None else _NONE_YET
        if self._ring is not None and previous._ring is not None:
            self._ring.adopt(previous._ring)
            return
        self.note_change()
        self._find_planner().adopt(previous._find_planner())

    def prepare(self, previous: "UpstreamBalancer | None" = None) -> Steps[None]:
        """Get ready to choose: once, before the first choice. Goes on where the revision before stands."""
        if self._later is not None:
            if previous is not None:
                self.adopt(previous)
            return
        yield from self._hear(previous)
        planner = self._planner
        if planner is not None:
            yield from planner.prepare()
            self._plan = _UNFINISHED
            plan = yield from planner.make_plan(self._clock())
            if self._plan is _UNFINISHED:  # no slot has changed meanwhile
                self._take_plan(plan)

    def _hear(self, previous: "UpstreamBalancer | None" = None) -> Steps[None]:
        """Hear of the slots from now on, and heed what is known of them."""
        myself: tuple[ref[SlotUser]] = (ref(self),)
        for start in range(0, len(self.slots), HEARD_AT_ONCE):
            if start:
                yield
            for slot in self.slots[start : start + HEARD_AT_ONCE]:
                slot.add_user(myself)
        if previous is not None:
            self.adopt(previous)
        if self._planner is None and (self._marks.out or any(slot.is_suspect for slot in self.slots)):
            self.note_change()

    def _current_plan(self, planner: Planner) -> EndpointPlan:
        plan = self._plan
        if plan is None or (plan.ends_at != math.inf and self._clock() >= plan.ends_at):
            plan = finish(planner.make_plan(self._clock()))
            self._take_plan(plan)
        return plan

    def _take_plan(self, plan: EndpointPlan) -> None:
        self._plan = plan
        self._ring = plan.ring

    # Sessions

    def resume(self, endpoint: bytes, *, persists: bool, by_url: bool = False) -> EndpointSlot | None:
        """Return the slot that a session is with; None if it is to be given up. `by_url`: it names the endpoint's URL.

        A session that persists is kept for as long as the endpoint is in the table; another one for as long as it is
        ready or drains, and is not out for its health.
        """
        candidates = self._find_by_url(endpoint) if by_url and self._detours is None else self._find(endpoint)
        kept = next(filter(self._is_kept, candidates), None)
        return candidates[0] if kept is None and persists and candidates else kept

    def _find(self, endpoint: bytes) -> Sequence[EndpointSlot]:
        if not self._sessions:
            self._index_sessions()
        slot = self._sessions.get(endpoint)
        return self._elsewhere.get(endpoint, ()) if slot is None else (slot,)

    def _find_by_url(self, endpoint: bytes) -> Sequence[EndpointSlot]:
        if not self._urls:
            self._urls = {traefik_token(slot.url): (slot,) for slot in self._known_slots()}
        found = self._urls.get(endpoint)
        if found is not None:
            return found
        if not self._old_urls:
            known = self._known_slots()[:_MOST_OLD]
            self._old_urls = {token: (slot,) for slot in known for token in old_traefik_tokens(slot.url)}
        return self._old_urls.get(endpoint, ())

    def _known_slots(self) -> Sequence[EndpointSlot]:
        return (*self.slots, *self._draining, *self._resting)

    def _is_kept(self, slot: EndpointSlot) -> bool:
        if slot in self._draining:
            return self._marks.is_fit(slot, self._clock())
        return slot not in self._resting and not self._is_out(slot)

    def _is_out(self, slot: EndpointSlot) -> bool:
        return self._planner is not None and slot in self._current_plan(self._planner).out

    def token_of(self, pool: "EndpointPool", *, by_url: bool = False) -> bytes:
        """Return what names an endpoint in a cookie; empty if it is not of this upstream any more."""
        if not self._sessions:
            self._index_sessions()
        slot = next((slot for slot in self._tokens if slot.pool is pool), None)
        if slot is None:
            return b""
        # Other gateways know the pods of their clusters by their keyed names alone.
        return traefik_token(slot.url) if by_url and self._detours is None else self._tokens[slot]

    def _index_sessions(self) -> None:
        known = self._tokens
        slots = self._known_slots()
        names = self._detours.names if self._detours is not None else _NONE_YET
        self._tokens = {
            slot: endpoint_token(self.key, names[slot])
            if slot in names
            else known.get(slot) or endpoint_token(self.key, slot.name)
            for slot in slots
        }
        self._sessions = {token: slot for slot, token in self._tokens.items()}
        if self._detours is not None:
            self._elsewhere = {
                token: _begin_at(token[0] % len(gateways), gateways)
                for name, gateways in self._detours.gateways.items()
                for token in (endpoint_token(self.key, name),)
            }


def _begin_at(start: int, slots: Sequence[EndpointSlot]) -> Sequence[EndpointSlot]:
    """Put slots in a different order for different sessions, so that not all of them have the same first one."""
    return (*slots[start:], *slots[:start])


_MOST_OLD: Final = 1000
"""Endpoints whose cookies of old releases of Traefik are known: each takes some 10 us, once for a revision."""
_NOBODY: SmoothRoundRobin[EndpointSlot] = SmoothRoundRobin(())
_NO_WISHES = Balancing()
_NO_CHANCE = Random(0)  # noqa: S311 - nobody is drawn


def missing_balancer(key: str) -> UpstreamBalancer:
    """Stand in for an upstream that routes refer to and the table lacks."""
    reason = _why_missing(key)
    return UpstreamBalancer(key, _NO_WISHES, _NOBODY, Marks(), (), (), reason, time.monotonic, _NO_CHANCE)


def _why_missing(key: str) -> str:
    return f"{key} is not in the table"


_NOT_YET: Final = missing_balancer("an upstream")
"""That of all upstreams that were in no table yet, as nearly all are only while one is compiled."""


class CountsRetries(Protocol):
    """What knows the retry budgets of upstreams without policies: `health.policies.WatchesUpstreams`."""

    def count_retries(self, key: str, slots: Iterable[EndpointSlot]) -> "UpstreamState | None":
        """Return what counts the retries of an upstream."""


class UpstreamHolder:
    """Where routes find the current revision of an upstream."""

    __slots__ = ("__weakref__", "_token", "balancer", "health", "key", "state")

    def __init__(self, key: str) -> None:
        self.key = key
        self._token = b""
        self.balancer = _NOT_YET
        self.state: UpstreamState | None = None
        """What is remembered of its health and load; None: nothing that requests have to do with."""
        self.health: CountsRetries | None = None
        """Where retries are counted if there is nothing else to remember."""

    @property
    def token(self) -> bytes:
        """What names it in cookies."""
        token = self._token = self._token or backend_token(self.key)
        return token

    def state_for(self, tried: "Collection[EndpointPool]") -> "UpstreamState | None":
        """Return what a request has to do with: `state`, or what counts its retry once something was tried."""
        if self.state is not None or not tried or self.health is None:
            return self.state
        return self.health.count_retries(self.key, self.balancer.slots)

    def choose(self, tried: "Collection[EndpointPool]", source: "RequestSource") -> "EndpointPool | None":
        """Choose an endpoint for a request to this upstream; as `UpstreamBalancer.choose`."""
        source.note_upstream(self.state_for(tried))
        return self.balancer.choose(tried, source)

    def report(self, pool: "EndpointPool", outcome: "Outcome") -> None:
        """Learn how it went with an endpoint, for what is no request."""
        if self.state is not None:
            self.state.report_pool(pool, outcome)

    @property
    def unavailable(self) -> str:
        """Why there is nobody to choose; empty if there is."""
        return _why_missing(self.key) if self.balancer is _NOT_YET else self.balancer.unavailable

    @property
    def has_healthy(self) -> bool:
        """Whether an endpoint that gets new requests is healthy."""
        return self.balancer.has_healthy

    def mark(self, slot: EndpointSlot, is_available: bool) -> None:
        """Take an endpoint out of this upstream, or let it back in, whatever other upstreams think of it."""
        self.balancer.mark(slot, is_available=is_available)
