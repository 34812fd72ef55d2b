"""`ai-rate-limiting`: so many tokens of models in a window of time.

Providers say in their answers how many tokens these took. So a request passes as long as its window is not full, and
counts when its answer has ended. Requests that `ai-proxy` and `ai-proxy-multi` do not answer are not limited.
"""

import asyncio
import re
from typing import Final, NamedTuple

from headgate.common.errors import StoreError
from headgate.common.plugins.ai.costs import CostExpression
from headgate.common.plugins.ai.rate_limiting import AiRateLimitingConfig
from headgate.gateway.plugins.built_in.ai.asking import ANSWER, Answered
from headgate.gateway.plugins.built_in.ai.model_requests import GATES
from headgate.gateway.plugins.built_in.ai.token_windows import Filling, TokenWindows, header_lines
from headgate.gateway.plugins.built_in.ai.usage import Usage
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.key_reader import KeyReader
from headgate.gateway.plugins.kit.keyed import exempted, not_counted, rejection
from headgate.gateway.plugins.kit.numbers import BadNumber, NumberReader

_PREFIX: Final = "X-AI-RateLimit"
_NO_TOKEN: Final = re.compile(r"[^0-9A-Za-z._-]")
_counting: set[asyncio.Task[None]] = set()
"""Counts that are on their way to Redis."""


class _Bound(NamedTuple):
    """What a limit says of one request."""

    limit: "_Limit"
    key: str
    most: int
    window_s: float
    headers: tuple[str, str, str]


class _Limit:
    """One limit."""

    def __init__(
        self,
        most: int | str,
        window_s: float | str,
        key: str | KeyReader,
        windows: TokenWindows,
        headers: tuple[str, str, str] | None = None,
    ) -> None:
        self.windows = windows
        self._most = NumberReader(most)
        self._window_s = NumberReader(window_s)
        self._key = key
        self._headers = headers

    def read(self, request: Request, instance: str) -> _Bound | None:
        """Return what holds for a request; None: nothing. Raises BadNumber."""
        key = self._key if isinstance(self._key, str) else self._key.read(request)
        if key is None:
            return None
        names = ("Limit", "Remaining", "Reset")
        headers = self._headers or (f"{_PREFIX}-{name}-{_NO_TOKEN.sub('-', instance)}" for name in names)
        first, second, third = headers
        most, window_s = int(self._most.read(request)), self._window_s.read(request)
        return _Bound(self, f"{most} {window_s:g} {key}", most, window_s, (first, second, third))


class AiRateLimiting(Plugin[AiRateLimitingConfig]):
    """Counts tokens in windows."""

    name = "ai-rate-limiting"
    order = 1030
    unforeseen = "counts tokens"
    Config = AiRateLimitingConfig

    def __init__(self, config: AiRateLimitingConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._place = f"ai-rate-limiting.{id(self)}"
        self._exempted = exempted(config)
        self._shared = services.find_counters(config)
        self._cost = CostExpression(config.cost_expr) if config.cost_expr is not None else None
        self._rules = [
            self._make(
                rule.count,
                rule.time_window,
                KeyReader(rule.key, "var_combination", is_optional=True),
                f"rule {number} {rule.key}",
                rule.header_prefix or str(number),
            )
            for number, rule in enumerate(config.rules, 1)
        ]
        self._of_instances = {
            one.name: self._make(one.limit, one.time_window, one.name, f"instance {one.name}")
            for one in config.instances
        }
        self._of_others = None
        if config.limit is not None and config.time_window is not None:
            self._of_others = self._make(config.limit, config.time_window, "*", "others")

    def _make(
        self, most: int | str, window_s: float | str, key: str | KeyReader, title: str, prefix: str = ""
    ) -> _Limit:
        place = (self.name, self.services.scope, most, window_s, title)
        windows = self.services.shared.get(place, lambda: TokenWindows(self.services.peers, repr(place)))
        names = ("Limit", "Remaining", "Reset")
        headers = [f"X-AI-{prefix}-RateLimit-{name}" for name in names] if prefix else None
        return _Limit(most, window_s, key, windows, (headers[0], headers[1], headers[2]) if headers else None)

    def on_request(self, request: Request) -> None:
        """Have the plugin that sends the request to a model ask whether it may."""
        if self._exempted is not None and request.client in self._exempted:
            return
        gates = request.variables.setdefault(GATES, [])
        if isinstance(gates, list):
            gates.append(self)

    async def refusal(self, request: Request, instance: str) -> Response | None:
        """Return why an instance must not be asked now; the `Gate` of the request."""
        try:
            bounds = self._bounds(request, instance)
            fillings = [await self._look(bound) for bound in bounds]
        except (BadNumber, StoreError) as error:
            request.variables.pop(self._place, None)
            return not_counted(self.config, self.services, request, str(error))
        request.variables[self._place] = list(zip(bounds, fillings, strict=True))
        if any(filling.used >= bound.most for bound, filling in zip(bounds, fillings, strict=True)):
            return rejection(self.config, "over the limit of tokens for this time")
        return None

    def _bounds(self, request: Request, instance: str) -> list[_Bound]:
        own = self._of_instances.get(instance, self._of_others)
        limits = self._rules or ([own] if own is not None else [])
        read = (limit.read(request, instance) for limit in limits)
        return [bound for bound in read if bound is not None]

    async def _look(self, bound: _Bound) -> Filling:
        if self._shared is None:
            return bound.limit.windows.look(bound.key, bound.window_s, self.services.clock())
        used, ends_s = await self._shared.look(self._redis_key(bound))
        return Filling(used, ends_s or bound.window_s)

    def _redis_key(self, bound: _Bound) -> str:
        return f"headgate:ai-rate-limiting:{self.services.scope}|{bound.headers[0]}|{bound.key}"

    def on_response(self, request: Request, response: Response) -> None:
        """Say what was left before the request."""
        if self.config.show_limit_quota_header:
            for bound, filling in self._found(request):
                for name, value in zip(bound.headers, header_lines(filling, bound.most), strict=True):
                    response.headers.set(name, value)

    def on_finish(self, request: Request, status: int, seconds: float) -> None:
        """Count what the answer took."""
        answered = request.variables.get(ANSWER)
        tokens = self._tokens(answered.usage) if isinstance(answered, Answered) else 0
        if not tokens:
            return
        for bound, _ in self._found(request):
            if self._shared is None:
                bound.limit.windows.add(bound.key, tokens, bound.window_s, self.services.clock())
            else:
                task = asyncio.get_running_loop().create_task(self._add(bound, tokens), name="count tokens")
                _counting.add(task)
                task.add_done_callback(_counting.discard)

    def _tokens(self, usage: Usage) -> int:
        if self._cost is None:
            return usage.tokens.get(self.config.limit_strategy, 0)
        cost = self._cost.cost(usage.raw) if usage.raw else 0
        if cost is None:
            self.services.logger.warning("cost_expr of ai-rate-limiting has no value for an answer")
        return cost or 0

    async def _add(self, bound: _Bound, tokens: int) -> None:
        assert self._shared is not None
        try:
            await self._shared.add(self._redis_key(bound), tokens, bound.window_s)
        except StoreError as error:
            self.services.logger.warning("ai-rate-limiting cannot count: %s", error)

    def _found(self, request: Request) -> list[tuple[_Bound, Filling]]:
        found = request.variables.get(self._place)
        return found if isinstance(found, list) else []
