"""Bodies in both directions: where they end, how they are coded, and how much of them is held."""

import asyncio

import pytest

from fakes.gateway.proxied import OK, Conversation, answering, proxied
from fakes.waiting import until, until_still

GET = b"GET / HTTP/1.1\r\nHost: a\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
CLOSE = b"Connection: close\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED_ANSWER = HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
MEGABYTES = 24


def dechunk(data: bytes) -> bytes:
    """Decode chunks in the plainest way."""
    payload = b""
    while True:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            return payload
        payload, data = payload + data[:length], data[length + 2 :]


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "bytewise"])
async def test_chunked_answer_stays_chunked_for_http_1_1(bytewise: bool) -> None:
    async with proxied(answering(CHUNKED_ANSWER, bytewise=bytewise)) as proxy:
        head, _, body = (await proxy.talk(GET + CLOSE)).partition(b"\r\n\r\n")
        assert head.count(b"Transfer-Encoding: chunked") == 1
        assert dechunk(body) == b"abcde"


async def test_chunked_answer_is_decoded_for_http_1_0() -> None:
    async with proxied(answering(CHUNKED_ANSWER)) as proxy:
        head, _, body = (await proxy.talk(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")).partition(b"\r\n\r\n")
        assert b"Transfer-Encoding" not in head
        assert b"\r\nConnection: close" in head
        assert body == b"abcde"


@pytest.mark.parametrize(("version", "coded"), [(b"1.1", True), (b"1.0", False)])
async def test_answer_that_ends_with_its_connection_ends_properly(version: bytes, coded: bool) -> None:
    async with proxied(answering(HEAD + b"\r\nabc", then_close=True)) as proxy:
        answer = await proxy.talk(b"GET / HTTP/%b\r\nHost: a\r\n" % version + CLOSE)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert (b"Transfer-Encoding: chunked" in head) is coded
        assert (dechunk(body) if coded else body) == b"abc"


async def test_answer_without_length_keeps_the_clients_connection() -> None:
    async with proxied(answering(HEAD + b"\r\nabc", then_close=True)) as proxy:
        client = await proxy.connect()
        for _ in range(2):
            await client.send(GET + b"\r\n")
            await client.head()
            assert dechunk(await client.reader.readuntil(b"0\r\n\r\n")) == b"abc"


@pytest.mark.parametrize(
    ("request_line", "answer", "kept"),
    [
        (b"HEAD", HEAD + b"Content-Length: 5\r\n\r\n", b"Content-Length: 5"),
        (b"HEAD", HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"Transfer-Encoding: chunked"),
        (b"HEAD", HEAD + b"\r\n", b""),
        (b"GET", b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", b"Content-Length: 5"),
    ],
)
async def test_answer_without_a_body_ends_with_its_head(request_line: bytes, answer: bytes, kept: bytes) -> None:
    async with proxied(answering(answer, OK)) as proxy:
        client = await proxy.connect()
        await client.send(request_line + b" / HTTP/1.1\r\nHost: a\r\n\r\n" + GET + b"\r\n")
        head = await client.head()
        assert kept in head
        assert kept or (b"Content-Length" not in head and b"Transfer-Encoding" not in head)
        assert (await client.answer())[1] == b"ok"
        assert len(proxy.origin.conversations) == 1


async def test_content_length_of_204_is_not_passed_on() -> None:
    async with proxied(answering(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n")) as proxy:
        assert b"Content-Length" not in await proxy.talk(GET + CLOSE)


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "bytewise"])
async def test_body_with_length_arrives(bytewise: bool) -> None:
    bodies = []

    async def script(conversation: Conversation) -> None:
        bodies.append(await conversation.request())
        await conversation.send(OK)

    async with proxied(script) as proxy:
        await proxy.talk(POST + b"Content-Length: 5\r\n" + CLOSE + b"abcde", bytewise=bytewise)
        assert bodies[0][1] == b"abcde"
        assert bodies[0][0].count(b"Content-Length: 5\r\n") == 1


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "bytewise"])
async def test_chunked_body_arrives_without_extensions_and_trailers(bytewise: bool) -> None:
    bodies = []

    async def script(conversation: Conversation) -> None:
        await conversation.head()
        bodies.append(await conversation.reader.readuntil(b"\r\n\r\n"))
        await conversation.send(OK)

    async with proxied(script) as proxy:
        request = (
            POST + b"Transfer-Encoding: chunked\r\n" + CLOSE + b"003;a=b\r\nabc\r\n2\r\nde\r\n0;c\r\nX-Sum:  1 \r\n\r\n"
        )
        assert (await proxy.talk(request, bytewise=bytewise)).endswith(b"ok")
        assert dechunk(bodies[0]) == b"abcde"
        assert bodies[0].endswith(b"\r\n0\r\n\r\n")
        assert b";" not in bodies[0]


async def test_trailers_of_an_answer_are_passed_on() -> None:
    answer = HEAD + b"Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n"
    async with proxied(answering(answer)) as proxy:
        assert (await proxy.talk(GET + CLOSE)).endswith(b"2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n")


@pytest.mark.parametrize("coding", [b"Content-Length: %d\r\n" % (MEGABYTES << 20), b"Transfer-Encoding: chunked\r\n"])
async def test_slow_client_stops_the_upstream_and_gets_all(coding: bytes) -> None:
    written = 0

    async def script(conversation: Conversation) -> None:
        nonlocal written
        await conversation.request()
        await conversation.send(HEAD + coding + b"\r\n")
        piece = b"x" * (1 << 20)
        for _ in range(MEGABYTES):
            await conversation.send(b"100000\r\n%b\r\n" % piece if b"chunked" in coding else piece)
            written += len(piece)
        if b"chunked" in coding:
            await conversation.send(b"0\r\n\r\n")

    async with proxied(script) as proxy:
        client = await proxy.connect()
        await client.send(GET + CLOSE)
        connection = next(iter(await _connections(proxy)))
        await until(lambda: connection.write_paused)
        assert connection.transport.get_write_buffer_size() < 1 << 20
        body = (await client.rest()).partition(b"\r\n\r\n")[2]
        assert (dechunk_length(body) if b"chunked" in coding else len(body)) == MEGABYTES << 20
        assert written == MEGABYTES << 20


async def test_slow_upstream_stops_the_client_and_gets_all() -> None:
    gate = asyncio.Event()
    taken = 0

    async def script(conversation: Conversation) -> None:
        nonlocal taken
        await conversation.head()
        await gate.wait()
        while taken < MEGABYTES << 20:
            taken += len(await conversation.reader.read(1 << 20))
        await conversation.send(OK)

    async with proxied(script) as proxy:
        client = await proxy.connect()
        sending = asyncio.create_task(
            client.send(POST + b"Content-Length: %d\r\n" % (MEGABYTES << 20) + CLOSE + b"x" * (MEGABYTES << 20))
        )
        unread = await until_still(client.writer.transport.get_write_buffer_size)
        assert unread > (MEGABYTES - 16) << 20  # the kernel's buffers hold the rest
        gate.set()
        assert (await client.rest()).endswith(b"ok")
        await sending
        assert taken == MEGABYTES << 20


async def test_body_is_streamed_before_it_is_whole() -> None:
    first = asyncio.Event()

    async def script(conversation: Conversation) -> None:
        await conversation.head()
        assert await conversation.reader.readexactly(2) == b"ab"
        first.set()
        await conversation.reader.readexactly(2)
        await conversation.send(OK)

    async with proxied(script) as proxy:
        client = await proxy.connect()
        await client.send(POST + b"Content-Length: 4\r\n\r\nab")
        await asyncio.wait_for(first.wait(), 5)
        await client.send(b"cd")
        assert (await client.answer())[1] == b"ok"


async def test_answer_is_streamed_before_it_is_whole() -> None:
    seen = asyncio.Event()

    async def script(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
        await seen.wait()
        await conversation.send(b"0\r\n\r\n")

    async with proxied(script) as proxy:
        client = await proxy.connect()
        await client.send(GET + b"\r\n")
        await client.head()
        assert await client.exactly(7) == b"2\r\nab\r\n"
        seen.set()
        assert await client.exactly(5) == b"0\r\n\r\n"


async def _connections(proxy):
    await until(lambda: proxy.server.connections > 0)
    return proxy.server.context.connections


def dechunk_length(data: bytes) -> int:
    """Count payload bytes of chunks without copying them."""
    total, offset = 0, 0
    while True:
        end = data.index(b"\r\n", offset)
        size = int(data[offset:end], 16)
        if not size:
            return total
        total, offset = total + size, end + 2 + size + 2
