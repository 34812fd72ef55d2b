"""The plugins of a route, in their order, and the running of their hooks.

A chain is made when the table is compiled and holds, for each hook, the bound methods of those plugins that override
it: a hook that nobody has costs an empty loop. It keeps nothing of a request, so the proxy calls it in this sequence:

    on_request          None: go on; a Response: answer with it; else await it for one of the two
    request_filter      for the body on its way to the upstream
    on_response         for every answer, the gateway's own too; None, or await it
    response_filter     for its body; an answer that is there as a whole is filtered at once, and None is returned
    on_finish           once, whatever happened

What a plugin raises is a 500 that names it, a log line, and no more.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, Final

from headgate.gateway.plugins.interface import (
    BodyFilter,
    BodyTooLarge,
    BuffersFull,
    Plugin,
    PluginServices,
    Request,
    Response,
)
from headgate.gateway.plugins.interface.errors import PluginFailed
from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.plugins.interface.messages import DOT_SEGMENTS
from headgate.gateway.plugins.runtime.meta import overrides

Part = tuple[int, Plugin[Any]]
"""A plugin with its order."""
GLOBAL: Final = 1 << 32
"""Added to the orders of plugins that run before those of routes."""
Outcome = Response | Coroutine[Any, Any, Response | None] | None
"""Request hooks give an answer, None to go on, or a coroutine that returns one of the two."""
RequestHook = Callable[[Request], Response | Awaitable[Response | None] | None]
_ResponseHook = Callable[[Request, Response], Awaitable[None] | None]
_BODIES = (bytes, type(None))


class Chain:
    """What a request goes through: a `PluginChain`, or several.

    A class, not a protocol: calls by name cost the compiled engine more, five of them for each request.
    """

    __slots__ = ()

    def on_request(self, request: Request) -> Outcome:
        """Run the request hooks."""
        raise NotImplementedError

    def on_response(self, request: Request, response: Response) -> Coroutine[Any, Any, None] | None:
        """Run the response hooks, which change `response` in place: None, or a coroutine to wait for."""
        raise NotImplementedError

    def request_filter(self, request: Request) -> BodyFilter | None:
        """Join the filters for the request's body; what is there of it as a whole is filtered at once.

        Raises PluginFailed.
        """
        raise NotImplementedError

    def response_filter(self, request: Request, response: Response) -> BodyFilter | None:
        """Join the filters for an answer that is streaming; an answer that is there as a whole is filtered at once."""
        raise NotImplementedError

    def on_finish(self, request: Request, status: int, seconds: float) -> None:
        """Tell the plugins that the request has ended."""
        raise NotImplementedError


class PluginChain(Chain):
    """The plugins of one route; immutable."""

    __slots__ = (
        "_asked",
        "_finish_hooks",
        "_nested",
        "_parts",
        "_reported",
        "_request_filters",
        "_request_hooks",
        "_response_filters",
        "_response_hooks",
        "_services",
    )

    def __init__(
        self,
        parts: Iterable[Part],
        services: PluginServices,
        asked: Sequence[Plugin[Any]] | None = None,
        left: Sequence[Plugin[Any]] = (),
    ) -> None:
        """Take plugins with their orders; of equal orders the earlier part runs earlier.

        Args:
            parts: the plugins.
            services: for the log.
            asked: those of them whose request hooks run, in their order; None: all.
            left: others that have been asked already, and hear of the end.
        """
        self._parts = tuple(sorted(parts, key=lambda part: -part[0]))
        self._services = services
        self._reported: set[tuple[str, type[Exception]]] = set()
        self._compile([plugin for _, plugin in self._parts], asked, left)

    def _compile(
        self, plugins: list[Plugin[Any]], asked: Sequence[Plugin[Any]] | None, left: Sequence[Plugin[Any]]
    ) -> None:
        inwards = plugins
        outwards = [plugins[place] for place in sorted(range(len(plugins)), key=self._outward_rank)]
        self._asked = [plugin for plugin in (inwards if asked is None else asked) if overrides(plugin, "on_request")]
        self._request_hooks: tuple[tuple[str, RequestHook], ...] = tuple(
            (plugin.name, plugin.on_request) for plugin in self._asked
        )
        self._nested = [plugin for plugin in inwards if plugin.is_nested]
        self._response_hooks: tuple[tuple[Plugin[Any], _ResponseHook], ...] = tuple(
            (plugin, plugin.on_response) for plugin in outwards if overrides(plugin, "on_response")
        )
        self._request_filters = tuple(plugin for plugin in inwards if overrides(plugin, "request_body_filter"))
        self._response_filters = tuple(plugin for plugin in outwards if overrides(plugin, "body_filter"))
        self._finish_hooks = tuple(plugin for plugin in (*outwards, *left) if overrides(plugin, "on_finish"))

    def _outward_rank(self, place: int) -> tuple[int, int]:
        """Rank a part by when it sees answers: those of the smallest order first."""
        order, plugin = self._parts[place]
        return (order if plugin.answer_order is None else plugin.answer_order), -place

    @property
    def is_idle(self) -> bool:
        """No plugin has a hook: a route can do without the chain."""
        hooks = (self._request_hooks, self._response_hooks, self._request_filters)
        return not any((*hooks, self._response_filters, self._finish_hooks))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the plugins as they run on requests."""
        return tuple(plugin.name for _, plugin in self._parts)

    def on_request(self, request: Request) -> Outcome:
        """Run the request hooks."""
        return self._run_request_hooks(request, 0)

    def _run_request_hooks(self, request: Request, position: int) -> Outcome:
        for name, hook in self._request_hooks[position:]:
            position += 1
            try:
                outcome = hook(request)
            except Exception as error:
                outcome = self._failure(name, request, error)
            if isinstance(outcome, Response):
                self._note_unreached(request, position)
                return outcome
            if outcome is not None:
                return self._await_request_hook(name, outcome, request, position)
        fault = request.fault_of_changes()
        return self._unsendable(request, fault) if fault else None

    async def _await_request_hook(
        self, name: str, pending: Awaitable[Response | None], request: Request, position: int
    ) -> Response | None:
        try:
            response = await pending
        except Exception as error:
            response = self._failure(name, request, error)
        if response is not None:
            self._note_unreached(request, position)
            return response
        outcome = self._run_request_hooks(request, position)
        return outcome if outcome is None or isinstance(outcome, Response) else await outcome

    def _note_unreached(self, request: Request, position: int) -> None:
        """Note the nested plugins behind the one that has answered, the last of so many that were asked."""
        if self._nested and position <= len(self._asked):
            places = {plugin: place for place, (_, plugin) in enumerate(self._parts)}
            answering = places[self._asked[position - 1]]
            request.unreached = frozenset(plugin for plugin in self._nested if places[plugin] > answering)

    def on_response(self, request: Request, response: Response) -> Coroutine[Any, Any, None] | None:
        """Run the response hooks."""
        request.response = response
        return self._run_response_hooks(request, response, 0)

    def _run_response_hooks(
        self, request: Request, response: Response, position: int
    ) -> Coroutine[Any, Any, None] | None:
        unreached = request.unreached
        for plugin, hook in self._response_hooks[position:]:
            position += 1
            if unreached and plugin in unreached:
                continue
            try:
                pending = hook(request, response)
            except Exception as error:
                response.replace(self._failure(plugin.name, request, error, too_long=502))
                continue
            if pending is not None:
                return self._await_response_hook(plugin.name, pending, request, response, position)
        if response.status != 101 and not 200 <= response.status <= 599:
            status = response.status
            response.replace(Response.refusal(500, f"a plugin made the status {status}"))
        elif type(response.body) not in _BODIES:
            response.replace(Response.refusal(500, "a plugin made a body that is not bytes"))
        return None

    async def _await_response_hook(
        self, name: str, pending: Awaitable[None], request: Request, response: Response, position: int
    ) -> None:
        try:
            await pending
        except Exception as error:
            response.replace(self._failure(name, request, error, too_long=502))
        following = self._run_response_hooks(request, response, position)
        if following is not None:
            await following

    def request_filter(self, request: Request) -> BodyFilter | None:
        """Join the filters for the request's body."""
        return self._filter_request(request) if self._request_filters else None

    def _filter_request(self, request: Request) -> BodyFilter | None:
        filters = []
        for plugin in self._request_filters:
            try:
                made = plugin.request_body_filter(request)
            except Exception as error:
                self._report(plugin.name, request, error)
                raise PluginFailed(f"plugin {plugin.name} failed") from error
            if made is not None:
                filters.append((plugin.name, made))
        if not filters:
            return None
        joined = _Filters(filters, lambda name, error: self._report(name, request, error))
        if request.body is None:
            return joined
        request.replace_body(joined.feed(request.body) + joined.finish())
        return None

    def response_filter(self, request: Request, response: Response) -> BodyFilter | None:
        """Join the filters for the answer's body."""
        if not self._response_filters or response.is_bodiless or request.method == "HEAD":
            return None
        return self._filter_response(request, response)

    def _filter_response(self, request: Request, response: Response) -> BodyFilter | None:
        filters = []
        for plugin in self._response_filters:
            if plugin in request.unreached:
                continue
            try:
                made = plugin.body_filter(request, response)
            except Exception as error:
                response.replace(self._failure(plugin.name, request, error))
                return None
            if made is not None:
                filters.append((plugin.name, made))
        if not filters:
            return None
        joined = _Filters(filters, lambda name, error: self._report(name, request, error))
        if response.body is None:
            return joined
        try:
            response.body = joined.feed(response.body) + joined.finish()
        except PluginFailed as error:
            response.replace(Response.refusal(500, str(error)))
        return None

    def on_finish(self, request: Request, status: int, seconds: float) -> None:
        """Tell the plugins that the request has ended."""
        request.final_status = status
        for plugin in self._finish_hooks:
            try:
                plugin.on_finish(request, status, seconds)
            except Exception as error:
                self._report(plugin.name, request, error)

    def _failure(self, name: str, request: Request, error: Exception, too_long: int = 413) -> Response:
        if isinstance(error, BuffersFull):
            return Response.busy(str(error))
        if isinstance(error, BodyTooLarge):
            return Response.refusal(too_long, str(error))
        self._report(name, request, error)
        return Response.refusal(500, f"plugin {name} failed")

    def _unsendable(self, request: Request, fault: str) -> Response:
        if fault == DOT_SEGMENTS:  # by what the client asked for
            return Response.refusal(400, fault)
        self._services.logger.error("plugins of %s made a request that cannot be sent: %s", request.route, fault)
        return Response.refusal(500, f"the plugins of the route made a request that cannot be sent: {fault}")

    def _report(self, name: str, request: Request, error: Exception) -> None:
        """Log what a plugin raised, with its traceback the first time only: it may well happen at every request."""
        is_new = (name, type(error)) not in self._reported
        self._reported.add((name, type(error)))
        self._services.logger.error(
            "plugin %s failed in route %s, request %s: %r",
            name,
            request.route,
            request.id,
            error,
            exc_info=error if is_new else None,
        )


class _Filters(BodyFilter):
    """Several filters, one behind the other."""

    def __init__(self, filters: list[tuple[str, BodyFilter]], report: Callable[[str, Exception], None]) -> None:
        self._filters = filters
        self._report = report
        self.keeps_length = all(one.keeps_length for _, one in filters)

    def feed(self, data: bytes) -> bytes:
        for name, one in self._filters:
            try:
                data = one.feed(data)
            except Exception as error:
                raise self._failed(name, error) from error
        return data

    def take_trailers(self, trailers: Headers) -> None:
        for name, one in self._filters:
            try:
                one.take_trailers(trailers)
            except Exception as error:
                raise self._failed(name, error) from error

    def finish(self) -> bytes:
        data = b""
        for name, one in self._filters:
            try:
                data = (one.feed(data) if data else b"") + one.finish()
            except Exception as error:
                raise self._failed(name, error) from error
        return data

    def _failed(self, name: str, error: Exception) -> PluginFailed:
        self._report(name, error)
        return PluginFailed(f"plugin {name} failed")
