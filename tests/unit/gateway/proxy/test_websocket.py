"""Tunnels: opened by the upstream's 101 only, bytes as they are both ways, closed from either side or by silence."""

import asyncio

import pytest

from fakes.gateway.proxied import OK, Conversation, answering, proxied
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until, until_still
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.policies import RoutePolicies

OFFER = (
    b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)


async def echo(conversation: Conversation) -> None:
    """Switch, then say everything twice."""
    await conversation.head()
    await conversation.send(SWITCH)
    while data := await conversation.reader.read(65536):
        await conversation.send(data + data)


async def test_bytes_pass_both_ways_once_the_upstream_has_switched() -> None:
    async with proxied(echo) as proxy:
        client = await proxy.connect()
        await client.send(OFFER)
        head = await client.head()
        assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
        assert b"\r\nUpgrade: websocket\r\n" in head
        assert b"\r\nConnection: Upgrade\r\n" in head
        assert b"\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head
        for message in (b"\x81\x05hello", b"\x00\r\n\r\nGET / HTTP/1.1\r\n\r\n"):
            await client.send(message)
            assert await client.exactly(2 * len(message)) == 2 * message
        sent = proxy.origin.heads[0]
        assert b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" in sent
        assert b"\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" in sent


async def test_what_comes_behind_either_head_is_the_first_of_the_tunnel() -> None:
    async def eager(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.send(SWITCH + b"welcome")
        assert await conversation.reader.readexactly(5) == b"early"
        await conversation.send(b"!")

    async with proxied(eager) as proxy:
        client = await proxy.connect()
        await client.send(OFFER + b"early")
        await client.head()
        assert await client.exactly(8) == b"welcome!"


async def test_large_messages_pass_with_a_reader_that_is_slow() -> None:
    message = bytes(range(256)) * 8192

    async with proxied(echo) as proxy:
        client = await proxy.connect()
        await client.send(OFFER)
        await client.head()
        sending = asyncio.create_task(client.send(message))
        await until_still(client.writer.transport.get_write_buffer_size)  # the kernel's buffers take what they can
        await sending
        assert len(await client.exactly(2 * len(message))) == 2 * len(message)


@pytest.mark.parametrize("closing", ["client", "origin"])
async def test_a_tunnel_that_one_side_closes_is_closed_on_the_other(closing: str) -> None:
    ended = asyncio.Event()

    async def once(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.send(SWITCH)
        if closing == "origin":
            return
        assert await conversation.reader.read() == b"last words"
        ended.set()

    async with proxied(once) as proxy:
        client = await proxy.connect()
        await client.send(OFFER)
        await client.head()
        if closing == "client":
            await client.send(b"last words")
            client.close()
            await asyncio.wait_for(ended.wait(), 5)
        else:
            assert await client.rest() == b""
        await until(lambda: proxy.server.connections == 0)
        record = proxy.log.records[0]
        assert record[5] == 101
        assert record[-1] == ""


async def test_a_client_that_ends_its_half_still_gets_the_answer() -> None:
    async def patient(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.send(SWITCH)
        said = await conversation.reader.read()
        await conversation.send(b"got " + said)

    async with proxied(patient) as proxy:
        client = await proxy.connect()
        await client.send(OFFER)
        await client.head()
        await client.send(b"all")
        client.writer.write_eof()
        assert await client.rest() == b"got all"


async def test_an_upstream_that_declines_answers_as_to_any_request() -> None:
    async with proxied(answering(OK)) as proxy:
        client = await proxy.connect()
        for _ in range(2):
            await client.send(OFFER)
            head, body = await client.answer()
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            assert body == b"ok"


@pytest.mark.parametrize(
    "request_head",
    [
        OFFER.replace(b"GET", b"POST"),
        OFFER.replace(b"websocket", b"h2c"),
        OFFER.replace(b", Upgrade", b""),
        OFFER.replace(b"Upgrade: websocket\r\n", b"Upgrade: websocket\r\nUpgrade: h2c\r\n"),
    ],
)
async def test_other_offers_are_not_passed_on_and_a_101_to_them_is_a_502(request_head: bytes) -> None:
    async with proxied(answering(SWITCH)) as proxy:
        client = await proxy.connect()
        await client.send(request_head.replace(b"\r\n\r\n", b"\r\nContent-Length: 0\r\n\r\n"))
        assert (await client.head()).startswith(b"HTTP/1.1 502 ")
        assert b"pgrade" not in proxy.origin.heads[0]


async def test_a_switch_to_another_protocol_than_was_asked_for_is_a_502() -> None:
    async with proxied(answering(SWITCH.replace(b"Upgrade: websocket", b"Upgrade: h2c"))) as proxy:
        client = await proxy.connect()
        await client.send(OFFER)
        assert (await client.head()).startswith(b"HTTP/1.1 502 ")


async def test_a_route_without_websockets_passes_no_offer_on() -> None:
    async with proxied(answering(OK)) as proxy:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.websocket = False
        client = await proxy.connect()
        await client.send(OFFER)
        assert (await client.head()).startswith(b"HTTP/1.1 200 ")
        assert b"pgrade" not in proxy.origin.heads[0]


async def test_a_silent_tunnel_is_closed_in_time() -> None:
    async with proxied(echo, config=ProxyConfig(tunnel_idle_timeout_s=0.2, idle_timeout_s=0.1)) as proxy:
        client = await proxy.connect()
        await client.send(OFFER)
        await client.head()
        assert await client.rest() == b""
        await until(lambda: bool(proxy.log.records))
        assert proxy.log.records[0][-1] == "nothing passed through the tunnel for too long"


@in_virtual_time
async def test_a_drain_lets_tunnels_finish_within_the_grace_period() -> None:
    async with proxied(echo) as proxy:
        client = await proxy.connect()
        await client.send(OFFER)
        await client.head()
        draining = asyncio.create_task(proxy.server.drain(5))
        await asyncio.sleep(0.05)
        await client.send(b"still here")
        assert await client.exactly(20) == b"still herestill here"
        assert not draining.done()
        client.close()
        await asyncio.wait_for(draining, 3)
