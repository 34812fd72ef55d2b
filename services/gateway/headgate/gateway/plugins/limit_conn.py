"""`limit-conn`: so many requests under way at once, by key.

Requests beyond `conn` are delayed, for each full `conn` by `default_conn_delay`; those beyond `conn` and `burst`
together are refused (Apache APISIX `limit-conn`). nginx's `limit_conn` is this with a burst of 0.
"""

import asyncio
from collections.abc import Awaitable

from headgate.common.plugins.limits import LimitConnConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.keyed import Keyed, KeyReader, exempted, rejection

_HELD = "limit-conn.held"


class LimitConn(Plugin[LimitConnConfig]):
    """Bounds the requests under way."""

    name = "limit-conn"
    order = 1003
    Config = LimitConnConfig

    def __init__(self, config: LimitConnConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._exempted = exempted(config)
        self._key = KeyReader(config.key, config.key_type)
        self._counts: Keyed[int] = services.shared.get((self.name, services.scope, config.key), Keyed)

    def on_request(self, request: Request) -> Response | Awaitable[None] | None:
        """Count the request, or refuse it."""
        if self._exempted is not None and request.client in self._exempted:
            return None
        config = self.config
        key = self._key.read(request)
        count = (self._counts.get(key) or 0) + 1
        if count > config.conn + config.burst:
            return rejection(config, "over the limit of requests at once")
        self._counts.put(key, count)
        held = request.variables.setdefault(_HELD, [])
        assert isinstance(held, list)
        held.append((self, key))
        if count <= config.conn:
            return None
        delays = 1 if config.only_use_default_delay else (count - 1) // config.conn
        return asyncio.sleep(delays * config.default_conn_delay)

    def on_finish(self, request: Request, status: int, seconds: float) -> None:
        """Give the place back."""
        held = request.variables.get(_HELD)
        for plugin, key in held if isinstance(held, list) else ():
            if plugin is self:
                left = (self._counts.get(key) or 1) - 1
                if left > 0:
                    self._counts.put(key, left)
                else:
                    self._counts.drop(key)
