"""Routes below others in Traefik and in a gateway of ours, the same requests to both."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fakes.gateway.proxied import Client
from fakes.gateway.served import asking, read_answer
from fakes.peers.traefik import ENTRY_POINT, needs_traefik, traefik
from fakes.translator.applied import World, world
from fakes.translator.traefik import ANY, middleware, route

pytestmark = [needs_traefik, pytest.mark.asyncio(loop_scope="module")]

MIDDLEWARES: dict[str, Any] = {
    "tells": {"headers": {"customRequestHeaders": {"X-Role": "admin", "X-Gone": "", "Host": "other.example.com"}}},
    "strips": {"stripPrefix": {"prefixes": ["/api", "/v1"]}},
    "answers": {"headers": {"customResponseHeaders": {"X-Above": "seen"}}},
    "replaces": {"replacePathRegex": {"regex": "^/old/(.*)$", "replacement": "/new/$1"}},
}
ABOVE = f"{ANY} && !PathPrefix(`/else`)"
CHILDREN: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "by-header": ("Header(`X-Role`, `admin`) && PathPrefix(`/role`)", 0, ()),
    "by-missing": ("PathPrefix(`/gone`) && !HeaderRegexp(`X-Gone`, `.`)", 0, ()),
    "by-path": ("Path(`/stripped`)", 0, ()),
    "by-escape": ("Path(`/a b`)", 0, ()),
    "by-new-host": ("Host(`other.example.com`) && Path(`/host`)", 0, ()),
    "by-old-host": (f"{ANY} && Path(`/host`)", 0, ()),
    "by-query": ("Query(`q`, `1`) && PathPrefix(`/query`)", 0, ()),
    "by-method": ("Method(`DELETE`)", 0, ()),
    "by-told": ("HeaderRegexp(`X-Forwarded-Prefix`, `^/api`) && PathPrefix(`/told`)", 0, ()),
    "by-replaced": ("PathPrefix(`/new/`)", 0, ()),
    "low": ("PathPrefix(`/level`) && PathPrefix(`/level`)", 1, ()),
    "high": ("PathPrefix(`/level`)", 2, ("replaces",)),
}
ASKS = [
    ("GET", "/role", {}),
    ("GET", "/role", {"X_Role": "user"}),
    ("GET", "/gone", {"X_Gone": "here"}),
    ("GET", "/api/stripped", {}),
    ("GET", "/v1/stripped", {}),
    ("GET", "/stripped", {}),
    ("GET", "/api/a%20b", {}),
    ("GET", "/host", {}),
    ("GET", "/query?q=1", {}),
    ("GET", "/query?q=2", {}),
    ("DELETE", "/any", {}),
    ("GET", "/api/told", {}),
    ("GET", "/told", {}),
    ("GET", "/old/x", {}),
    ("GET", "/level", {}),
    ("GET", "/nothing", {}),
    ("GET", "/else", {}),
]


@dataclass(frozen=True)
class Both:
    ours: World
    traefik: int
    """Its port."""


def configuration(made: World) -> dict[str, object]:
    top = {"rule": ABOVE, "entryPoints": [ENTRY_POINT], "middlewares": ["tells", "strips", "answers", "replaces"]}
    below = {
        name: {"rule": match, "priority": priority, "service": name, "parentRefs": ["top"], "middlewares": [*listed]}
        for name, (match, priority, listed) in CHILDREN.items()
    }
    services = {
        name: {"loadBalancer": {"servers": [{"url": f"http://127.0.0.1:{made.port(name)}"}]}} for name in CHILDREN
    }
    return {"http": {"routers": {"top": top} | below, "middlewares": MIDDLEWARES, "services": services}}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def both(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Both]:
    folder: Path = tmp_path_factory.mktemp("traefik")
    async with contextlib.AsyncExitStack() as stack:
        made = await stack.enter_async_context(world(*CHILDREN))
        theirs = await stack.enter_async_context(traefik(folder, configuration(made)))
        listed = [{"name": name} for name in MIDDLEWARES]
        made.proxy.apply(*(middleware(name, **spec) for name, spec in MIDDLEWARES.items()))
        made.proxy.apply(route({"match": ABOVE, "kind": "Rule", "middlewares": listed}, name="top"))
        for name, (match, priority, own) in CHILDREN.items():
            to = {"match": match, "kind": "Rule", "services": [{"name": name, "port": 80}], "priority": priority}
            to["middlewares"] = [{"name": each} for each in own]
            made.proxy.apply(route(to, name=name, spec={"parentRefs": [{"name": "top"}]}))
        yield Both(made, theirs.port)


async def ask(port: int, method: str, path: str, headers: dict[str, str]) -> tuple[int, str, list[str]]:
    """Return status, the service that answered, and what the middleware above says of the answer."""
    async with asyncio.timeout(10):
        client = Client(*await asyncio.open_connection("127.0.0.1", port))
        await client.send(asking(path, method=method, **headers))
        got = await read_answer(client)
        client.writer.close()
    return got.status, got.body.decode() if got.status == 200 else "", got.all("X-Above")


@pytest.mark.parametrize("asked", ASKS, ids=lambda asked: f"{asked[0]} {asked[1]} {' '.join(asked[2])}")
async def test_the_same_route_below_takes_a_request(both: Both, asked: tuple[str, str, dict[str, str]]) -> None:
    theirs = await ask(both.traefik, *asked)
    assert await ask(both.ours.proxy.proxy.port, *asked) == theirs


async def test_the_order_of_middlewares_is_that_of_the_layers(both: Both) -> None:
    assert (await both.ours.proxy.get("/api/level")).body == b"high"
    assert b"x-forwarded-prefix: /api\r\n" in both.ours.servers["high"].heads[-1].lower()
