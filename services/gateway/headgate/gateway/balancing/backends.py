"""The backends of a route or of a group, and which of them gets a request.

A backend without an available endpoint fails its share of the requests: sending that share to the others would make
5 % of a canary the load of all. Hashed groups pass over it, as their backends are there for each other.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, NamedTuple, Protocol

from headgate.common.table import Timeouts
from headgate.gateway.balancing.hashing import NamedWeight, RequestHash, make_rendezvous
from headgate.gateway.balancing.round_robin import SmoothRoundRobin
from headgate.gateway.balancing.sessions import backend_token, old_traefik_tokens, traefik_token
from headgate.gateway.balancing.stickiness import StickyCookie
from headgate.gateway.balancing.upstream import UpstreamHolder
from headgate.gateway.model.steps import finish

if TYPE_CHECKING:
    from headgate.gateway.balancing.groups import GroupHolder
    from headgate.gateway.proxy.heads.facts import RequestFacts
    from headgate.gateway.proxy.hooks import RequestHooks
    from headgate.gateway.proxy.policies import RetryPolicy
    from headgate.gateway.proxy.request_source import RequestSource

NO_TIMEOUTS = Timeouts()


class TakesRequests(Protocol):
    """A compiled condition."""

    @property
    def needs_body(self) -> bool:
        """Whether it looks at the request's body."""

    def takes(self, facts: "RequestFacts") -> bool:
        """Tell whether a request satisfies it."""


class CompiledBackend:
    """One backend: an upstream or a group, and what is done on the way there."""

    __slots__ = (
        "group",
        "hooks",
        "keeps_body",
        "keeps_sessions",
        "retries",
        "session_name",
        "timeouts",
        "token",
        "upstream",
    )

    def __init__(
        self,
        target: "UpstreamHolder | GroupHolder",
        hooks: "RequestHooks | None" = None,
        timeouts: Timeouts = NO_TIMEOUTS,
        *,
        retries: "RetryPolicy | None" = None,
        keeps_body: int = 0,
        keeps_sessions: bool = True,
        session_name: str = "",
    ) -> None:
        self.keeps_sessions = keeps_sessions
        """Whether cookies may name it."""
        self.upstream = target if isinstance(target, UpstreamHolder) else None
        self.group = None if isinstance(target, UpstreamHolder) else target
        self.hooks = hooks
        self.timeouts = timeouts
        self.retries = retries
        """In the place of the route's; None: those of the route."""
        self.keeps_body = keeps_body
        """Bytes of a body that is read before it is passed on; 0: as the route says."""
        self.session_name = session_name.encode()
        """By which cookies of Traefik know it; empty: none do."""
        self.token = traefik_token(self.session_name) if session_name else target.token
        """What names it in cookies, among the backends that it is one of."""

    @property
    def target(self) -> "UpstreamHolder | GroupHolder":
        """Where its requests go."""
        target = self.upstream or self.group
        assert target is not None
        return target

    @property
    def is_plain(self) -> bool:
        """Whether nothing is to be done on the way there."""
        return self.upstream is not None and self.hooks is None and not self.changes_sending

    @property
    def changes_sending(self) -> bool:
        """Whether requests are sent otherwise than the route says."""
        return self.retries is not None or self.keeps_body > 0 or self.timeouts != NO_TIMEOUTS

    @property
    def unavailable(self) -> str:
        """Why it has no endpoint; empty if it has."""
        return self.target.unavailable

    @property
    def has_healthy(self) -> bool:
        """Whether it has a healthy endpoint."""
        return self.target.has_healthy


class CanaryBackend(NamedTuple):
    """A backend that some requests go to before the split is asked."""

    backend: CompiledBackend
    when: TakesRequests | None
    unless: TakesRequests | None
    share: float
    chance: Random
    needs_main: bool = False
    """Takes requests only while a backend of the split has an endpoint."""

    @property
    def needs_body(self) -> bool:
        """Whether it can only be told by the request's body."""
        return any(condition is not None and condition.needs_body for condition in (self.when, self.unless))

    def takes(self, facts: "RequestFacts") -> bool:
        """Decide by `when`, then by `unless`, then by lot."""
        if self.when is not None and self.when.takes(facts):
            return True
        if self.unless is not None and self.unless.takes(facts):
            return False
        return self.share > 0 and self.chance.random() < self.share


class Picker(Protocol):
    """How one of several backends is chosen."""

    @property
    def backends(self) -> Sequence[CompiledBackend]:
        """All that may be chosen."""

    def pick(self, source: "RequestSource") -> CompiledBackend | None:
        """Choose one for a request without a session; None: none takes any."""


class SplitPicker:
    """Canaries, and then turns by weight."""

    def __init__(self, split: Sequence[tuple[CompiledBackend, int]], canaries: Sequence[CanaryBackend] = ()) -> None:
        self._turns = SmoothRoundRobin(split)
        self._canaries = tuple(canaries)
        self.backends = (*(canary.backend for canary in canaries), *self._turns.items)

    def pick(self, source: "RequestSource") -> CompiledBackend | None:
        """Ask the canaries in their order, then take the next turn."""
        if self._canaries:
            facts = source.facts()
            for canary in self._canaries:
                if canary.takes(facts) and not (canary.needs_main and self._is_unavailable()):
                    return canary.backend
        return self._turns.choose()

    def _is_unavailable(self) -> bool:
        return all(backend.unavailable for backend in self._turns.items)


class HashedPicker:
    """The highest random weight for the keys of a request, of those that have a healthy endpoint."""

    def __init__(self, split: Sequence[tuple[CompiledBackend, int]], request_hash: RequestHash) -> None:
        weighted = [(backend, weight) for backend, weight in split if weight]
        self.backends = tuple(backend for backend, _ in weighted)
        self._turns = SmoothRoundRobin(weighted)
        self._hash = request_hash
        number: Counter[bytes] = Counter()
        names = []
        for backend, weight in weighted:
            number[backend.token] += 1
            names.append(NamedWeight(b"%b#%d" % (backend.token, number[backend.token]), weight))
        self._table = finish(make_rendezvous(names))

    def pick(self, source: "RequestSource") -> CompiledBackend | None:
        """Choose by the keys, or in turn where the request has none of them."""
        key = self._hash.of(source)
        if key is None:
            return self._turns.choose(lambda backend: not backend.has_healthy)
        found = self._table.find(key, lambda index: not self.backends[index].has_healthy)
        if found is None:
            found = self._table.find(key)
        return None if found is None else self.backends[found]


class FailoverPicker:
    """The main backend while it has a healthy endpoint, else the fallback.

    Where neither has one the fallback gets the requests only if the main one has no endpoint at all.
    """

    def __init__(self, main: CompiledBackend, fallback: CompiledBackend) -> None:
        self.backends = (main, fallback)

    def pick(self, source: "RequestSource") -> CompiledBackend:
        """Choose by health."""
        main, fallback = self.backends
        if main.has_healthy:
            return main
        return fallback if fallback.has_healthy or main.unavailable else main


class FirstMatchPicker:
    """The first backend whose condition a request satisfies."""

    def __init__(self, choices: Sequence[tuple[CompiledBackend, TakesRequests | None]]) -> None:
        self._choices = tuple(choices)
        self.backends = tuple(backend for backend, _ in choices)

    def match(self, facts: "RequestFacts") -> CompiledBackend | None:
        """Choose by what is known of a request; None: no backend takes it."""
        return next((backend for backend, when in self._choices if when is None or when.takes(facts)), None)

    def pick(self, source: "RequestSource") -> CompiledBackend | None:
        """Choose by the request as it came."""
        return self.match(source.facts())


def _no_fault() -> str:
    return ""


class BackendSet:
    """The backends of a route or of a group.

    Args:
        name: of the route or group, for messages.
        picker: chooses one.
        cookie: keeps clients with their backends; None: nothing does.
        statuses: of answers of the first backend, for which the second gets the request too.
        repeats_unsafe: whether it gets those requests too whose method is not idempotent.
        find_fault: says why all requests are refused; empty: they are not.
    """

    __slots__ = (
        "_by_token",
        "_find_fault",
        "_picker",
        "by_match",
        "cookie",
        "is_plain",
        "name",
        "repeats_unsafe",
        "statuses",
    )

    def __init__(
        self,
        name: str,
        picker: Picker,
        cookie: StickyCookie | None = None,
        statuses: frozenset[int] = frozenset(),
        *,
        repeats_unsafe: bool = False,
        find_fault: Callable[[], str] = _no_fault,
    ) -> None:
        self.name = name
        self.cookie = cookie
        self.statuses = statuses
        self.repeats_unsafe = repeats_unsafe
        self._picker = picker
        self.by_match = picker if isinstance(picker, FirstMatchPicker) else None
        """What chooses by the request as it is once the hooks on the way to the group have run; None: nothing does."""
        self._find_fault = find_fault
        self._by_token: dict[bytes, CompiledBackend] = {}
        for backend in picker.backends:
            if backend.keeps_sessions:
                self._index(backend)
        for backend in picker.backends if cookie is not None and cookie.is_by_backend else ():
            for token in old_traefik_tokens(backend.session_name) if backend.session_name else ():
                self._by_token.setdefault(token, backend)
        has_one_level = cookie is None and find_fault is _no_fault
        self.is_plain = has_one_level and all(backend.is_plain for backend in picker.backends)
        """One upstream is chosen, and there is nothing to be done, to be refused or to be remembered."""

    def _index(self, backend: CompiledBackend) -> None:
        """Find a backend by its token. Of equal upstreams the first is found, of others each has a token of its own."""
        number = 1
        while (held := self._by_token.setdefault(backend.token, backend)) is not backend:
            if held.is_plain and backend.is_plain:
                return
            number += 1
            backend.token = backend_token(f"{backend.target.key}#{number}")

    @property
    def backends(self) -> Sequence[CompiledBackend]:
        """All that may be chosen."""
        return self._picker.backends

    @property
    def fault(self) -> str:
        """Why all of its requests are refused; empty if they are not."""
        return self._find_fault()

    def pick(self, source: "RequestSource") -> CompiledBackend | None:
        """Choose one for a request without a session."""
        return self._picker.pick(source)

    def find(self, token: bytes) -> CompiledBackend | None:
        """Return the backend that a cookie names."""
        return self._by_token.get(token)

    @property
    def only_token(self) -> Sequence[bytes]:
        """What names the backend of cookies that name endpoints alone; nothing if none keeps sessions."""
        return (next(iter(self._by_token)),) if self._by_token else ()

    @property
    def has_healthy(self) -> bool:
        """Whether a backend has a healthy endpoint."""
        return not self.fault and any(backend.has_healthy for backend in self.backends)

    @property
    def unavailable(self) -> str:
        """Why no backend has an endpoint; empty if one has."""
        fault = self.fault
        if fault:
            return fault
        reasons = []
        for backend in self.backends:
            reason = backend.unavailable
            if not reason:
                return ""
            reasons.append(reason)
        return "; ".join(dict.fromkeys(reasons)) or f"all backends of {self.name} have weight 0"
