"""What answers are where servers do not say it: Traefik with `contentType` and ours, the same bodies from both."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio

from fakes.gateway.proxied import Client, Conversation
from fakes.gateway.served import asking, origins, read_answer
from fakes.peers.traefik import ENTRY_POINT, needs_traefik, traefik
from fakes.translator.applied import world
from fakes.translator.traefik import middleware, route, rule

pytestmark = [needs_traefik, pytest.mark.asyncio(loop_scope="module")]

_MP4 = b"\0\0\0\x18ftypisom\0\0\0\0isommp42"
BODIES = (
    b"Test",
    b"<!DOCTYPE html><p>",
    b" \n\t<HtMl>",
    b"<html",
    b"<a href=x>",
    b"<bc>",
    b"<!-- x",
    b"<!--x",
    b"  <?xml version='1.0'?>",
    b"\x0b<html>",
    b"%PDF-1.4",
    b" %PDF-1.4",
    b"%!PS-Adobe-3",
    b"\xfe\xffab",
    b"\xfe\xffa",
    b"\xff\xfeab",
    b"\xef\xbb\xbfa",
    b"\xef\xbb\xbf",
    b"\0\0\x01\0",
    b"\0\0\x02\0",
    b"BM",
    b"GIF87a",
    b"GIF89a",
    b"GIF88a",
    b"RIFF\n\n\n\nWEBPVP",
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"FORM1234AIFF",
    b"ID3",
    b"OggS\0",
    b"MThd\0\0\0\x06",
    b"RIFF1234AVI ",
    b"RIFF1234WAVE",
    b"\x1a\x45\xdf\xa3",
    _MP4,
    _MP4[:20],
    b"\0\0\0\x10ftypisommp42",
    b"\0\0\0\x10ftypmp42\0\0\0\0",
    b"\n" * 34 + b"LP",
    b"\0\x01\0\0",
    b"OTTO",
    b"ttcf",
    b"wOFF",
    b"wOF2",
    b"\x1f\x8b\x08",
    b"PK\x03\x04",
    b"Rar!\x1a\x07\0",
    b"Rar!\x1a\x07\x01\0",
    b"\0asm",
    b"text\0text",
    b"\x1btext",
    b"\x7f\x80",
    b"x" * 512 + b"\0",
    b"x" * 511 + b"\0",
    b".snd",
    b"{}",
)
PIECES: Sequence[Sequence[bytes]] = ((b"<ht", b"ml>"), (b"x" * 300, b"\0"), (b"<html>", b"x" * 70_000))
OTHERS = {
    "typed": "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 1\r\n\r\nx",
    "untyped": "HTTP/1.1 200 OK\r\nContent-Type:\r\nContent-Length: 1\r\n\r\nx",
    "encoded": "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx",
    "empty": "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "none": "HTTP/1.1 204 -\r\n\r\n",
    "failed": "HTTP/1.1 500 -\r\nContent-Length: 1\r\n\r\nx",
}


async def _answer(conversation: Conversation) -> None:
    while True:
        head, _ = await conversation.request()
        _, kind, index = head.split(b" ")[1].decode().split("/")
        if kind == "whole":
            body = BODIES[int(index)]
            await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        elif kind == "pieces":
            pieces = PIECES[int(index)]
            await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % sum(map(len, pieces)))
            for piece in pieces:
                await asyncio.sleep(0.02)
                await conversation.send(piece)
        elif kind == "chunks":
            first, *others = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (*PIECES[int(index)], b"")]
            await conversation.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + first)
            for chunk in others:
                await asyncio.sleep(0.02)
                await conversation.send(chunk)
        else:
            await conversation.send(OTHERS[index].encode())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ports(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[int, int]]:
    """Ports of Traefik and of ours."""
    async with contextlib.AsyncExitStack() as stack:
        (origin,) = await stack.enter_async_context(origins(_answer))
        http = {
            "routers": {
                name: {"rule": f"Host(`{name}.test`)", "entryPoints": [ENTRY_POINT], "service": "up", "middlewares": m}
                for name, m in (("found", ["m"]), ("left", []))
            },
            "middlewares": {"m": {"contentType": {}}},
            "services": {"up": {"loadBalancer": {"servers": [{"url": f"http://127.0.0.1:{origin.port}"}]}}},
        }
        theirs = await stack.enter_async_context(traefik(tmp_path_factory.mktemp("traefik"), {"http": http}))
        made = await stack.enter_async_context(world(web=_answer))
        made.proxy.apply(
            middleware("m", contentType={}),
            route(rule("Host(`found.test`)", middlewares=["m"]), rule("Host(`left.test`)")),
        )
        yield theirs.port, made.proxy.proxy.port


async def _asked(port: int, path: str, host: str, method: str = "GET") -> tuple[int, str, bytes]:
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    await client.send(asking(path, method, host))
    got = await read_answer(client, has_body=method != "HEAD")
    client.close()
    return got.status, got["content-type"], got.body


@pytest.mark.parametrize(
    "path",
    [f"/whole/{index}" for index in range(len(BODIES))]
    + [f"/{kind}/{index}" for kind in ("pieces", "chunks") for index in range(len(PIECES))]
    + [f"/other/{name}" for name in OTHERS],
)
async def test_an_answer_is_said_to_be_what_traefik_says(path: str, ports: tuple[int, int]) -> None:
    theirs, ours = [await _asked(port, path, "found.test") for port in ports]
    assert ours == theirs


async def test_nothing_is_guessed_without_the_middleware_nor_without_a_body(ports: tuple[int, int]) -> None:
    for path, host, method in (("/whole/0", "left.test", "GET"), ("/whole/0", "found.test", "HEAD")):
        for port in ports:
            assert (await _asked(port, path, host, method))[1] == "", (host, port)
