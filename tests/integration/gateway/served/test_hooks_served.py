"""`python-hook` from the table's entry to the wire."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fakes.gateway.proxied import OK, answering
from fakes.gateway.served import Served, at, origins, served, site, to

HOOKS = """
import asyncio
from headgate.gateway.plugins.interface import Response

def tenant(request, header="X-Tenant"):
    request.headers.set(header, request.host.partition(".")[0])

async def closed(request):
    await asyncio.sleep(0)
    return Response.text(503, "closed", reason="closed")

def stamp(request, response):
    response.headers.set("X-Asked", request.path)

def fails(request):
    raise LookupError("nothing there")
"""


@asynccontextmanager
async def hooked(folder: Path, config: dict[str, Any]) -> AsyncIterator[tuple[Served, Any]]:
    """Serve a route with functions of a file."""
    file = folder / "hooks.py"
    file.write_text(HOOKS)
    async with origins(answering(OK)) as (origin,), served(hooks_file=file) as proxy:
        proxy.put(at(origin.port), site(to("up", plugins=[("python-hook", config)])))
        yield proxy, origin


async def test_functions_change_requests_and_answers(tmp_path: Path) -> None:
    config = {"request": "tenant", "response": "stamp"}
    async with hooked(tmp_path, config) as (proxy, origin):
        got = await proxy.get("/path", X_Tenant="forged")
        assert (got.status, got["X-Asked"]) == (200, "/path")
        assert b"X-Tenant: a\r\n" in origin.heads[0]
        assert b"forged" not in origin.heads[0]


async def test_arguments_go_to_functions_by_name(tmp_path: Path) -> None:
    config = {"request": "tenant", "arguments": {"header": "X-Label"}}
    async with hooked(tmp_path, config) as (proxy, origin):
        assert (await proxy.get("/")).status == 200
        assert b"X-Label: a\r\n" in origin.heads[0]


async def test_a_function_that_waits_answers_in_the_upstreams_place(tmp_path: Path) -> None:
    async with hooked(tmp_path, {"request": "closed"}) as (proxy, origin):
        got = await proxy.get("/")
        assert (got.status, got.body) == (503, b"closed")
        assert origin.heads == []


async def test_a_function_that_fails_refuses_the_request(tmp_path: Path) -> None:
    async with hooked(tmp_path, {"request": "fails"}) as (proxy, origin):
        got = await proxy.get("/")
        assert got.status == 500
        assert b"nothing there" not in got.body
        assert origin.heads == []


@pytest.mark.parametrize(
    "config",
    [
        {"request": "nowhere"},
        {"request": "tenant", "arguments": {"colour": "red"}},
        {"request": "stamp"},
        {"response": "closed"},
    ],
)
async def test_a_function_that_cannot_be_called_so_refuses_the_route(tmp_path: Path, config: dict[str, Any]) -> None:
    async with hooked(tmp_path, config) as (proxy, origin):
        assert (await proxy.get("/")).status == 500
        assert origin.heads == []
