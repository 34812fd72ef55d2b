"""What clients get of answers, and servers of requests: the same bytes to Traefik and to a gateway of ours."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NamedTuple

import pytest
import pytest_asyncio

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import Conversation
from fakes.gateway.served import origins
from fakes.peers.traefik import ENTRY_POINT, needs_traefik, traefik
from fakes.translator.applied import world
from fakes.translator.traefik import route, rule
from headgate.translator.world.entry_point_settings import EntryPointSettings, read_entry_points
from headgate.translator.world.settings import TranslationSettings

pytestmark = [needs_traefik, pytest.mark.asyncio(loop_scope="module")]

OK: Final = "HTTP/1.1 200 OK"
SIZED: Final = "Content-Length: 2\r\n\r\nhi"
CHUNKS: Final = "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n"
ANSWERS: Final = {
    "/sized": f"{OK}\r\n{SIZED}",
    "/chunked": f"{OK}\r\n{CHUNKS}\r\n",
    "/trailers": f"{OK}\r\nTrailer: X-T\r\n{CHUNKS}X-T: 1\r\n\r\n",
    "/untold-trailers": f"{OK}\r\n{CHUNKS}X-T: 1\r\n\r\n",
    "/early-hints": f"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n{OK}\r\n{SIZED}",
    "/processing": f"HTTP/1.1 102 Processing\r\n\r\n{OK}\r\n{SIZED}",
    "/no-content": "HTTP/1.1 204 No Content\r\n\r\n",
    "/not-modified": "HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n",
    "/hops": f"{OK}\r\nKeep-Alive: timeout=3\r\nProxy-Authenticate: x\r\nUpgrade: h2\r\n{SIZED}",
    "/several": f"{OK}\r\nSet-Cookie: a=1\r\nVia: 1.1 a\r\nSet-Cookie: b=2\r\nAlt-Svc: clear\r\n{SIZED}",
    "/unauthorized": "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n",
}
BODY: Final = "Content-Length: 3\r\n\r\nabc"
ASKS: Final = {
    **{path: f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n" for path in ANSWERS},
    **{
        f"{path} with TE": f"GET {path} HTTP/1.1\r\nHost: h\r\nTE: trailers\r\n\r\n" for path in ("/sized", "/trailers")
    },
    **{
        f"{path}, then closed": f"GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
        for path in ("/sized", "/chunked", "/trailers")
    },
    **{f"{path} by HTTP/1.0": f"GET {path} HTTP/1.0\r\nHost: h\r\n\r\n" for path in ("/sized", "/chunked")},
    **{f"HEAD of {path}": f"HEAD {path} HTTP/1.1\r\nHost: h\r\n\r\n" for path in ("/sized", "/no-content")},
    **{
        method: f"{method} /sized HTTP/1.1\r\nHost: h\r\n\r\n"
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND")
    },
    **{f"{method} with a body": f"{method} /sized HTTP/1.1\r\nHost: h\r\n{BODY}" for method in ("GET", "POST")},
    "chunked body": "POST /sized HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "chunked body with trailers": (
        "POST /sized HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"
    ),
    "whole URL": "GET http://other/sized HTTP/1.1\r\nHost: h\r\n\r\n",
    "HTTP/1.0 without a host": "GET /sized HTTP/1.0\r\n\r\n",
    "no host": "GET /sized HTTP/1.1\r\n\r\n",
    "two hosts": "GET /sized HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
    "host with a space": "GET /sized HTTP/1.1\r\nHost: a b\r\n\r\n",
    "no answer": "GET /none HTTP/1.1\r\nHost: h\r\n\r\n",
    "CONNECT to a path": "CONNECT /sized HTTP/1.1\r\nHost: h\r\n\r\n",
}
OWN: Final = ("server", "date", "x-request-id", "connection", "content-type")
"""Each gateway writes them in its own way; Traefik guesses types of answers behind informational ones."""
_QUIET_S: Final = 0.3


class Side(NamedTuple):
    """One of the two."""

    port: int
    got: list[tuple[str, bytes]]
    """Request lines and bodies that the server got."""


def _server(got: list[tuple[str, bytes]]) -> Callable[[Conversation], Awaitable[None]]:
    async def serve(conversation: Conversation) -> None:
        while True:
            head, body = await conversation.request()
            line = head.decode().partition("\r\n")[0]
            got.append((line, body))
            path = line.split()[1]
            if path == "/none":
                return
            answer = ANSWERS.get(path, ANSWERS["/sized"])
            is_head = line.startswith("HEAD ")
            await conversation.send((answer.partition("\r\n\r\n")[0] + "\r\n\r\n" if is_head else answer).encode())

    return serve


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Side, Side]]:
    """Traefik and ours, each with a route for all requests."""
    theirs, ours = (free_port("127.0.0.1", socket.SOCK_STREAM) for _ in range(2))
    heard: tuple[list[tuple[str, bytes]], list[tuple[str, bytes]]] = ([], [])
    async with contextlib.AsyncExitStack() as stack:
        (origin,) = await stack.enter_async_context(origins(_server(heard[0])))
        http = {
            "routers": {"all": {"rule": "PathPrefix(`/`)", "entryPoints": [ENTRY_POINT, "api"], "service": "up"}},
            "services": {"up": {"loadBalancer": {"servers": [{"url": f"http://127.0.0.1:{origin.port}"}]}}},
        }
        folder = tmp_path_factory.mktemp("traefik")
        await stack.enter_async_context(
            traefik(folder, {"http": http}, f"--entrypoints.api.address=127.0.0.1:{theirs}")
        )
        read = {"api": EntryPointSettings.model_validate({"address": f":{ours}"})}
        settings = TranslationSettings(entry_points=read_entry_points(read))
        made = await stack.enter_async_context(world(settings=settings, web=_server(heard[1])))
        made.proxy.apply(route(rule("PathPrefix(`/`)"), name="all", spec={"entryPoints": ["api"]}))
        yield Side(theirs, heard[0]), Side(ours, heard[1])


async def _exchange(side: Side, asked: str) -> tuple[list[str], list[tuple[str, bytes]]]:
    """Return the lines of all answers, those of heads sorted, and what the server got."""
    side.got.clear()
    reader, writer = await asyncio.open_connection("127.0.0.1", side.port)
    writer.write(asked.encode())
    data = b""
    with contextlib.suppress(TimeoutError):
        while part := await asyncio.wait_for(reader.read(65536), _QUIET_S if data else 5):
            data += part
        data += b"<closed>"
    writer.close()
    head, _, rest = data.decode().partition("\r\n\r\n")
    heads = [head]
    while heads[-1].startswith("HTTP/1.1 10"):
        head, _, rest = rest.partition("\r\n\r\n")
        heads.append(head)
    lines: list[str] = []
    for each in heads:
        status, *fields = each.split("\r\n")
        shown = [field.lower() for field in fields if field.partition(":")[0].lower() not in OWN]
        lines += [status.split(" ")[1], *sorted(shown)]
    # Each says in its own words what is wrong.
    if int(lines[0]) >= 400 and lines[0] != "401":
        return lines[:1], side.got[:1]
    return [*lines, rest], list(side.got)


@pytest.mark.parametrize("name", ASKS)
async def test_requests_and_answers_pass_alike(name: str, both: tuple[Side, Side]) -> None:
    theirs, ours = [await _exchange(side, ASKS[name]) for side in both]
    if name == "CONNECT to a path":
        assert (theirs, ours) == ((["501"], []), (["405"], []))
        return
    assert ours == theirs


@pytest.mark.parametrize(
    "path",
    [
        "/a/../b/./c/../d/",
        "/a/b/../",
        "/a/..",
        "/./a",
        "/a/%252E%252E/%252E%252E/b/",
        "/foo%20bar",
        "/foo%2Fbar",
        "/foo%20%2Fbar",
        "/%3A%2F%2F",
        "/ws/http%3A%2F%2Ftest",
        "/a%23b%25%3F",
        "/a;b[c]",
        "/a?b?c=%41&&d",
        "/a?b=1;c=2&d=%3B",
        "/b",
        "/b/",
        "/../../b/",
        "/../../b",
        "/a/../../b",
        "/..///b///",
        "/a/../b",
        "/a/./b",
        "/a//b",
        "//a",
        "/a/../c/../b",
        "/a/../../../c/../b",
        "/a/../c/../../b",
        "/a/..//c/.././b",
        "/a/../../b/../c/",
        "/a/%2E%2E/%2E%2E/b/",
        "/a/../b/%41%42%43//%2f/",
        "/%41%7a%2d%2e%5f%7e%3a%0a%25",
        "/x%2Fy/../z",
    ],
)
async def test_paths_arrive_alike(path: str, both: tuple[Side, Side]) -> None:
    theirs, ours = [await _exchange(side, f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n") for side in both]
    assert ours == theirs
    assert ours[0][0] == "200"


@pytest.mark.parametrize("path", ["/%", "/%f", "/a%zz"])
async def test_paths_that_are_malformed_are_refused_by_both(path: str, both: tuple[Side, Side]) -> None:
    theirs, ours = [await _exchange(side, f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n") for side in both]
    assert (theirs, ours) == ((["400"], []), (["400"], []))


@pytest.mark.parametrize("path", ["/a/..%2Fb/", "/a/..;/b", "/a/%252e%2e/%2%65"])
async def test_paths_that_may_be_read_in_two_ways_are_refused_here(path: str, both: tuple[Side, Side]) -> None:
    _, ours = [await _exchange(side, f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n") for side in both]
    assert ours[0][0] == "400"


async def test_a_segment_above_leaves_its_slash_here(both: tuple[Side, Side]) -> None:
    theirs, ours = [await _exchange(side, "GET /a/b/.. HTTP/1.1\r\nHost: h\r\n\r\n") for side in both]
    assert (theirs[1], ours[1]) == ([("GET /a HTTP/1.1", b"")], [("GET /a/ HTTP/1.1", b"")])
