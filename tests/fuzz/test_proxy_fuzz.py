"""Mutated conversations through a running proxy: it never raises, and whatever it says is valid HTTP or nothing.

Files in `corpus/proxy` are conversations that once went wrong; they are replayed as they are.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import h11
import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.gateway.proxied import OK, Conversation, Proxied, answering, proxied
from headgate.gateway.proxy.config import ProxyConfig

CORPUS = sorted((Path(__file__).parent / "corpus" / "proxy").glob("*.request"))
CONFIG = ProxyConfig(
    max_head=4096,
    max_target=1024,
    max_body=100_000,
    header_timeout_s=0.05,
    body_timeout_s=0.05,
    read_timeout_s=0.05,
    idle_timeout_s=0.05,
)

_REQUESTS = [
    b"GET /a?b HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
    b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
    b"GET / HTTP/1.0\r\n\r\n",
    b"GET http://b/ HTTP/1.1\r\nHost: a\r\nConnection: close, x\r\nX: y\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: unknown\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
]
_ANSWERS = [
    OK,
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a\r\nhello\r\n0\r\nX: y\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\nhello",
    b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nConnection: close\r\n\r\n",
]
_BYTES = [b"\r\n", b"\n", b"\r", *(bytes([byte]) for byte in b"\0 \t:,;0+-_\x7f\x85\xa0\xff")]
_LINES = [
    b"Content-Length: 3\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Host: b\r\n",
    b"Connection: x\r\n",
    b"\r\n\r\n",
]
_PIECES = st.sampled_from(_BYTES + _LINES)
_MUTATION = st.tuples(st.sampled_from(["insert", "delete", "replace", "double"]), st.integers(0, 400), _PIECES)


def _mutate(data: bytes, mutations: list[tuple[str, int, bytes]]) -> bytes:
    for kind, place, piece in mutations:
        at = place % (len(data) + 1)
        match kind:
            case "insert":
                data = data[:at] + piece + data[at:]
            case "delete":
                data = data[:at] + data[at + len(piece) :]
            case "replace":
                data = data[:at] + piece + data[at + len(piece) :]
            case _:
                data = data[:at] + data[: len(piece)] + data[at:]
    return data


def _conversation(seeds: list[bytes], most: int) -> st.SearchStrategy[bytes]:
    plain = st.lists(st.sampled_from(seeds), min_size=1, max_size=most).map(b"".join)
    return st.builds(_mutate, plain, st.lists(_MUTATION, max_size=4))


def _run(test: Callable[[], Awaitable[None]]) -> None:
    """Run on the loop of production; any exception that reaches the loop fails the test."""

    async def watched() -> None:
        raised: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context))
        await test()
        assert raised == []

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(watched())


async def _talk(proxy: Proxied, data: bytes, cut: int) -> bytes:
    client = await proxy.connect()
    at = cut % (len(data) + 1)
    for piece in (data[:at], data[at:]):
        await client.send(piece)
        await asyncio.sleep(0)
    if client.writer.can_write_eof() and not client.writer.is_closing():
        client.writer.write_eof()
    return await client.rest()


def _check_answers(raw: bytes) -> None:
    """Parse all answers but a cut-off last one with h11; methods are not known, so bodies of HEAD are allowed for."""
    while raw:
        head, ended, rest = raw.partition(b"\r\n\r\n")
        assert ended, raw
        connection = h11.Connection(h11.CLIENT)
        connection.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
        connection.receive_data(head + ended)
        event = connection.next_event()
        assert isinstance(event, h11.Response | h11.InformationalResponse)
        names = dict(event.headers)
        if event.status_code < 200 or event.status_code in (204, 304):
            raw = rest
        elif b"content-length" in names:
            size = int(names[b"content-length"])
            raw = rest if rest.startswith(b"HTTP/1.1 ") else rest[size:]
        elif b"transfer-encoding" in names:
            raw = rest if rest.startswith(b"HTTP/1.1 ") else rest.partition(b"0\r\n")[2].partition(b"\r\n")[2]
            raw = raw[raw.find(b"HTTP/1.1 ") :] if b"HTTP/1.1 " in raw else b""
        else:
            raw = b""


def _check_answer_to_get(raw: bytes) -> None:
    """Parse the answer to one GET with h11; it may be cut off, but not malformed."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(raw)
    while connection.next_event() not in (h11.NEED_DATA, h11.PAUSED):
        if connection.their_state is h11.DONE or connection.their_state is h11.MUST_CLOSE:
            break


@settings(max_examples=150)
@given(_conversation(_REQUESTS, 3), st.integers(0, 400))
def test_mutated_requests_get_valid_answers_or_a_close(data: bytes, cut: int) -> None:
    async def test() -> None:
        async with proxied(config=CONFIG) as proxy:
            _check_answers(await _talk(proxy, data, cut))
            for head in proxy.origin.heads:
                assert b"\n " not in head
                assert head.lower().count(b"\r\nhost: ") == 1
                assert head.lower().count(b"\r\ncontent-length: ") + head.lower().count(b"\r\ntransfer-encoding: ") <= 1

    _run(test)


@settings(max_examples=100)
@given(_conversation(_ANSWERS, 2), st.integers(0, 400))
def test_mutated_answers_get_valid_answers_or_a_close(data: bytes, cut: int) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.request()
        at = cut % (len(data) + 1)
        for piece in (data[:at], data[at:]):
            await conversation.send(piece)
            await asyncio.sleep(0)

    async def test() -> None:
        async with proxied(script, config=CONFIG) as proxy:
            _check_answer_to_get(await _talk(proxy, _REQUESTS[0], 400))
            assert proxy.target.pools[0].in_flight == 0

    _run(test)


@pytest.mark.parametrize("path", CORPUS, ids=[path.stem for path in CORPUS])
def test_conversation_that_once_went_wrong(path: Path) -> None:
    data = path.read_bytes()

    async def test() -> None:
        async with proxied(answering(OK), config=CONFIG) as proxy:
            _check_answers(await _talk(proxy, data, 7))

    _run(test)
