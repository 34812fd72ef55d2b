"""A request that goes through plugins: what joins a chain of plugins to an exchange.

The exchange hands over what passes; what the chain makes of it goes on. Nothing waits for plugins that do not ask for
it: only a hook that returns an awaitable makes the request wait, and only then is there a task.
"""

import asyncio
from urllib.parse import quote

from headgate.gateway.balancing.backends import BackendSet
from headgate.gateway.balancing.way import choose_way
from headgate.gateway.plugins.interface.errors import PluginFailed
from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.plugins.interface.messages import Response
from headgate.gateway.plugins.interface.plugin import BodyFilter
from headgate.gateway.plugins.interface.sources import Answered, Asked
from headgate.gateway.plugins.runtime.answer_run import AnswerRun
from headgate.gateway.plugins.runtime.backend_stage import BackendStage, go_way
from headgate.gateway.plugins.runtime.chain import Chain, PluginChain
from headgate.gateway.plugins.runtime.chosen_upstream import ChosenUpstream
from headgate.gateway.plugins.runtime.hook_wait import HookWait
from headgate.gateway.plugins.runtime.requests import fact_of, request_of
from headgate.gateway.plugins.runtime.subrequests import dispatch
from headgate.gateway.proxy.errors import BodyTooLarge
from headgate.gateway.proxy.exchange.exchange import Exchange
from headgate.gateway.proxy.heads.head import AnswerHead
from headgate.gateway.proxy.hooks import HookRun, RequestHooks
from headgate.gateway.proxy.peer import Peer
from headgate.gateway.proxy.request_source import RequestSource

_OF_UPSTREAM = (502, 504)
"""What the gateway answers for an upstream that did not."""
_FOR_UPSTREAM = (*_OF_UPSTREAM, 503)
"""And for one without endpoints or connections."""
_NO_ANSWER = 444
"""Status of a plugin's answer that says to close the connection instead; nginx's number."""
_VISIBLE = "!#$%&'()*+,/:;<=>?@[]^`{|}"
"""Of a user's name, besides letters, digits and `_.-~`, that stand in the access log as they are."""


class RoutePlugins(RequestHooks):
    """The plugins of a route, or of several that share them, as the proxy calls them.

    Args:
        chain: the plugins; None: there are none.
        among: backends of which one is chosen behind them; None: the route chooses by itself.
    """

    __slots__ = ("_among", "chain")

    def __init__(self, chain: PluginChain | None, among: BackendSet | None = None) -> None:
        self.chain = chain
        self._among = among

    def begin(self, request: RequestSource) -> HookRun | None:
        """Begin with a request, which is an exchange of the proxy; None: there is nothing to be done on its way."""
        assert isinstance(request, Exchange)
        if self._among is None:
            assert self.chain is not None
            return PluginRun(self.chain, request)
        way = None
        if self.chain is None:
            way = choose_way(self._among, request)
            if way.is_plain:
                go_way(request, way)
                return None
        stage = BackendStage(self.chain, self._among, request, way)
        return PluginRun(stage, request, stage)


class PluginRun(HookRun):
    """One request on its way through the plugins of its route."""

    def __init__(self, chain: Chain, exchange: Exchange, stage: BackendStage | None = None) -> None:
        rerouting = exchange.rerouting
        came_as = (exchange.method, exchange.target, exchange.fields.host_line)
        super().__init__(came_as if rerouting is None else rerouting.original)
        self._chain = chain
        self._stage = stage
        self._exchange = exchange
        self._request = request_of(exchange, self, self)
        if rerouting is not None:
            self._request.begin_again(self.original[1].decode("latin-1"), rerouting.count, rerouting.variables)
        self._client = self._request.client
        self._lines = self._request.headers.to_lines()
        self._request_filter: BodyFilter | None = None
        self._body_read: asyncio.Future[bytes] | None = None
        self._wait = HookWait(exchange, self._request.route)
        self._answer = AnswerRun(chain, exchange, self._request, self._wait)

    @property
    def is_holding(self) -> bool:
        """The answer waits for a hook, or for its time."""
        return self._answer.is_holding

    @property
    def is_waiting(self) -> bool:
        """A hook is being awaited."""
        return self._wait.is_waiting

    @property
    def has_body(self) -> bool:
        """Plugins have the whole body of the request."""
        return bool(self._request.body)

    @property
    def has_answer(self) -> bool:
        """The upstream's answer has come, or the request was answered otherwise."""
        return self._answer.has_begun

    # The request

    def start(self) -> bool:
        """Run the request hooks; False: the request is answered, or goes on by itself later."""
        route = self._exchange.route
        outcome = self._chain.on_request(self._request)
        if outcome is None:
            if not self._take_changes():
                return False
            if self._exchange.route is route:
                return True
            self._exchange.go_on()
        elif isinstance(outcome, Response):
            self._answer_request(outcome)
        else:
            self._wait.wait(outcome, self._after_request_hooks)
        return False

    def _after_request_hooks(self, response: Response | None) -> None:
        if response is not None:
            self._answer_request(response)
        elif self._take_changes():
            self._exchange.go_on()

    def _falls_back(self, status: int) -> bool:
        """Send the request to the fallback of its backend, if there is one for the status of an answer."""
        stage, exchange = self._stage, self._exchange
        if stage is None or self.has_answer or not stage.has_fallback(status):
            return False
        # What is yet to come of a body has to go through the filters that had its beginning.
        is_filtering = self._request_filter is not None and not exchange.request_done
        if is_filtering or not exchange.start_over(unsafe=stage.repeats_unsafe(status)):
            return False
        self._wait.call_off()
        _, exchange.target, exchange.fields.host_line = self.original
        exchange.has_other_host = False
        outcome = stage.fall_back(status, self._request)
        if outcome is None or isinstance(outcome, Response):
            self._after_request_hooks(outcome)
        else:
            self._wait.wait(outcome, self._after_request_hooks)
        return True

    def _answer_request(self, response: Response) -> None:
        """Answer for a plugin that took the request, unless it wants another route chosen."""
        exchange = self._exchange
        if self._request.chooses_again and self._routes_again():
            return
        exchange.request_id = self._take_id().encode("latin-1")
        if response.status == _NO_ANSWER:
            exchange.status, exchange.reason = _NO_ANSWER, response.reason
            exchange.finish()
            exchange.client.cut_off()
            return
        if exchange.explains_errors:
            response.explain()
        self._answer.respond(response)

    def _routes_again(self) -> bool:
        """Leave the request to the route of its new path; False: there is none, and the plugin's answer is for it."""
        request = self._request
        if request.fault_of_changes():
            return False
        target = request.target.encode("latin-1")
        if not self._exchange.route_again(target, self.original, request.variables):
            return False
        # Request, answer and run hold each other, and would wait for the collector.
        request.forget_source()
        return True

    def _take_changes(self) -> bool:
        """Give the exchange what the hooks made of the request; False: it was answered instead."""
        request, exchange = self._request, self._exchange
        if exchange.request_done and request.body is None:
            request.body = exchange.body.at_hand()
            was_whole = True
        else:
            was_whole = request.body is not None
        try:
            self._request_filter = self._chain.request_filter(request)
        except PluginFailed as error:
            exchange.refuse(500, str(error))
            return False
        if request.is_line_changed:
            # What routes look at, as hash keys and conditions of splits, is the request as the client sent it.
            exchange.facts()
        exchange.method = request.method.encode("latin-1")
        if request.is_target_changed:
            exchange.target = request.target.encode("latin-1")
        self._take_choices()
        exchange.request_id = self._take_id().encode("latin-1")
        exchange.lines = request.headers.to_lines()
        fields = exchange.fields
        if request.upstream_host is not None:
            fields.host_line = request.upstream_host.encode("latin-1")
            exchange.has_other_host = True
        whole = request.body if was_whole else None
        if whole is not None:
            if whole or request.is_body_replaced:
                exchange.intake.replace(whole)
        elif self._request_filter is not None:
            if not self._request_filter.keeps_length:
                fields.chunked, fields.content_length = True, -1
            try:
                exchange.body.replace(self._filter_request(exchange.body.at_hand(), exchange.request_done))
            except PluginFailed as error:
                exchange.refuse(500, str(error))
                return False
        if request.max_body is not None:
            return exchange.intake.limit(request.max_body)
        return True

    def _take_id(self) -> str:
        """Return the request's id: a header that a plugin has set goes before the one that there was."""
        headers = self._request.headers
        if headers.to_lines() is self._lines:
            return self._request.id
        given = headers.get("X-Request-ID")
        headers.remove("X-Request-ID")
        return given or self._request.id

    def _take_choices(self) -> None:
        """Give the exchange what the hooks said of who asks, and where to."""
        request, exchange = self._request, self._exchange
        if request.client != self._client:
            exchange.facts().client = request.client.encode("latin-1")
        if request.consumer is not None:
            exchange.facts().consumer = request.consumer.name.encode()
        if request.endpoints is not None and exchange.route is not None:
            exchange.route = ChosenUpstream(exchange.route, request.endpoints)

    def request_data(self, payload: bytes, *, done: bool) -> bytes | None:
        """Give what goes to the upstream for more of the client's body; None: the request was answered instead."""
        if self._request_filter is None:
            return payload
        try:
            return self._filter_request(payload, done)
        except PluginFailed as error:
            self._exchange.refuse(500, str(error))
            return None

    def _filter_request(self, payload: bytes, done: bool) -> bytes:
        filter_ = self._request_filter
        assert filter_ is not None
        return filter_.feed(payload) + (filter_.finish() if done else b"")

    async def read_body(self, limit: int) -> bytes:
        """Wait for the whole body; the `BodySource` of the request."""
        exchange = self._exchange
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._body_read = waiting
        if not exchange.request_done:
            exchange.intake.hold(limit)
        elif exchange.intake.count():
            self.body_read(exchange.body.at_hand())
        return await waiting

    async def hold_body(self, limit: int) -> None:
        """Wait for a body that can be held; the `BodySource` of the request."""
        exchange = self._exchange
        keeps = min(limit, exchange.context.config.max_buffered)
        if exchange.request_done or max(exchange.fields.content_length, exchange.body.size) > keeps:
            return
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._body_read = waiting
        exchange.intake.hold(keeps, passes_on=True)
        await waiting

    def fact(self, name: str) -> str:
        """Look at the connections; the `Wire` of the request."""
        exchange = self._exchange
        if name == "upstream_addr":
            pool = exchange.pool
            return pool.label if pool is not None else ""
        if name == "request_length":
            return str(exchange.body.received)
        if name == "trace_id":
            return str(exchange.accounting.details().get("trace_id", ""))
        if name == "claims_are_believed":
            return "1" if exchange.fields.passes_claims else ""
        return fact_of(exchange.client.peer, name, is_client=exchange.origin is exchange.client.peer)

    def wait_for(self, seconds: float) -> None:
        """Wait longer for a hook; the `Wire` of the request."""
        if self._wait.is_waiting:
            self._exchange.deadlines.wait(seconds)

    async def dispatch(self, asked: Asked, *, timeout_s: float, max_body: int) -> Answered:
        """Serve another request of the same client; the `Wire` of the request."""
        return await dispatch(self._exchange, asked, timeout_s=timeout_s, max_body=max_body)

    def body_read(self, body: bytes) -> None:
        """Take the body that a hook waits for."""
        waiting, self._body_read = self._body_read, None
        if waiting is not None and not waiting.done():
            waiting.set_result(body)

    def body_refused(self, fault: BodyTooLarge) -> bool:
        """Hear why the body that a hook waits for cannot be held; False: none waits."""
        waiting, self._body_read = self._body_read, None
        if waiting is None or waiting.done():
            return False
        waiting.set_exception(fault)
        return True

    # The answer

    def answer(self, answer: AnswerHead, payload: bytes, *, bodiless: bool, done: bool, trailers: bytes) -> None:
        """Take the head of the upstream's answer, with what is there of its body."""
        if self._falls_back(answer.status):
            return
        self._answer.begin(answer, payload, bodiless=bodiless, done=done, trailers=trailers)

    def answer_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Take more of the answer's body."""
        self._answer.take(payload, done=done, trailers=trailers)

    def own_answer(self, answer: AnswerHead, body: bytes) -> None:
        """Take an answer of the gateway's own; hooks that let it come to a second one are not asked again."""
        if not self.is_refused and answer.status in _FOR_UPSTREAM and self._falls_back(answer.status):
            return
        if answer.status in _OF_UPSTREAM and self._exchange.pool is not None:
            self._request.upstream_status = answer.status
        response = Response(answer.status, Headers.from_lines(answer.lines), body)
        if self.is_refused:
            self._answer.respond_again(response)
        else:
            self.is_refused = True
            self._answer.respond(response)

    # The end

    def finish(self, status: int, duration_s: float) -> None:
        """Tell the plugins, and give the exchange back what the client sent, for the log."""
        self._wait.call_off()
        self._answer.finish()
        exchange, request = self._exchange, self._request
        exchange.method, exchange.target, _ = self.original
        request.bytes_sent = exchange.bytes_sent
        pool = exchange.pool
        request.upstream_address = pool.label if pool is not None else ""
        if request.client != self._client:
            origin = exchange.origin
            exchange.origin = Peer(request.client.encode("latin-1"), origin.scheme, origin.port, tls=origin.tls)
        user = request.variables.get("remote_user")
        if isinstance(user, str) and user:
            exchange.accounting.user = quote(user.encode("latin-1", "replace"), safe=_VISIBLE).encode()
        if request.consumer is not None:
            exchange.accounting.recognised(request.consumer.name, duration_s)
        self._chain.on_finish(request, status, duration_s)
        # Request, answer and run hold each other, and would wait for the collector.
        request.forget_source()
