"""The way of a request through the backends of its route, and of groups within groups, to an upstream.

A session goes before every other choice: the cookie of a route or group names the way below it and the endpoint. Only a
session is given up with its backend.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from headgate.gateway.balancing.backends import BackendSet, CompiledBackend
from headgate.gateway.balancing.sessions import StickySession

if TYPE_CHECKING:
    from headgate.gateway.balancing.endpoints import EndpointSlot
    from headgate.gateway.balancing.groups import GroupHolder
    from headgate.gateway.balancing.stickiness import StickyCookie
    from headgate.gateway.balancing.upstream import UpstreamHolder
    from headgate.gateway.proxy.endpoint_pool import EndpointPool
    from headgate.gateway.proxy.heads.facts import RequestFacts
    from headgate.gateway.proxy.request_source import RequestSource


class Step(NamedTuple):
    """One choice."""

    among: BackendSet
    backend: CompiledBackend


class _Trail(NamedTuple):
    """What is left to be followed of a session."""

    backends: Sequence[bytes] = ()
    endpoint: bytes = b""
    persists: bool = False
    is_by_url: bool = False


_NO_TRAIL: Final = _Trail()


class Way:
    """All choices of one request."""

    __slots__ = ("_trail", "ahead", "refusal", "steps", "upstream")

    def __init__(
        self, steps: Sequence[Step], trail: _Trail = _NO_TRAIL, refusal: str = "", ahead: BackendSet | None = None
    ) -> None:
        self.steps = steps
        self.ahead = ahead
        """The choice that `further` makes once the hooks on the way so far have run; None: there is none."""
        self.refusal = refusal
        """Why it leads nowhere; empty if it does not."""
        self.upstream: UpstreamHolder | None = None if refusal else steps[-1].backend.upstream
        self._trail = trail

    @property
    def key(self) -> str:
        """Key of the upstream; empty if the way leads nowhere."""
        return self.upstream.key if self.upstream is not None else ""

    @property
    def is_plain(self) -> bool:
        """Whether nothing is to be done on the way."""
        is_done = self.ahead is None
        return is_done and not any(
            step.backend.hooks is not None or step.backend.keeps_body or step.among.statuses for step in self.steps
        )

    @property
    def sending(self) -> Iterator[CompiledBackend]:
        """The backends on the way that say how requests are sent, the outermost first."""
        return (step.backend for step in self.steps if step.backend.changes_sending)

    @property
    def unavailable(self) -> str:
        """Why `choose` found nothing."""
        return self.refusal or (self.upstream.unavailable if self.upstream is not None else "")

    def choose(self, tried: "Collection[EndpointPool]", source: "RequestSource") -> "EndpointPool | None":
        """Choose an endpoint of the upstream: that of the session, if there is one that was not tried."""
        upstream, trail = self.upstream, self._trail
        if upstream is None:
            return None
        if trail.endpoint:
            slot = _resume(upstream, trail)
            if slot is not None and not (tried and slot.pool in tried):
                source.note_upstream(upstream.state_for(tried))
                return slot.open_pool()
        return upstream.choose(tried, source)

    def answer_lines(self, source: "RequestSource", pool: "EndpointPool") -> bytes:
        """Return the cookies' lines for a client that is to have others than it has.

        A gateway of another cluster has said itself what is to be said of the session: it knows the pod.
        """
        if self.upstream is None or pool.is_hop:
            return b""
        lines, facts = b"", source.facts()
        for index, step in enumerate(self.steps):
            cookie = step.among.cookie
            if cookie is None or not step.backend.keeps_sessions:
                continue
            if cookie.is_by_backend:
                lines += self._line(step.among, facts, StickySession((step.backend.token,), b""))
            else:
                endpoint = self.upstream.balancer.token_of(pool, by_url=cookie.is_by_url)
                if endpoint:
                    left = () if cookie.is_by_url else self.steps[index:]
                    tokens = tuple(each.backend.token for each in left)
                    lines += self._line(step.among, facts, StickySession(tokens, endpoint))
        return lines

    def _line(self, among: BackendSet, facts: "RequestFacts", session: StickySession) -> bytes:
        cookie = among.cookie
        assert cookie is not None
        current = cookie.read(facts)
        if current == session:
            return b""
        if current is not None and cookie.keeps_on_failure and self._is_kept(current, session, cookie):
            return b""
        return cookie.line(facts, session)

    def _is_kept(self, current: StickySession, session: StickySession, cookie: "StickyCookie") -> bool:
        """Tell whether a session outlasts a request that another endpoint had to answer."""
        assert self.upstream is not None
        trail = _Trail((), current.endpoint, cookie.persists, cookie.is_by_url)
        return _resume(self.upstream, trail) is not None and current.backends == session.backends

    def fallback_of(self, status: int) -> int | None:
        """Return the choice that is made otherwise after an answer of the main backend with a status, the innermost
        first; None: none is.
        """
        for index in reversed(range(len(self.steps))):
            among, backend = self.steps[index]
            if status in among.statuses and backend is among.backends[0]:
                return index
        return None

    def fall_back(self, step: int, source: "RequestSource") -> "Way":
        """Return the way that goes to the fallback at a choice."""
        among = self.steps[step].among
        return _go_on((*self.steps[:step], Step(among, among.backends[1])), _NO_TRAIL, source)

    def further(self, facts: "RequestFacts", source: "RequestSource") -> "Way | None":
        """Return the way that goes on at the choice ahead; None: no backend there takes the request.

        Args:
            facts: the request as hooks have made it.
            source: the request.
        """
        ahead = self.ahead
        assert ahead is not None
        assert ahead.by_match is not None
        backend = ahead.by_match.match(facts)
        return None if backend is None else _go_on((*self.steps, Step(ahead, backend)), _NO_TRAIL, source)


def choose_way(among: BackendSet, source: "RequestSource") -> Way:
    """Choose the way of a request, and note where it leads."""
    return _choose(among, (), _NO_TRAIL, source)


def choose_endpoint(
    among: BackendSet, tried: "Collection[EndpointPool]", source: "RequestSource"
) -> "EndpointPool | None":
    """Choose the way of a request and an endpoint; one that is tried again stays on its way."""
    facts = source.facts()
    if among.is_plain:
        return _choose_plainly(among, tried, source, facts)
    way = facts.chosen if tried else None
    if not isinstance(way, Way):
        way = facts.chosen = _whole(choose_way(among, source), source)
    return way.choose(tried, source)


def _whole(way: Way, source: "RequestSource") -> Way:
    """Return a way to its end, of a request that no hooks change."""
    while way.ahead is not None:
        refusal = f"no backend of {way.ahead.name} takes the request"
        way = way.further(source.facts(), source) or Way(way.steps, refusal=refusal)
    return way


def _choose_plainly(
    among: BackendSet, tried: "Collection[EndpointPool]", source: "RequestSource", facts: "RequestFacts"
) -> "EndpointPool | None":
    """Choose an upstream and an endpoint, as nearly all routes with several have it: a way would take longer."""
    backend = facts.chosen if tried else None
    if not isinstance(backend, CompiledBackend):
        backend = facts.chosen = among.pick(source)
    if backend is None or backend.upstream is None:
        return None
    facts.backend = backend.upstream.key
    return backend.upstream.choose(tried, source)


class GroupEndpoints:
    """The endpoints that a group leads to, for requests of the gateway's own."""

    __slots__ = ("_holder", "key")

    def __init__(self, holder: "GroupHolder") -> None:
        self.key = holder.key
        self._holder = holder

    def choose(self, tried: "Collection[EndpointPool]", source: "RequestSource") -> "EndpointPool | None":
        """Choose an endpoint by the group as it is now."""
        return choose_endpoint(self._holder.current, tried, source)

    @property
    def unavailable(self) -> str:
        """Why `choose` found nothing."""
        return self._holder.unavailable


def _choose(among: BackendSet, steps: Sequence[Step], trail: _Trail, source: "RequestSource") -> Way:
    """Go on from a set of backends."""
    if among.fault:
        return Way(steps, refusal=among.fault)
    if not trail.backends and among.cookie is not None:
        session = among.cookie.read(source.facts())
        if session is not None:
            backends = session.backends or among.only_token
            trail = _Trail(backends, session.endpoint, among.cookie.persists, among.cookie.is_by_url)
    backend = among.find(trail.backends[0]) if trail.backends else None
    if backend is not None and _can_resume(backend, _behind(trail)):
        trail = _behind(trail)
    else:
        backend, trail = among.pick(source), _NO_TRAIL
    if backend is None:
        return Way(steps, refusal=f"all backends of {among.name} have weight 0")
    return _go_on((*steps, Step(among, backend)), trail, source)


def _go_on(steps: Sequence[Step], trail: _Trail, source: "RequestSource") -> Way:
    """Go on behind a choice."""
    backend = steps[-1].backend
    if backend.group is None:
        way = Way(steps, trail if not trail.backends else _NO_TRAIL)
        source.facts().backend = way.key
        return way
    current = backend.group.current
    if current.by_match is not None and not current.fault:
        return Way(steps, ahead=current)
    return _choose(current, steps, trail, source)


def _behind(trail: _Trail) -> _Trail:
    return trail._replace(backends=trail.backends[1:])


def _resume(upstream: "UpstreamHolder", trail: _Trail) -> "EndpointSlot | None":
    return upstream.balancer.resume(trail.endpoint, persists=trail.persists, by_url=trail.is_by_url)


def _can_resume(backend: CompiledBackend, trail: _Trail) -> bool:
    """Tell whether a session can go on with a backend: its endpoint is there, or another one."""
    if backend.upstream is not None and not trail.backends:
        if _resume(backend.upstream, trail) is not None:
            return True
    elif backend.group is not None and trail.backends:
        within = backend.group.current.find(trail.backends[0])
        if within is not None and not backend.group.current.fault and _can_resume(within, _behind(trail)):
            return True
    return not backend.unavailable
