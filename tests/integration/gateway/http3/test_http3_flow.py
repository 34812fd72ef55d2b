"""Slow peers on either side, and requests that are given up."""

import asyncio
import resource

from fakes.gateway.proxied import OK, Conversation, answering
from fakes.gateway.served import at, origins, served, site
from fakes.peers.http3 import head_of, http3_client
from fakes.waiting import until, until_still
from headgate.gateway.proxy.config import ProxyConfig

MIB = 1 << 20


async def test_a_client_that_reads_nothing_stops_its_upstream() -> None:
    """The client grants 64 KiB of the stream; the origin would send 64 MiB."""
    sent = 0

    async def endless(conversation: Conversation) -> None:
        nonlocal sent
        await conversation.head()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (64 * MIB))
        for _ in range(64 * 16):
            await conversation.send(bytes(MIB // 16))
            sent += MIB // 16

    async with (
        origins(endless) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port, max_stream_data=65_536, max_data=65_536) as client,
    ):
        stream_id = client.begin(head_of(), end=True)
        await client.answers[stream_id].until(lambda: client.answers[stream_id].heads)
        client.reads = False
        await until(lambda: sent > 0)
        await until_still(lambda: sent)
        # What the kernel keeps between origin and gateway is most of it.
        assert sent < 16 * MIB


async def test_a_client_that_takes_nothing_is_reset_in_time() -> None:
    config = ProxyConfig(body_timeout_s=0.3)
    body = b"x" * (4 * MIB)
    async with (
        origins(answering(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))) as (origin,),
        served(at(origin.port), site(), config=config, http3=True) as proxy,
        http3_client(proxy.https_port, max_stream_data=65_536, max_data=65_536) as client,
    ):
        client.begin(head_of(), end=True)
        await asyncio.sleep(0.05)
        client.reads = False
        await until(lambda: bool(proxy.log.records))
        assert proxy.stats.requests == 1


async def test_an_upstream_that_reads_nothing_stops_its_client() -> None:
    go_on = asyncio.Event()
    taken = 0

    async def slow(conversation: Conversation) -> None:
        nonlocal taken
        await conversation.head()
        await go_on.wait()
        while taken < 32 * MIB:
            taken += len(await conversation.reader.read(1 << 16))
        await conversation.send(OK)

    async with (
        origins(slow) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        stream_id = client.begin(head_of(method="POST", content_length=32 * MIB))
        for _ in range(32):
            client.send(stream_id, bytes(MIB))
        client.send(stream_id, b"", end=True)
        await until(lambda: origin.heads != [])
        acknowledged = await until_still(lambda: client.acknowledged(stream_id))
        # Two windows here, and what the kernel keeps between gateway and origin.
        assert acknowledged < 14 * MIB
        go_on.set()
        async with asyncio.timeout(30):
            await client.answers[stream_id].until_over()
        assert client.answers[stream_id].status == 200
        assert taken == 32 * MIB
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 * 1024


async def test_other_requests_go_on_while_one_body_waits() -> None:
    go_on = asyncio.Event()

    async def slow(conversation: Conversation) -> None:
        head = await conversation.head()
        if b"/slow" in head:
            await go_on.wait()
            await conversation.reader.readexactly(500_000)
        await conversation.send(OK)

    async with (
        origins(slow) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        stream_id = client.begin(head_of("/slow", method="POST", content_length=500_000))
        client.send(stream_id, bytes(500_000), end=True)
        for _ in range(5):
            assert (await client.ask("/fast")).status == 200
        go_on.set()
        assert (await client.answers[stream_id].until_over()).status == 200


async def test_a_cancelled_request_ends_at_the_upstream() -> None:
    ended = asyncio.Event()

    async def waiting(conversation: Conversation) -> None:
        await conversation.head()
        assert await conversation.reader.read() == b""
        ended.set()

    async with (
        origins(waiting) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        stream_id = client.begin(head_of(), end=True)
        await until(lambda: origin.heads != [])
        client.quic.stop_stream(stream_id, 0x10C)
        client.transmit()
        await asyncio.wait_for(ended.wait(), 10)
        await until(lambda: proxy.log.records != [])
        assert 499 in proxy.log.records[0]
        assert proxy.server.connections == 1


async def test_a_body_that_is_cut_off_ends_at_the_upstream_too() -> None:
    ended = asyncio.Event()

    async def waiting(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.reader.read()
        ended.set()

    async with (
        origins(waiting) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        stream_id = client.begin(head_of(method="POST"))
        client.send(stream_id, b"abc")
        await until(lambda: origin.heads != [])
        client.quic.reset_stream(stream_id, 0x10C)
        client.transmit()
        await asyncio.wait_for(ended.wait(), 10)
        assert (await client.answers[stream_id].until_over()).reset == 0x10C


async def test_an_upstream_that_breaks_off_resets_the_stream() -> None:
    async with (
        origins(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", then_close=True)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        answer = await client.answers[client.begin(head_of(), end=True)].until_over()
        assert (answer.status, answer.ended, answer.reset) == (200, False, 0x102)


async def test_the_rest_of_a_body_that_nobody_wants_is_stopped() -> None:
    async with served(site(), http3=True) as proxy, http3_client(proxy.https_port) as client:
        stream_id = client.begin(head_of(host="other.example", method="POST"))
        client.send(stream_id, b"abc")
        answer = await client.answers[stream_id].until_over()
        assert (answer.status, answer.ended) == (404, True)
        await until(lambda: stream_id in client.stopped)
        assert client.stopped[stream_id] == 0x100


async def test_a_request_whose_head_never_ends_is_reset_in_time() -> None:
    config = ProxyConfig(header_timeout_s=0.2, idle_timeout_s=0.4)
    async with served(site(), config=config, http3=True) as proxy, http3_client(proxy.https_port) as client:
        stream_id = client.raw(b"\x01\x40\x50abc")
        assert (await client.answers[stream_id].until_over()).reset == 0x10D
        resting = await client.until_closed()
        assert resting.error_code == 0x100
