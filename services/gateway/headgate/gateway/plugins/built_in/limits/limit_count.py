"""`limit-count`: so many requests in a window of time, by key.

A fixed window of a key begins with its first request, and the count begins again after it; a sliding one is the last
seconds at any time.
"""

import functools
import math
import os.path
from collections.abc import Awaitable, Callable
from typing import ClassVar, Final

from headgate.common.errors import StoreError
from headgate.common.plugins.limits.limits import LimitCountConfig
from headgate.gateway.counting.peers import Peers
from headgate.gateway.plugins.built_in.limits.windows import WINDOWS, Windows
from headgate.gateway.plugins.interface import Headers, Plugin, PluginConfig, PluginServices, Request, Response
from headgate.gateway.plugins.kit.key_reader import KeyReader
from headgate.gateway.plugins.kit.keyed import Held, exempted, not_counted, rejection
from headgate.gateway.plugins.kit.numbers import BadNumber, NumberReader

_COUNTS: Final = "limit-count.counts"


_Headers = tuple[str, str, str]
"""Names: of the limit, of what is left, of the seconds until the window ends."""


def _headers_of(prefix: str) -> _Headers:
    return f"{prefix}-Limit", f"{prefix}-Remaining", f"{prefix}-Reset"


def _hold(make: Callable[[Peers | None, str], Windows], peers: Peers | None, name: str) -> Held[Windows]:
    return Held(make(peers, name))


class _Rule:
    """One limit with its counts."""

    def __init__(
        self, limit: int | str, window_s: float | str, key: KeyReader, headers: _Headers, windows: Held[Windows]
    ) -> None:
        self.windows = windows.it
        self._held = windows  # else the plugins of the next table would not find them
        self.headers = headers
        self._prefix = os.path.commonprefix([name.lower() for name in headers]).encode()  # noqa: RUF071 - no paths
        self._limit_line, self._left_line, self._reset_line = [b"%b: " % name.encode() for name in headers]
        self._key = key
        self._read_limit = NumberReader(limit)
        self._read_window_s = NumberReader(window_s)
        self._limit, self._window_s = 0, 0.0
        self._begin = b""
        """The line of the limit, and the name of the next line; empty if the limit differs between requests."""
        if not (isinstance(limit, str) or isinstance(window_s, str)):
            self._limit, self._window_s = limit, window_s
            self._begin = b"%b%d\r\n%b" % (self._limit_line, limit, self._left_line)

    def read(self, request: Request) -> "_Count | None":
        """Say what is to be counted for a request; None: nothing. Raises BadNumber."""
        key = self._key.read(request)
        if key is None:
            return None
        if self._begin:
            return _Count(self, key, self._limit, self._window_s)
        limit, window_s = int(self._read_limit.read(request)), self._read_window_s.read(request)
        return _Count(self, f"{limit} {window_s:g} {key}", limit, window_s)

    def tell(self, count: "_Count", headers: Headers) -> None:
        """Say in a head what is left."""
        begin = self._begin or b"%b%d\r\n%b" % (self._limit_line, count.limit, self._left_line)
        lines = b"%b%d\r\n%b%d\r\n" % (begin, count.left, self._reset_line, count.reset_s)
        headers.set_lines(self.headers, self._prefix, lines)


class _Count:
    """One request under a rule: what it is counted by, and how its window stands then."""

    __slots__ = ("is_within", "key", "left", "limit", "reset_s", "rule", "window_s")

    def __init__(self, rule: _Rule, key: str, limit: int, window_s: float) -> None:
        self.rule = rule
        self.key = key
        self.limit = limit
        self.window_s = window_s
        self.is_within = True
        self.left = 0
        self.reset_s = 0


class LimitCount(Plugin[LimitCountConfig]):
    """Counts requests in windows."""

    name: ClassVar[str] = "limit-count"
    order: ClassVar[int] = 1002
    unforeseen: ClassVar[str] = "counts requests"
    Config: ClassVar[type[PluginConfig]] = LimitCountConfig

    def __init__(self, config: LimitCountConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._exempted = exempted(config)
        self._shared = services.find_counters(config)
        self._identity = f"group|{services.owner}|{config.group}" if config.group else f"route|{services.scope}"
        self._rules = self._make_rules()
        self._clock = services.clock
        self._tells = config.show_limit_quota_header

    def _make_rules(self) -> list[_Rule]:
        config = self.config
        if config.count is not None and config.time_window is not None:
            key = KeyReader(config.key, config.key_type)
            headers = (config.limit_header, config.remaining_header, config.reset_header)
            return [self._make_rule(config.count, config.time_window, config.key, key, headers)]
        return [
            self._make_rule(
                rule.count,
                rule.time_window,
                rule.key,
                KeyReader(rule.key, "var_combination", is_optional=True),
                _headers_of(f"X-{rule.header_prefix or number}-RateLimit"),
            )
            for number, rule in enumerate(config.rules, 1)
        ]

    def _make_rule(
        self, count: int | str, window_s: float | str, text: str, key: KeyReader, headers: _Headers
    ) -> _Rule:
        kind = self.config.window_type
        state_key = (self.name, self._identity, kind, count, window_s, text, headers[0])
        make = functools.partial(_hold, WINDOWS[kind], self.services.peers, repr(state_key))
        windows = self.services.shared.get(state_key, make)
        return _Rule(count, window_s, key, headers, windows)

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Refuse what is over a limit."""
        if self._exempted is not None and request.client in self._exempted:
            return None
        counts: list[_Count] = []
        try:
            for rule in self._rules:
                count = rule.read(request)
                if count is not None:
                    counts.append(count)
        except BadNumber as error:
            return not_counted(self.config, self.services, request, str(error))
        if self._shared is not None:
            return self._count_together(request, counts)
        now = self._clock()
        for count in counts:
            windows = count.rule.windows
            count.is_within, count.left, count.reset_s = windows.take(count.key, count.limit, count.window_s, now)
        return self._judge(request, counts)

    async def _count_together(self, request: Request, counts: list[_Count]) -> Response | None:
        assert self._shared is not None
        is_sliding = self.config.window_type == "sliding"
        try:
            for count in counts:
                rule, window_s = count.rule, count.window_s
                place = f"headgate:limit-count:{self._identity}|{rule.headers[0]}|{window_s:g}|{count.key}"
                counted = await self._shared.count(place, count.limit, window_s, is_sliding=is_sliding)
                count.is_within, count.left = counted.is_within, counted.left
                count.reset_s = math.ceil(counted.reset_s)
        except StoreError as error:
            return not_counted(self.config, self.services, request, str(error))
        return self._judge(request, counts)

    def _judge(self, request: Request, counts: list[_Count]) -> Response | None:
        if self._tells:
            request.variables[_COUNTS] = counts
        for count in counts:
            if not count.is_within:
                return rejection(self.config, "over the limit of requests for this time")
        return None

    def on_response(self, request: Request, response: Response) -> None:
        """Say what is left."""
        counts = request.variables.get(_COUNTS)
        if not isinstance(counts, list):
            return
        count: _Count
        for count in counts:
            count.rule.tell(count, response.headers)
