"""The plugins of a route, and behind them those of the backend that a request goes to.

The backend is chosen when the request hooks of the route have run. Then come the request hooks of the backend, and of
each group on the way. Where a group chooses by the request as it is by then, that choice is made behind the hooks on
the way there. Answers go the other way round, and to the hooks of all that the request has gone through. A
request that goes to a fallback begins with the path and the headers that it had before the main backend's hooks.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, NamedTuple

from headgate.gateway.balancing.backends import BackendSet
from headgate.gateway.balancing.way import Step, Way, choose_way
from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.plugins.interface.messages import Request, Response
from headgate.gateway.plugins.interface.plugin import BodyFilter
from headgate.gateway.plugins.runtime.chain import Chain, Outcome, PluginChain
from headgate.gateway.plugins.runtime.changed_facts import facts_of
from headgate.gateway.plugins.runtime.chosen_upstream import ChosenWay
from headgate.gateway.proxy.exchange.exchange import Exchange
from headgate.gateway.proxy.hooks import RequestHooks


class _Before(NamedTuple):
    """A request before the hooks of its backend."""

    method: str
    path: str
    query: str
    headers: Headers
    upstream_host: str | None

    @classmethod
    def of(cls, request: Request) -> "_Before":
        """Note what the hooks may change."""
        return cls(request.method, request.path, request.query, request.headers.copy(), request.upstream_host)

    def restore(self, request: Request) -> None:
        """Undo what the hooks made of it, but for its body."""
        request.method, request.path, request.query = self.method, self.path, self.query
        request.headers, request.upstream_host = self.headers.copy(), self.upstream_host


class _Ran(NamedTuple):
    """Plugins that a request went through, and the choice that led to them; -1: they are the route's."""

    chain: PluginChain
    step: int


class BackendStage(Chain):
    """What one request goes through."""

    def __init__(self, chain: PluginChain | None, among: BackendSet, exchange: Exchange, way: Way | None) -> None:
        """Begin with a request; `way`: that it goes in any case, None: it is chosen behind the plugins of the route."""
        assert exchange.route is not None
        self._route = exchange.route
        self._among = among
        self._exchange = exchange
        self._way = way
        self._ran = [] if chain is None else [_Ran(chain, -1)]
        """In the order in which the request went through them."""
        self._left: list[PluginChain] = []
        """Those of a main backend whose answer was not passed on."""
        self._unfiltered = [each.chain for each in self._ran]
        """Those that the request's body has yet to go through."""
        self._before: dict[int, _Before] = {}
        """Before the hooks of choices that have a fallback."""

    # The request

    def on_request(self, request: Request) -> Outcome:
        """Run the request hooks of the route, choose the backend, and run its hooks."""
        outcome = self._ran[0].chain.on_request(request) if self._ran else None
        if isinstance(outcome, Response):
            return outcome
        return self._choose(request) if outcome is None else self._behind(outcome, lambda: self._choose(request))

    async def _behind(self, pending: Awaitable[Response | None], go_on: Callable[[], Outcome]) -> Response | None:
        response = await pending
        if response is not None:
            return response
        outcome = go_on()
        return outcome if outcome is None or isinstance(outcome, Response) else await outcome

    def _choose(self, request: Request) -> Outcome:
        if request.endpoints is not None:
            return None  # a plugin has chosen
        return self._take(self._way or choose_way(self._among, self._exchange), 0, request)

    def _take(self, way: Way, common: int, request: Request) -> Outcome:
        """Go a way, of whose first choices the hooks have run."""
        self._way = way
        self._exchange.route = self._route
        go_way(self._exchange, way, has_hooks=True)
        keeps = max([step.backend.keeps_body for step in way.steps[common:]], default=0)
        if keeps and request.body is None and not self._exchange.request_done:
            return self._behind(self._hold(request, keeps), partial(self._ask, way.steps, common, request))
        return self._ask(way.steps, common, request)

    async def _hold(self, request: Request, limit: int) -> None:
        """Wait for a body that can be sent again."""
        await request.hold_body(limit)

    def _ask(self, steps: Sequence[Step], first: int, request: Request) -> Outcome:
        for index, step in enumerate(steps[first:], first):
            if step.among.statuses:
                self._before[index] = _Before.of(request)
            if step.backend.hooks is None:
                continue
            chain = chain_of(step.backend.hooks)
            self._ran.append(_Ran(chain, index))
            self._unfiltered.append(chain)
            outcome = chain.on_request(request)
            if isinstance(outcome, Response):
                return outcome
            if outcome is not None:
                return self._behind(outcome, partial(self._ask, steps, index + 1, request))
        return self._go_further(request)

    def _go_further(self, request: Request) -> Outcome:
        """Make the choice ahead by the request as it is now."""
        way = self._way
        if way is None or way.ahead is None:
            return None
        found = way.further(facts_of(request, self._exchange), self._exchange)
        if found is None:
            return Response.refusal(404, "no route takes this request behind its middlewares")
        return self._take(found, len(way.steps), request)

    def request_filter(self, request: Request) -> BodyFilter | None:
        """Join the filters for the request's body that it has not gone through yet."""
        chains, self._unfiltered = self._unfiltered, []
        return _joined([chain.request_filter(request) for chain in chains])

    # The fallback

    def has_fallback(self, status: int) -> bool:
        """Tell whether a request that is answered with a status goes to another backend."""
        return self._way is not None and self._way.fallback_of(status) is not None

    def repeats_unsafe(self, status: int) -> bool:
        """Tell whether it does so with a method that is not idempotent, too."""
        assert self._way is not None
        step = self._way.fallback_of(status)
        return step is not None and self._way.steps[step].among.repeats_unsafe

    def fall_back(self, status: int, request: Request) -> Outcome:
        """Go to that backend."""
        assert self._way is not None
        step = self._way.fallback_of(status)
        assert step is not None
        self._before[step].restore(request)
        self._left += [each.chain for each in self._ran if each.step >= step]
        self._ran = [each for each in self._ran if each.step < step]
        self._unfiltered = []
        return self._take(self._way.fall_back(step, self._exchange), step, request)

    # The answer

    def on_response(self, request: Request, response: Response) -> Coroutine[Any, Any, None] | None:
        """Run the response hooks, those of the backend first."""
        return self._respond([each.chain for each in self._ran], request, response)

    def _respond(
        self, chains: list[PluginChain], request: Request, response: Response
    ) -> Coroutine[Any, Any, None] | None:
        while chains:
            pending = chains.pop().on_response(request, response)
            if pending is not None:
                return self._respond_behind(pending, chains, request, response)
        return None

    async def _respond_behind(
        self, pending: Awaitable[None], chains: list[PluginChain], request: Request, response: Response
    ) -> None:
        await pending
        rest = self._respond(chains, request, response)
        if rest is not None:
            await rest

    def response_filter(self, request: Request, response: Response) -> BodyFilter | None:
        """Join the filters for the answer's body, those of the backend first."""
        return _joined([each.chain.response_filter(request, response) for each in reversed(self._ran)])

    def on_finish(self, request: Request, status: int, seconds: float) -> None:
        """Tell all plugins that the request went through."""
        for chain in (*self._left, *(each.chain for each in self._ran)):
            chain.on_finish(request, status, seconds)


def go_way(exchange: Exchange, way: Way, *, has_hooks: bool = False) -> None:
    """Have a request go a way instead of choosing one by its route."""
    route = exchange.route
    assert route is not None
    policies = route.policies
    if policies is not None and not has_hooks:
        policies = policies.without_hooks()
    chosen = exchange.route = ChosenWay(route, way, policies)
    if chosen.request_s is not None:
        exchange.allow(chosen.request_s)


def chain_of(hooks: RequestHooks) -> PluginChain:
    """Return the plugins of a backend: `PluginHost` made them."""
    chain = getattr(hooks, "chain", None)
    assert isinstance(chain, PluginChain)
    return chain


class _Joined(BodyFilter):
    """Filters of several chains, each of which reports its own failures."""

    def __init__(self, filters: Sequence[BodyFilter]) -> None:
        self._filters = filters
        self.keeps_length = all(one.keeps_length for one in filters)

    def feed(self, data: bytes) -> bytes:
        for one in self._filters:
            data = one.feed(data)
        return data

    def take_trailers(self, trailers: Headers) -> None:
        for one in self._filters:
            one.take_trailers(trailers)

    def finish(self) -> bytes:
        data = b""
        for one in self._filters:
            data = (one.feed(data) if data else b"") + one.finish()
        return data


def _joined(filters: Sequence[BodyFilter | None]) -> BodyFilter | None:
    found = [one for one in filters if one is not None]
    return _Joined(found) if len(found) > 1 else next(iter(found), None)
