"""Flow control both ways: slow ends hold what windows and buffers allow, and nobody else up.

Where buffers of the kernel fill up, tests wait in real time until nothing moves: a virtual clock does not know when the
kernel sends again.
"""

import asyncio
import socket

import pytest

from fakes.gateway.proxied import Conversation, proxied
from fakes.peers.http2 import Peer, http2_client, request
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until, until_still
from headgate.gateway.proxy.config import ProxyConfig

LARGE = 8 * 1024 * 1024


async def test_a_slow_reader_holds_back_the_origin_and_no_other_stream() -> None:
    sent = 0

    async def pour(conversation: Conversation) -> None:
        nonlocal sent
        head = await conversation.head()
        if b"/large" not in head:
            await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            return
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGE)
        while sent < LARGE:
            await conversation.send(b"x" * 65536)
            sent += 65536

    async with proxied(pour) as proxy, http2_client(proxy.port, returns_windows=False) as client:
        client.h2.increment_flow_control_window(2**30)
        large = client.open(request(b"GET", b"/large"))
        await client.until(lambda: len(client.answers[large].body) >= 65535 if large in client.answers else False)
        held_back = await until_still(lambda: sent)
        assert len(client.answers[large].body) == 65535
        assert (await client.fetch(request())).status == 200
        assert sent == held_back < LARGE - 1024 * 1024
        client.h2.increment_flow_control_window(2 * LARGE, large)
        client.flush()
        answer = await client.answer(large)
        assert len(answer.body) == LARGE


async def test_an_origin_that_reads_slowly_holds_back_its_stream_alone() -> None:
    go_on = asyncio.Event()
    got = 0

    async def sluggish(conversation: Conversation) -> None:
        nonlocal got
        head = await conversation.head()
        if b"/slow" in head:
            await go_on.wait()
            while got < LARGE:
                got += len(await conversation.reader.read(65536))
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with proxied(sluggish) as proxy, http2_client(proxy.port) as client:
        slow = client.open(request(b"POST", b"/slow", (b"content-length", b"%d" % LARGE)), end=False)
        sending = asyncio.create_task(client.send_all(slow, b"x" * LARGE))
        await until(lambda: bool(proxy.origin.heads))
        assert await until_still(lambda: client.h2.local_flow_control_window(slow)) < 16_384
        assert (await client.fetch(request(b"POST"), b"y" * 500_000)).status == 200
        assert not sending.done()
        go_on.set()
        await sending
        assert (await client.answer(slow)).status == 200
        assert got == LARGE


async def test_what_is_held_for_a_connecting_upstream_is_bounded() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        proxy.target.pools = []
        stream_id = client.open(request(b"POST"), end=False)
        answer = await client.answer(stream_id)
        assert answer.status == 503


@in_virtual_time
async def test_a_finished_answer_that_is_never_taken_is_dropped() -> None:
    config = ProxyConfig(body_timeout_s=0.2, idle_timeout_s=0.4)
    settings = {4: 0}
    async with proxied(config=config) as proxy, http2_client(proxy.port, settings=settings) as client:
        stream_id = client.open(request())
        answer = await client.answer(stream_id)
        assert (answer.status, answer.reset, bytes(answer.body)) == (200, 8, b"")
        await client.closed()
        assert client.last_error == 0


@in_virtual_time
async def test_an_answer_that_stalls_is_dropped_with_its_upstream() -> None:
    gone = asyncio.Event()

    async def pour(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGE)
        try:
            while True:
                conversation.writer.write(b"x" * 65536)
                await conversation.writer.drain()
        except ConnectionError:
            gone.set()

    config = ProxyConfig(body_timeout_s=0.2)
    async with proxied(pour, config=config) as proxy, http2_client(proxy.port, settings={4: 0}) as client:
        answer = await client.answer(client.open(request()))
        assert answer.reset == 8
        await asyncio.wait_for(gone.wait(), 5)


@pytest.mark.parametrize("size", [40_000, LARGE], ids=["given", "under way"])
@pytest.mark.parametrize(("increment", "is_dropped"), [(5, True), (200, False)])
@in_virtual_time
async def test_a_client_has_to_open_its_window_fast_enough(size: int, increment: int, is_dropped: bool) -> None:
    async def pour(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)

    async def open_window(client: Peer, stream_id: int) -> None:
        while True:
            await asyncio.sleep(0.02)
            client.h2.increment_flow_control_window(increment, stream_id)
            client.flush()

    # 400 bytes in 0.4 seconds, in which 100 come, or 4,000.
    config = ProxyConfig(body_timeout_s=0.4, idle_timeout_s=0.2, min_body_rate=1000)
    async with (
        proxied(pour, config=config) as proxy,
        http2_client(proxy.port, settings={4: 0}, returns_windows=False) as client,
    ):
        stream_id = client.open(request())
        opening = asyncio.create_task(open_window(client, stream_id))
        await asyncio.sleep(1.2)
        assert client.is_over(stream_id) is is_dropped
        opening.cancel()


async def test_a_connection_is_kept_for_a_client_that_still_takes_what_it_was_sent() -> None:
    async def pour(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + bytes(size))

    async def read_slowly(client: Peer) -> None:
        transport = client.writer.transport
        while True:
            transport.pause_reading()
            await asyncio.sleep(0.15)
            transport.resume_reading()
            await asyncio.sleep(0.002)

    size = 250_000
    config = ProxyConfig(idle_timeout_s=0.1, lingering_s=0.05, body_timeout_s=1)
    with socket.socket() as narrow:
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        narrow.setblocking(False)
        async with proxied(pour, config=config) as proxy:
            await asyncio.get_running_loop().sock_connect(narrow, ("127.0.0.1", proxy.port))
            client = Peer(*await asyncio.open_connection(sock=narrow), client_side=True, settings={4: 2**20})
            client.start()
            client.h2.increment_flow_control_window(2**20)
            client.flush()
            await until(lambda: proxy.server.connections == 1)
            (connection,) = proxy.server.context.connections
            connection.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            reading = asyncio.create_task(read_slowly(client))
            answer = await client.answer(client.open(request()))
            assert (answer.ended, len(answer.body)) == (True, size)
            reading.cancel()
            await client.close()


async def test_a_client_whose_socket_is_full_pauses_its_origins() -> None:
    sent = 0

    async def pour(conversation: Conversation) -> None:
        nonlocal sent
        await conversation.head()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (4 * LARGE))
        while sent < 4 * LARGE:
            await conversation.send(b"x" * 65536)
            sent += 65536

    settings = {4: 2**30}
    async with proxied(pour) as proxy, http2_client(proxy.port, settings=settings) as client:
        client.h2.increment_flow_control_window(2**30)
        client.writer.transport.pause_reading()
        stream_id = client.open(request())
        await until(lambda: sent > 0)
        assert await until_still(lambda: sent) < 3 * LARGE
        client.writer.transport.resume_reading()
        assert len((await client.answer(stream_id)).body) == 4 * LARGE
