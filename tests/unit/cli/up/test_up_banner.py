"""The line to try that `up` prints."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from headgate.cli.up.banner import Attempt, find_attempt
from headgate.common.service.admin import AdminSite

TABLE = {
    "hosts": [
        {"host": "dead.localhost", "routes": [{"path": "/"}]},
        {"host": "demo.localhost", "routes": [{"path": "/"}, {"path": "/red"}]},
    ]
}


@asynccontextmanager
async def gateway(ready: Mapping[str, bool]) -> AsyncIterator[str]:
    """An admin site whose routes have an endpoint that gets requests, or one that gets none."""

    async def table(request: web.Request) -> web.Response:
        return web.json_response(TABLE)

    async def explain(request: web.Request) -> web.Response:
        endpoint = {"gets_requests": ready.get(request.query["url"], False)}
        return web.json_response({"backends": [{"endpoints": [endpoint]}]})

    site = AdminSite()
    site.add_route("GET", "/table", table)
    site.add_route("GET", "/explain", explain)
    await site.start()
    try:
        yield site.url
    finally:
        await site.stop()


async def test_a_route_with_a_ready_endpoint_goes_before_one_without() -> None:
    async with gateway({"http://demo.localhost/red": True}) as url:
        assert await find_attempt(url) == Attempt("demo.localhost", "/red")


async def test_the_first_route_is_offered_when_none_is_ready() -> None:
    async with gateway({}) as url:
        assert await find_attempt(url) == Attempt("dead.localhost", "/")


async def test_a_gateway_that_does_not_answer_has_no_route_to_try() -> None:
    assert await find_attempt("http://127.0.0.1:1") is None
