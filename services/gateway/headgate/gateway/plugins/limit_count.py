"""`limit-count`: so many requests in a window of time, by key.

A fixed window of a key begins with its first request and is counted anew after it; a sliding one is the last seconds at
any time.
"""

import math
from collections.abc import Awaitable
from typing import NamedTuple

from headgate.common.errors import StoreError
from headgate.common.plugins.limits import LimitCountConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.keyed import KeyReader, exempted, not_counted, rejection
from headgate.gateway.plugins.numbers import BadNumber, NumberReader
from headgate.gateway.plugins.windows import WINDOWS, Quota, Windows

_QUOTA = "limit-count.quota"


class _Limit(NamedTuple):
    """What a rule says of one request."""

    key: str
    most: int
    window_s: float


class _Rule:
    """One limit with its counts."""

    def __init__(
        self, count: NumberReader, window_s: NumberReader, key: KeyReader, prefix: str, windows: Windows
    ) -> None:
        self.prefix = prefix
        self.windows = windows
        self._count = count
        self._window_s = window_s
        self._key = key
        self._is_constant = count.is_constant and window_s.is_constant

    def read(self, request: Request) -> _Limit | None:
        """Say what counts for a request; None: nothing. Raises BadNumber."""
        key = self._key.read(request)
        if key is None:
            return None
        count, window_s = int(self._count.read(request)), self._window_s.read(request)
        return _Limit(key if self._is_constant else f"{count} {window_s:g} {key}", count, window_s)


class LimitCount(Plugin[LimitCountConfig]):
    """Counts requests in windows."""

    name = "limit-count"
    order = 1002
    Config = LimitCountConfig

    def __init__(self, config: LimitCountConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._exempted = exempted(config)
        self._shared = services.find_counters(config)
        self._identity = f"group|{config.group}" if config.group else f"route|{services.scope}"
        self._rules = self._make_rules()

    def _make_rules(self) -> list[_Rule]:
        config = self.config
        if config.count is not None and config.time_window is not None:
            key = KeyReader(config.key, config.key_type)
            return [self._make_rule(config.count, config.time_window, config.key, key, "X-RateLimit")]
        return [
            self._make_rule(
                rule.count,
                rule.time_window,
                rule.key,
                KeyReader(rule.key, "var_combination", is_optional=True),
                f"X-{rule.header_prefix or number}-RateLimit",
            )
            for number, rule in enumerate(config.rules, 1)
        ]

    def _make_rule(self, count: int | str, window_s: float | str, text: str, key: KeyReader, prefix: str) -> _Rule:
        kind = self.config.window_type
        state_key = (self.name, self._identity, kind, count, window_s, text, prefix)
        windows: Windows = self.services.shared.get(state_key, WINDOWS[kind])
        return _Rule(NumberReader(count), NumberReader(window_s), key, prefix, windows)

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Refuse what is over a limit."""
        if self._exempted is not None and request.client in self._exempted:
            return None
        try:
            limits = [(rule, limit) for rule in self._rules if (limit := rule.read(request)) is not None]
        except BadNumber as error:
            return not_counted(self.config, self.services, request, str(error))
        if self._shared is not None:
            return self._count_together(request, limits)
        now = self.services.clock()
        return self._judge(request, [(rule.prefix, rule.windows.take(*limit, now)) for rule, limit in limits])

    async def _count_together(self, request: Request, limits: list[tuple[_Rule, _Limit]]) -> Response | None:
        assert self._shared is not None
        is_sliding = self.config.window_type == "sliding"
        quotas = []
        try:
            for rule, limit in limits:
                key = f"headgate:limit-count:{self._identity}|{rule.prefix}|{limit.window_s:g}|{limit.key}"
                counted = await self._shared.count(key, limit.most, limit.window_s, is_sliding=is_sliding)
                reset_s = math.ceil(counted.reset_s)
                quotas.append((rule.prefix, Quota(counted.is_within, limit.most, counted.left, reset_s)))
        except StoreError as error:
            return not_counted(self.config, self.services, request, str(error))
        return self._judge(request, quotas)

    def _judge(self, request: Request, quotas: list[tuple[str, Quota]]) -> Response | None:
        if self.config.show_limit_quota_header:
            request.variables[_QUOTA] = quotas
        if all(quota.is_within for _, quota in quotas):
            return None
        return rejection(self.config, "over the limit of requests for this time")

    def on_response(self, request: Request, response: Response) -> None:
        """Say what is left."""
        quotas = request.variables.get(_QUOTA)
        if not isinstance(quotas, list):
            return
        for prefix, quota in quotas:
            response.headers.set(f"{prefix}-Limit", str(quota.limit))
            response.headers.set(f"{prefix}-Remaining", str(quota.left))
            response.headers.set(f"{prefix}-Reset", str(quota.reset_s))
