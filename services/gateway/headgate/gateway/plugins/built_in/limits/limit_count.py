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
from headgate.gateway.plugins.built_in.limits.windows import WINDOWS, Quota, Windows
from headgate.gateway.plugins.interface import Headers, Plugin, PluginConfig, PluginServices, Request, Response
from headgate.gateway.plugins.kit.key_reader import KeyReader
from headgate.gateway.plugins.kit.keyed import Held, exempted, not_counted, rejection
from headgate.gateway.plugins.kit.numbers import BadNumber, NumberReader

_QUOTA: Final = "limit-count.quota"


_Limit = tuple[str, int, float]
"""What a rule says of one request: key, number of requests, seconds. No named tuple, which takes longer to make."""


_Headers = tuple[str, str, str]
"""Names: of the limit, of what is left, of the seconds until the window ends."""


def _headers_of(prefix: str) -> _Headers:
    return f"{prefix}-Limit", f"{prefix}-Remaining", f"{prefix}-Reset"


def _hold(make: Callable[[Peers | None, str], Windows], peers: Peers | None, name: str) -> Held[Windows]:
    return Held(make(peers, name))


class _Rule:
    """One limit with its counts."""

    def __init__(
        self, count: int | str, window_s: float | str, key: KeyReader, headers: _Headers, windows: Held[Windows]
    ) -> None:
        self.windows = windows.it
        self._held = windows  # else the plugins of the next table would not find them
        self.headers = headers
        self._prefix = os.path.commonprefix([name.lower() for name in headers]).encode()  # noqa: RUF071 - no paths
        self._limit, self._left, self._reset = [b"%b: " % name.encode() for name in headers]
        self._count = NumberReader(count)
        self._window_s = NumberReader(window_s)
        self._key = key
        self._constant = None if isinstance(count, str) or isinstance(window_s, str) else (count, window_s)

    def read(self, request: Request) -> _Limit | None:
        """Say what counts for a request; None: nothing. Raises BadNumber."""
        key = self._key.read(request)
        if key is None:
            return None
        if self._constant is not None:
            return key, *self._constant
        count, window_s = int(self._count.read(request)), self._window_s.read(request)
        return f"{count} {window_s:g} {key}", count, window_s

    def lines(self, quota: Quota) -> bytes:
        """Write what is left as header lines."""
        _, limit, left, reset_s = quota
        return b"%b%d\r\n%b%d\r\n%b%d\r\n" % (self._limit, limit, self._left, left, self._reset, reset_s)

    def tell(self, lines: bytes, headers: Headers) -> None:
        """Put such lines into a head."""
        headers.set_lines(self.headers, self._prefix, lines)


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
        limits = []
        try:
            for rule in self._rules:
                limit = rule.read(request)
                if limit is not None:
                    limits.append((rule, limit))
        except BadNumber as error:
            return not_counted(self.config, self.services, request, str(error))
        if self._shared is not None:
            return self._count_together(request, limits)
        now = self._clock()
        quotas = []
        for rule, (key, most, window_s) in limits:
            quotas.append((rule, rule.windows.take(key, most, window_s, now)))
        return self._judge(request, quotas)

    async def _count_together(self, request: Request, limits: list[tuple[_Rule, _Limit]]) -> Response | None:
        assert self._shared is not None
        is_sliding = self.config.window_type == "sliding"
        quotas = []
        try:
            for rule, (key, most, window_s) in limits:
                place = f"headgate:limit-count:{self._identity}|{rule.headers[0]}|{window_s:g}|{key}"
                counted = await self._shared.count(place, most, window_s, is_sliding=is_sliding)
                quotas.append((rule, (counted.is_within, most, counted.left, math.ceil(counted.reset_s))))
        except StoreError as error:
            return not_counted(self.config, self.services, request, str(error))
        return self._judge(request, quotas)

    def _judge(self, request: Request, quotas: list[tuple[_Rule, Quota]]) -> Response | None:
        if self._tells:
            request.variables[_QUOTA] = [(rule, rule.lines(quota)) for rule, quota in quotas]
        for _, quota in quotas:
            if not quota[0]:
                return rejection(self.config, "over the limit of requests for this time")
        return None

    def on_response(self, request: Request, response: Response) -> None:
        """Say what is left."""
        told = request.variables.get(_QUOTA)
        if not isinstance(told, list):
            return
        rule: _Rule
        lines: bytes
        for rule, lines in told:
            rule.tell(lines, response.headers)
