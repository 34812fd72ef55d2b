"""Which backend of a route gets a request: the one of its session, a canary, or one of the split.

A backend that has nobody available fails its share of the requests: sending that share to the others would make 5 % of
a canary the load of all. Only a session is given up with its backend.
"""

from collections.abc import Collection, Sequence
from random import Random
from typing import TYPE_CHECKING, Protocol

from headgate.gateway.balancing.round_robin import SmoothRoundRobin
from headgate.gateway.balancing.stickiness import StickyCookie
from headgate.gateway.balancing.upstream import UpstreamHolder

if TYPE_CHECKING:
    from headgate.gateway.balancing.sessions import Session
    from headgate.gateway.proxy.endpoint_pool import EndpointPool
    from headgate.gateway.proxy.heads.facts import RequestFacts
    from headgate.gateway.proxy.request_source import RequestSource


class TakesRequests(Protocol):
    """A compiled condition."""

    def takes(self, facts: "RequestFacts") -> bool:
        """Tell whether a request satisfies it."""


class CanaryBackend:
    """A backend that some requests go to before the split is asked."""

    __slots__ = ("_chance", "_share", "_unless", "_when", "holder")

    def __init__(
        self,
        holder: UpstreamHolder,
        when: TakesRequests | None,
        unless: TakesRequests | None,
        share: float,
        chance: Random,
    ) -> None:
        self.holder = holder
        self._when = when
        self._unless = unless
        self._share = share
        self._chance = chance

    def takes(self, facts: "RequestFacts") -> bool:
        """Decide by `when`, then by `unless`, then by lot."""
        if self._when is not None and self._when.takes(facts):
            return True
        if self._unless is not None and self._unless.takes(facts):
            return False
        return self._share > 0 and self._chance.random() < self._share


class Backends:
    """The backends of a route that has more than a single one, or sessions."""

    __slots__ = ("_by_key", "_by_token", "_canaries", "_cookie", "_split")

    def __init__(
        self,
        split: Sequence[tuple[UpstreamHolder, int]],
        canaries: Sequence[CanaryBackend],
        cookie: StickyCookie | None,
    ) -> None:
        self._split = SmoothRoundRobin(split)
        self._canaries = tuple(canaries)
        self._cookie = cookie
        self._by_key = {holder.key: holder for holder in self.holders}
        self._by_token = {holder.token: holder for holder in self.holders} if cookie is not None else {}

    @property
    def holders(self) -> tuple[UpstreamHolder, ...]:
        """All that may be chosen."""
        return (*(canary.holder for canary in self._canaries), *self._split.items)

    def choose(self, tried: "Collection[EndpointPool]", source: "RequestSource") -> "EndpointPool | None":
        """Choose a backend and an endpoint of it; a request that is tried again stays with its backend."""
        facts = source.facts()
        session = self._cookie.read(facts) if self._cookie is not None else None
        if session is not None:
            pool = self._resume(session, tried, source)
            if pool is not None:
                return pool
        holder = self._by_key.get(facts.backend) if tried else None
        holder = holder or self._choose_backend(facts, session)
        if holder is None:
            return None
        facts.backend = holder.key
        return holder.choose(tried, source)

    def _resume(
        self, session: "Session", tried: "Collection[EndpointPool]", source: "RequestSource"
    ) -> "EndpointPool | None":
        holder = self._by_token.get(session.backend)
        if holder is None or self._cookie is None:
            return None
        slot = holder.balancer.resume(session.endpoint, persists=self._cookie.persists)
        if slot is None or (tried and slot.pool in tried):
            return None
        source.facts().backend = holder.key
        source.note_upstream(holder.state_for(tried))
        return slot.open_pool()

    def _choose_backend(self, facts: "RequestFacts", session: "Session | None") -> UpstreamHolder | None:
        if session is not None:
            known = self._by_token.get(session.backend)
            if known is not None and not known.balancer.unavailable:
                return known
        for canary in self._canaries:
            if canary.takes(facts):
                return canary.holder
        return self._split.choose()

    def answer_lines(self, source: "RequestSource", pool: "EndpointPool") -> bytes:
        """Return the cookie's line if the client is to have another than it has.

        A gateway of another cluster has said itself what is to be said of the session: it knows the pod.
        """
        if self._cookie is None or pool.is_hop:
            return b""
        facts = source.facts()
        holder = self._by_key.get(facts.backend)
        session = holder.balancer.session(pool) if holder is not None else None
        if holder is None or session is None:
            return b""
        current = self._cookie.read(facts)
        if current == session or (current is not None and self._is_kept(current, holder)):
            return b""
        return self._cookie.line(facts, session)

    def _is_kept(self, session: "Session", holder: UpstreamHolder) -> bool:
        """Tell whether a session outlasts a request that another endpoint had to answer."""
        return (
            self._cookie is not None
            and self._cookie.persists
            and session.backend == holder.token
            and holder.balancer.resume(session.endpoint, persists=True) is not None
        )
