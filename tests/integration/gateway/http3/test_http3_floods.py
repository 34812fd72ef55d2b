"""Clients that send what nobody asked for: on one-way streams, in heads without an end, and while bodies wait."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from fakes.gateway.proxied import OK, Conversation, answering
from fakes.gateway.served import Served, at, origins, served, site
from fakes.peers.http3 import Http3Client, head_of, http3_client
from fakes.waiting import until, until_still
from headgate.gateway.proxy.http2.budget import CONTROL
from headgate.gateway.proxy.http3.numbers import frame, integer
from headgate.gateway.proxy.http3.qpack import PREFIX, compress_field
from headgate.gateway.quic.connection import MOST_WAITING

MIB = 1 << 20
UNKNOWN = b"\x21"
MUCH = int(CONTROL[0]) + 200
ON_ONE_WAY_STREAMS = {
    "sizes of the table": b"\2" + b"\x20" * MUCH,
    "cancelled streams": b"\3" + b"\x44" * MUCH,
    "pushes that are allowed": b"\0" + frame(4, b"") + frame(13, b"\1") * MUCH,
    "a frame that is very long": b"\0" + frame(4, b"") + b"\x21" + integer(MUCH * 4096),
}


def block(*fields: tuple[bytes, bytes]) -> bytes:
    """A HEADERS frame."""
    return frame(1, PREFIX + b"".join(compress_field(name, value) for name, value in fields))


@contextlib.asynccontextmanager
async def full(go_on: asyncio.Event) -> AsyncIterator[tuple[Served, Http3Client, int]]:
    """A connection of which nothing is read before `go_on`, as an origin takes nothing of 16 MiB; their stream."""

    async def slow(conversation: Conversation) -> None:
        head = await conversation.head()
        if b"/slow" in head:
            await go_on.wait()
            await conversation.reader.readexactly(16 * MIB)
        await conversation.send(OK)

    async with (
        origins(slow) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        stream_id = client.begin(head_of("/slow", method="POST", content_length=16 * MIB))
        client.send(stream_id, bytes(16 * MIB), end=True)
        await until_still(lambda: client.acknowledged(stream_id))
        yield proxy, client, stream_id


@pytest.mark.parametrize("data", ON_ONE_WAY_STREAMS.values(), ids=ON_ONE_WAY_STREAMS.keys())
async def test_what_means_nothing_is_counted_on_streams_of_one_direction(data: bytes) -> None:
    async with served(site(), http3=True) as proxy, http3_client(proxy.https_port, quiet=True) as client:
        client.raw(data, one_way=True)
        assert (await client.until_closed()).error_code == 0x107
        assert proxy.stats.client_errors["http3 abuse"] == 1


async def test_streams_that_end_before_they_say_what_they_are_are_counted() -> None:
    async with served(site(), http3=True) as proxy, http3_client(proxy.https_port) as client:
        async with asyncio.timeout(30):
            while client.terminated is None:  # the budget fills up again with time: a fixed number may be too few
                for _ in range(50):
                    stream_id = client.quic.get_next_available_stream_id(is_unidirectional=True)
                    client.quic.send_stream_data(stream_id, b"", end_stream=True)
                client.transmit()
                await asyncio.sleep(0.005)
        assert client.terminated.error_code == 0x107
        assert proxy.stats.client_errors["http3 abuse"] == 1


async def test_streams_that_come_while_nothing_is_read_are_bounded() -> None:
    async with full(asyncio.Event()) as (proxy, client, _):
        for _ in range(MOST_WAITING // 50):
            for _ in range(50):
                stream_id = client.quic.get_next_available_stream_id(is_unidirectional=True)
                client.quic.send_stream_data(stream_id, UNKNOWN, end_stream=True)
            client.transmit()
            await asyncio.sleep(0.005)
        assert (await client.until_closed()).error_code == 0x107
        assert proxy.stats.client_errors["http3 abuse"] == 1
        async with http3_client(proxy.https_port) as other:
            assert (await other.ask()).status == 200


async def test_requests_and_cancellations_that_come_while_nothing_is_read_are_taken_later() -> None:
    go_on = asyncio.Event()
    async with full(go_on) as (_, client, slow):
        for _ in range(30):
            cancelled = client.begin(head_of(), end=True)
            client.quic.stop_stream(cancelled, 0x10C)
        asked = client.begin(head_of(), end=True)
        await asyncio.sleep(0.2)
        assert client.answers[asked].heads == []
        go_on.set()
        assert (await client.answers[asked].until_over()).status == 200
        assert (await client.answers[slow].until_over()).status == 200


async def test_heads_without_an_end_take_a_mebibyte_of_a_connection_and_others_are_rejected() -> None:
    head = block(*head_of(), *((b"x-%d" % number, bytes([97 + number]) * 5_000) for number in range(12)))
    async with (
        origins(answering(*[OK] * 40)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        begun = [client.raw(head[:-1]) for _ in range(30)]
        kept = MIB // len(head)
        await until(lambda: sum(client.answers[each].reset == 0x10B for each in begun) >= len(begun) - kept)
        rejected = [each for each in begun if client.answers[each].reset is not None]
        assert len(begun) - len(rejected) == kept
        assert (await client.ask()).status == 200
        for stream_id in set(begun) - set(rejected):
            client.raw(head[-1:], stream_id=stream_id, end=True)
            assert (await client.answers[stream_id].until_over()).status == 200
        more = client.raw(head, end=True)
        assert (await client.answers[more].until_over()).status == 200


TOO_LONG = {
    "as they are written": integer(1) + integer(1 << 20),
    "in what they mean": block(*((b"x", b"y" * 40_000) for _ in range(2))),
    "by the number of fields": block(*((b"x", b"y") for _ in range(2000))),
}


@pytest.mark.parametrize("trailers", TOO_LONG.values(), ids=TOO_LONG.keys())
async def test_trailers_that_are_too_long_are_refused_and_their_request_ends_at_the_upstream(trailers: bytes) -> None:
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
        client.raw(trailers, stream_id=stream_id)
        answer = await client.answers[stream_id].until_over()
        assert (answer.status, len(answer.heads), answer.ended) == (431, 1, True)
        await asyncio.wait_for(ended.wait(), 10)
        assert client.terminated is None


async def test_trailers_that_are_too_long_break_off_an_answer_that_has_begun() -> None:
    async def early(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
        await conversation.reader.read()

    async with (
        origins(early) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        stream_id = client.begin(head_of(method="POST"))
        answer = await client.answers[stream_id].until(lambda: client.answers[stream_id].body)
        client.raw(integer(1) + integer(1 << 20), stream_id=stream_id)
        await answer.until_over()
        assert (answer.status, len(answer.heads), answer.body, answer.ended) == (200, 1, b"abc", False)
        assert answer.reset == 0x102
        assert client.terminated is None


async def test_a_head_within_a_tunnel_closes_the_connection() -> None:
    async def websocket(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.reader.read()

    fields = [(b":method", b"CONNECT"), (b":protocol", b"websocket"), *head_of()[1:], (b"sec-websocket-version", b"13")]
    async with (
        origins(websocket) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        stream_id = client.begin(fields)
        await until(lambda: origin.heads != [])
        client.raw(block((b"a", b"b")), stream_id=stream_id)
        assert (await client.until_closed()).error_code == 0x105
