"""Proxies with plugins, and connections that came before a request."""

import contextlib
from collections.abc import AsyncIterator

from fakes.gateway.proxied import Proxied, proxied
from fakes.peers.http2 import Http2Origin, Serve
from headgate.gateway.model.connection import ConnectionSpec
from headgate.gateway.plugins.interface import (
    Plugin,
    PluginConfig,
    PluginServices,
)
from headgate.gateway.plugins.runtime.chain import PluginChain
from headgate.gateway.plugins.runtime.run import RoutePlugins
from headgate.gateway.proxy.policies import RoutePolicies

GET = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"

H2C = ConnectionSpec("h2c")


def plugged(*plugins: type[Plugin[PluginConfig]]) -> RoutePolicies:
    policies = RoutePolicies()
    parts = [(0, plugin(PluginConfig(), PluginServices())) for plugin in plugins]
    policies.hooks = RoutePlugins(PluginChain(parts, PluginServices()))
    return policies


@contextlib.asynccontextmanager
async def before(
    *serves: Serve, settings: dict[int, int] | None = None
) -> AsyncIterator[tuple[Proxied, list[Http2Origin]]]:
    async with contextlib.AsyncExitStack() as stack:
        origins = [Http2Origin(serve, settings) for serve in serves]
        for origin in origins:
            await origin.start()
            stack.push_async_callback(origin.stop)
        proxy = await stack.enter_async_context(proxied())
        proxy.target.pools = [proxy.pools.get("127.0.0.1", origin.port, H2C) for origin in origins]
        yield proxy, origins
