"""Objects of streams that are over serve the next streams of their connection, and nothing of them is left."""

import gc
from itertools import product

from fakes.gateway.proxied import Conversation, proxied
from fakes.peers.http2 import Peer, http2_client, request
from fakes.waiting import until
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.exchange.exchange import Exchange

GRPC = (b"content-type", b"application/grpc")


async def plain(client: Peer) -> tuple[object, ...]:
    answer = await client.fetch(request(b"GET", b"/x"))
    return answer.status, bytes(answer.body), b"grpc-status" in answer.headers


async def with_body(client: Peer) -> tuple[object, ...]:
    answer = await client.fetch(request(b"POST", b"/x", (b"content-length", b"3")), b"abc")
    return answer.status, bytes(answer.body), b"grpc-status" in answer.headers


async def head(client: Peer) -> tuple[object, ...]:
    answer = await client.fetch(request(b"HEAD", b"/x"))
    return answer.status, bytes(answer.body), b"grpc-status" in answer.headers


async def refused(client: Peer) -> tuple[object, ...]:
    answer = await client.fetch(request(b"TRACE", b"/x"))
    return answer.status, b"", b"grpc-status" in answer.headers


async def refused_call(client: Peer) -> tuple[object, ...]:
    answer = await client.fetch(request(b"TRACE", b"*", GRPC))
    return answer.status, b"", b"grpc-status" in answer.headers


async def echo(conversation: Conversation) -> None:
    sent, body = await conversation.request()
    answer = body or b"ok"
    payload = b"" if sent.startswith(b"HEAD") else answer
    await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), payload))


EXPECTED = {
    plain: (200, b"ok", False),
    with_body: (200, b"abc", False),
    head: (200, b"", False),
    refused: (405, b"", False),
    refused_call: (405, b"", False),
}


async def test_request_is_answered_alike_whatever_came_before_on_its_connection() -> None:
    async with proxied(echo) as proxy, http2_client(proxy.port) as client:
        for before, after in product(EXPECTED, repeat=2):
            assert await before(client) == EXPECTED[before]
            assert await after(client) == EXPECTED[after]
        statuses = [record[5] for record in proxy.log.records]
        assert statuses == [EXPECTED[each][0] for pair in product(EXPECTED, repeat=2) for each in pair]


async def test_exchanges_are_used_again() -> None:
    async with proxied(echo) as proxy, http2_client(proxy.port) as client:
        for _ in range(20):
            await answers(client, 5)
        # A tick of the clock may have dropped some between two rounds.
        assert len({id(record[13]) for record in proxy.log.records}) <= 20


async def test_connection_at_rest_keeps_no_exchange() -> None:
    before = exchanges()
    # The clock ticks each 25 ms.
    config = ProxyConfig(lingering_s=0.1)
    async with proxied(echo, config=config) as proxy, http2_client(proxy.port) as client:
        await answers(client, 5)
        proxy.log.records.clear()
        await until(lambda: exchanges() == before)
        assert await plain(client) == EXPECTED[plain]


async def answers(client: Peer, count: int) -> None:
    """Have requests answered that are under way at once."""
    for stream_id in [client.open(request(b"GET", b"/x")) for _ in range(count)]:
        assert (await client.answer(stream_id)).status == 200


def exchanges() -> int:
    """Count those that are alive."""
    gc.collect()
    return sum(isinstance(each, Exchange) for each in gc.get_objects())
