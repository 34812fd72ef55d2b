"""`limit-count`: so many requests in a window of time, by key.

The window of a key begins with its first request and is counted anew after it (Apache APISIX `limit-count`, window type
`fixed`).
"""

import math

from headgate.common.plugins.limits import LimitCountConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.keyed import Keyed, KeyReader, exempted, rejection

_QUOTA = "limit-count.quota"


class _Window:
    __slots__ = ("count", "ends")

    def __init__(self, ends: float) -> None:
        self.count = 0
        self.ends = ends


class _Rule:
    """One limit with its counts."""

    def __init__(self, count: int, window_s: float, key: KeyReader, prefix: str, windows: Keyed[_Window]) -> None:
        self.count = count
        self.prefix = prefix
        self._window_s = window_s
        self._key = key
        self._windows = windows

    def take(self, request: Request, now: float) -> tuple[int, int]:
        """Count a request: what is left (negative: it is over the limit), and seconds until the window ends."""
        key = self._key.read(request)
        window = self._windows.get(key)
        if window is None or now >= window.ends:
            window = self._windows.put(key, _Window(now + self._window_s))
        if window.count <= self.count:
            window.count += 1
        return self.count - window.count, math.ceil(window.ends - now)


class LimitCount(Plugin[LimitCountConfig]):
    """Counts requests in fixed windows."""

    name = "limit-count"
    order = 1002
    Config = LimitCountConfig

    def __init__(self, config: LimitCountConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._exempted = exempted(config)
        self._rules = [self._make_rule(*limit) for limit in _limits(config)]

    def _make_rule(self, count: int, window_s: float, key: str, combined: bool, prefix: str) -> _Rule:
        config = self.config
        whose = ("group", config.group) if config.group else ("route", self.services.scope)
        state_key = (self.name, *whose, count, window_s, key, prefix)
        windows: Keyed[_Window] = self.services.shared.get(state_key, Keyed)
        reader = KeyReader(key, "var_combination" if combined else config.key_type)
        return _Rule(count, window_s, reader, prefix, windows)

    def on_request(self, request: Request) -> Response | None:
        """Refuse what is over a limit."""
        if self._exempted is not None and request.client in self._exempted:
            return None
        now = self.services.clock()
        quotas = [(rule, *rule.take(request, now)) for rule in self._rules]
        if self.config.show_limit_quota_header:
            request.variables[_QUOTA] = quotas
        if any(left < 0 for _, left, _ in quotas):
            return rejection(self.config, "over the limit of requests for this time")
        return None

    def on_response(self, request: Request, response: Response) -> None:
        """Say what is left."""
        quotas = request.variables.get(_QUOTA)
        if not isinstance(quotas, list):
            return
        for rule, left, reset_s in quotas:
            response.headers.set(f"{rule.prefix}-Limit", str(rule.count))
            response.headers.set(f"{rule.prefix}-Remaining", str(max(left, 0)))
            response.headers.set(f"{rule.prefix}-Reset", str(reset_s))


def _limits(config: LimitCountConfig) -> list[tuple[int, float, str, bool, str]]:
    """Give count, seconds, key, whether the key is a template, and the headers' prefix of each limit."""
    if config.count is not None and config.time_window is not None:
        return [(config.count, config.time_window, config.key, False, "X-RateLimit")]
    return [
        (rule.count, rule.time_window, rule.key, True, f"X-{rule.header_prefix or number}-RateLimit")
        for number, rule in enumerate(config.rules, 1)
    ]
