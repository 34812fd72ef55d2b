"""Routes with `openid-connect`, the provider behind them, and browsers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from fakes.peers.openid_provider import CLIENT, SECRET, OpenidProvider
from headgate.gateway.plugins.interface import Headers, Request, Response
from headgate.gateway.plugins.runtime.chain import PluginChain
from unit.gateway.plugins.running import answered, asked, chain, request
from unit.gateway.plugins.service import running

SESSION = {"secret": "sixteen letters."}


class Site:
    """Routes with the plugin, and the provider behind them."""

    def __init__(self, provider: OpenidProvider, services: Any) -> None:
        self.provider = provider
        self.services = services

    def chain(self, **config: Any) -> PluginChain:
        told = {
            "client_id": CLIENT,
            "client_secret": SECRET,
            "discovery": f"{self.provider.url}/.well-known/openid-configuration",
            **config,
        }
        return chain(("openid-connect", told), services=self.services)


@asynccontextmanager
async def site(**services: Any) -> AsyncIterator[Site]:
    """Serve a provider; `services` are given to plugins besides."""
    provider = OpenidProvider()
    async with running(lambda seen: provider.handle(seen.method, seen.target, seen.headers, seen.body)) as service:
        provider.url = service.url
        yield Site(provider, replace(service.services, **services))


def bearing(token: str, *more: tuple[str, str]) -> Request:
    return request("/", [("Authorization", f"Bearer {token}"), *more])


async def status(plugins: PluginChain, given: Request) -> int:
    response = await asked(plugins, given)
    return 200 if response is None else response.status


class Browser:
    """Keeps cookies, and follows nothing by itself."""

    def __init__(self, plugins: PluginChain) -> None:
        self.plugins = plugins
        self.cookies: dict[str, str] = {}
        self.told = Headers()

    async def get(self, target: str = "/cart?id=7", *, scheme: str = "https") -> Response:
        shown = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = [("Cookie", shown)] if shown else []
        given = request(target, [*headers, ("X-Userinfo", "forged")], scheme=scheme)
        response = await asked(self.plugins, given) or Response(200)
        await answered(self.plugins, given, response)
        self.told = given.headers
        for cookie in response.headers.get_all("Set-Cookie"):
            name, _, rest = cookie.partition("=")
            value, *attributes = rest.split("; ")
            assert "HttpOnly" in attributes
            if "Max-Age=0" in attributes:
                del self.cookies[name]
            else:
                self.cookies[name] = value
        return response

    async def log_in(self, provider: OpenidProvider) -> Response:
        location = (await self.get()).headers.get("Location") or ""
        return await self.get(provider.log_in(location))
