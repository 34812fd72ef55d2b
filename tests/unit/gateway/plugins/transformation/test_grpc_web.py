"""Calls of gRPC-Web, with a service of the gRPC authors' library behind the proxy."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from fakes.gateway.proxied import OK, Proxied, answering, proxied
from fakes.peers.grpc_service import Echo, grpc_server
from fakes.peers.http2 import Http2Origin, Peer, answer_with, http2_client, request
from headgate.common.table import PathMatch, PathType
from headgate.gateway.model.connection import ConnectionSpec
from headgate.gateway.plugins.interface import PluginServices
from headgate.gateway.plugins.runtime.run import RoutePlugins
from headgate.gateway.proxy.policies import RoutePolicies
from unit.gateway.plugins import running
from unit.gateway.plugins.running import chain

BINARY = {"Content-Type": "application/grpc-web+proto", "X-Grpc-Web": "1"}
TEXT = {"Content-Type": "application/grpc-web-text"}
BELOW = PathMatch(type=PathType.STRING_PREFIX, value="/grpc/web/")
UNARY = "/grpc/web/test.Echo/Unary"
FINE = {"grpc-status": "0", "grpc-message": ""}


def frame(message: bytes, flags: int = 0) -> bytes:
    return bytes([flags]) + len(message).to_bytes(4, "big") + message


def pieces(text: bytes) -> bytes:
    """Decode base64 in which each piece has its own padding, as browsers do."""
    return b"".join(base64.b64decode(text[at : at + 4]) for at in range(0, len(text), 4))


def frames(body: bytes) -> list[tuple[int, bytes]]:
    found = []
    while body:
        size = int.from_bytes(body[1:5], "big")
        found.append((body[0], body[5 : 5 + size]))
        body = body[5 + size :]
    return found


def trailers(block: bytes) -> dict[str, str]:
    assert block.endswith(b"\r\n")
    return dict(line.split(":", 1) for line in block.decode().removesuffix("\r\n").split("\r\n"))


@asynccontextmanager
async def before(
    port: int, *others: tuple[str, dict[str, Any]], path: PathMatch | None = BELOW
) -> AsyncIterator[Proxied]:
    async with proxied() as proxy:
        proxy.target.pools = [proxy.pools.get("127.0.0.1", port, ConnectionSpec("h2c"))]
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.hooks = RoutePlugins(chain(("grpc-web", {}), *others, services=PluginServices(path=path)))
        yield proxy


@asynccontextmanager
async def service(
    *others: tuple[str, dict[str, Any]], path: PathMatch | None = BELOW
) -> AsyncIterator[tuple[Proxied, Echo]]:
    async with grpc_server() as (echo, port), before(port, *others, path=path) as proxy:
        yield proxy, echo


async def ask(
    proxy: Proxied, body: bytes, headers: Mapping[str, str] = BINARY, path: str = UNARY, method: str = "POST"
) -> tuple[aiohttp.ClientResponse, bytes]:
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.request(method, f"http://127.0.0.1:{proxy.port}{path}", data=body, headers=headers) as answer,
    ):
        return answer, await answer.read()


async def test_a_call_is_answered_with_its_message_and_its_trailers_in_the_body() -> None:
    async with service() as (proxy, echo):
        answer, body = await ask(proxy, frame(b"abc"), {**BINARY, "x-key": "v"})
        assert (answer.status, answer.headers["Content-Type"]) == (200, "application/grpc-web+proto")
        (flag, message), (end, block) = frames(body)
        assert (flag, message, end) == (0, b"cba", 0x80)
        assert trailers(block) == {"x-trailer": "t", **FINE}
        assert echo.metadata[0]["x-key"] == "v"


async def test_bodies_in_text_are_base64_both_ways() -> None:
    async with service() as (proxy, _):
        answer, body = await ask(proxy, base64.b64encode(frame(b"abcd")), TEXT)
        assert answer.headers["Content-Type"] == "application/grpc-web-text"
        (_, message), (end, block) = frames(pieces(body))
        assert (message, end, trailers(block)["grpc-status"]) == (b"dcba", 0x80, "0")


async def test_each_piece_of_a_body_in_text_may_have_its_own_padding() -> None:
    sent = frame(b"abcd")
    async with service() as (proxy, _):
        _, body = await ask(
            proxy, base64.b64encode(sent[:1]) + base64.b64encode(sent[1:6]) + base64.b64encode(sent[6:]), TEXT
        )
        assert frames(pieces(body))[0] == (0, b"dcba")


async def test_a_long_message_in_text_passes() -> None:
    message = bytes(range(256)) * 2000
    async with service() as (proxy, _):
        _, body = await ask(proxy, base64.b64encode(frame(message)), TEXT)
        assert frames(pieces(body))[0] == (0, message[::-1])


@pytest.mark.parametrize("body", [b"%%%%", b"AAA", b"AA==" * 5000])
async def test_a_body_that_is_not_in_base64_is_refused(body: bytes) -> None:
    async with service() as (proxy, echo):
        answer, _ = await ask(proxy, body, TEXT)
        assert answer.status == 400
        assert echo.metadata == []


async def test_a_stream_of_the_service_passes() -> None:
    async with service() as (proxy, _):
        _, body = await ask(proxy, frame(b"300"), path="/grpc/web/test.Echo/ServerStream")
        *messages, (end, block) = frames(body)
        assert messages == [(0, b"%d" % number) for number in range(300)]
        assert (end, trailers(block)["grpc-status"]) == (0x80, "0")


@pytest.mark.parametrize("headers", [BINARY, TEXT])
async def test_messages_of_a_stream_go_out_as_they_come(headers: Mapping[str, str]) -> None:
    arrived = asyncio.Event()

    async def serve(peer: Peer, stream_id: int) -> None:
        peer.h2.send_headers(stream_id, [(b":status", b"200"), (b"content-type", b"application/grpc")])
        peer.send(stream_id, frame(b"first"))
        await arrived.wait()
        peer.send(stream_id, frame(b"second"))
        peer.trailers(stream_id, [(b"grpc-status", b"0")])

    origin = Http2Origin(serve)
    await origin.start()
    first = frame(b"first") if headers is BINARY else base64.b64encode(frame(b"first"))
    async with before(origin.port) as proxy, aiohttp.ClientSession() as session:
        sent = frame(b"") if headers is BINARY else base64.b64encode(frame(b""))
        async with session.post(f"http://127.0.0.1:{proxy.port}{UNARY}", data=sent, headers=headers) as answer:
            assert await answer.content.readexactly(len(first)) == first
            arrived.set()
            rest = await answer.content.read()
    await origin.stop()
    assert frames(rest if headers is BINARY else pieces(rest))[0] == (0, b"second")


async def test_a_client_over_http_2_gets_no_other_trailers() -> None:
    async with service() as (proxy, _), http2_client(proxy.port) as client:
        kind = (b"content-type", b"application/grpc-web")
        answer = await client.fetch(request(b"POST", UNARY.encode(), kind), frame(b"abc"))
        assert (answer.status, answer.trailers) == (200, {})
        assert frames(bytes(answer.body))[0] == (0, b"cba")


@pytest.mark.parametrize("headers", [BINARY, TEXT])
async def test_a_call_that_fails_without_messages_says_why(headers: Mapping[str, str]) -> None:
    async with service() as (proxy, _):
        body = frame(b"fail") if headers is BINARY else base64.b64encode(frame(b"fail"))
        answer, body = await ask(proxy, body, headers)
        assert (answer.status, answer.headers["Content-Type"]) == (200, headers["Content-Type"])
        body = body if headers is BINARY else pieces(body)
        said = trailers(frames(body)[0][1]) if body else answer.headers
        assert (said["grpc-status"], said["grpc-message"]) == ("9", "nicht m%C3%B6glich: 100%25")
        assert said["x-why-bin"] == "AP8"


async def test_status_among_the_headers_stays_there() -> None:
    head = ((b"content-type", b"application/grpc"), (b"grpc-status", b"5"), (b"grpc-message", b"gone"))

    async def serve(peer: Peer, stream_id: int) -> None:
        peer.h2.send_headers(stream_id, [(b":status", b"200"), *head], end_stream=True)
        peer.flush()

    origin = Http2Origin(serve)
    await origin.start()
    async with before(origin.port) as proxy:
        answer, body = await ask(proxy, frame(b""))
    await origin.stop()
    assert (answer.headers["grpc-status"], answer.headers["grpc-message"], body) == ("5", "gone", b"")


async def test_an_answer_without_status_is_told_as_such() -> None:
    origin = Http2Origin(answer_with(frame(b"m"), (b"content-type", b"application/grpc")))
    await origin.start()
    async with before(origin.port) as proxy:
        _, body = await ask(proxy, frame(b""))
    await origin.stop()
    (_, message), (_, block) = frames(body)
    assert message == b"m"
    assert trailers(block) == {"grpc-status": "2", "grpc-message": "upstream grpc status not received"}


async def test_an_answer_that_is_no_grpc_passes_as_it_is() -> None:
    origin = Http2Origin(answer_with(b"not here", (b"content-type", b"text/plain")))
    await origin.start()
    async with before(origin.port) as proxy:
        answer, body = await ask(proxy, base64.b64encode(frame(b"")), TEXT)
    await origin.stop()
    assert (answer.headers["Content-Type"], body) == ("text/plain", b"not here")


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        (PathMatch(type=PathType.STRING_PREFIX, value="/grpc/web/"), UNARY),
        (PathMatch(type=PathType.STRING_PREFIX, value="/grpc/web/test."), "/grpc/web/test.test.Echo/Unary"),
        (PathMatch(type=PathType.PREFIX, value="/grpc/web"), UNARY),
        (PathMatch(type=PathType.STRING_PREFIX, value="/"), "/test.Echo/Unary"),
        (PathMatch(type=PathType.EXACT, value="/test.Echo/Unary"), "/test.Echo/Unary"),
        (PathMatch(type=PathType.REGEX, value="^/test"), "/test.Echo/Unary"),
        (None, "/test.Echo/Unary"),
    ],
)
async def test_what_the_route_takes_off_a_path_is_its_prefix(path: PathMatch | None, sent: str) -> None:
    async with service(path=path) as (proxy, _):
        _, body = await ask(proxy, frame(b"abc"), path=sent)
        assert frames(body)[0] == (0, b"cba")


async def test_the_prefix_of_a_path_that_was_rewritten_before_stays() -> None:
    rewrite = ("proxy-rewrite", {"uri": "/test.Echo/Unary"})
    async with service(rewrite) as (proxy, _):
        _, body = await ask(proxy, frame(b"abc"), path="/grpc/web/whatever")
        assert frames(body)[0] == (0, b"cba")


async def test_pages_of_all_origins_may_call() -> None:
    async with service() as (proxy, echo):
        answer, _ = await ask(proxy, b"", {"Origin": "https://a.example"}, method="OPTIONS")
        assert answer.status == 204
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert answer.headers["Access-Control-Allow-Methods"] == "POST"
        assert answer.headers["Access-Control-Allow-Headers"] == "content-type,x-grpc-web,x-user-agent"
        assert echo.metadata == []
        answer, _ = await ask(proxy, frame(b"abc"), {**BINARY, "Origin": "https://a.example"})
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert answer.headers["Access-Control-Expose-Headers"] == "grpc-status, grpc-message"


async def test_cors_decides_where_a_route_has_it() -> None:
    cors = {"allow_origins": "https://a.example", "expose_headers": "x-mine", "allow_methods": "POST"}
    async with service(("cors", cors)) as (proxy, _):
        answer, _ = await ask(proxy, frame(b"abc"), {**BINARY, "Origin": "https://a.example"})
        assert answer.headers["Access-Control-Allow-Origin"] == "https://a.example"
        assert answer.headers["Access-Control-Expose-Headers"] == "x-mine, grpc-status, grpc-message"
        asking = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
        answer, _ = await ask(proxy, b"", asking, method="OPTIONS")
        assert answer.headers["Access-Control-Allow-Origin"] == "https://a.example"


async def test_an_origin_that_cors_does_not_allow_is_not_let_in() -> None:
    stranger = {"Origin": "https://b.example", "Access-Control-Request-Method": "POST"}
    async with service(("cors", {"allow_origins": "https://a.example"})) as (proxy, _):
        for method, headers in (("POST", {**BINARY, **stranger}), ("OPTIONS", stranger)):
            answer, _ = await ask(proxy, frame(b"abc"), headers, method=method)
            assert [name for name in answer.headers if name.lower() == "access-control-allow-origin"] == []


@pytest.mark.parametrize(
    ("method", "kind", "status"),
    [
        ("GET", "application/grpc-web", 405),
        ("HEAD", "application/grpc-web", 405),
        ("PUT", "application/grpc-web", 405),
        ("POST", "application/json", 400),
        ("POST", "application/grpc", 400),
        ("POST", "application/grpc-webs", 400),
    ],
)
async def test_what_is_no_call_is_refused(method: str, kind: str, status: int) -> None:
    asking = running.request("/grpc/web/a.B/C", [("Content-Type", kind)], method=method)
    answer = await running.exchanged(chain(("grpc-web", {}), services=PluginServices(path=BELOW)), asking)
    assert answer.status == status
    if method != "HEAD":
        assert answer.headers.get("Access-Control-Allow-Origin") == "*"


async def test_other_headers_are_allowed_to_pages_where_the_route_says_so() -> None:
    plugins = chain(("grpc-web", {"cors_allow_headers": "content-type,x-mine"}))
    answer = await running.exchanged(plugins, running.request("/", method="OPTIONS"))
    assert answer.headers.get("Access-Control-Allow-Headers") == "content-type,x-mine"


async def test_a_failure_of_the_gateways_own_keeps_its_form() -> None:
    async with proxied(answering(OK)) as proxy:
        proxy.target.pools = []
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.hooks = RoutePlugins(chain(("grpc-web", {})))
        answer, body = await ask(proxy, frame(b""))
        assert answer.status == 503
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert body.startswith(b"503 ")
