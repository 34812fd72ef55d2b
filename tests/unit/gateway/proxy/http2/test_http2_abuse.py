"""Clients that make more work than requests are told to calm down, and others are served meanwhile."""

import asyncio
import contextlib
from collections.abc import Callable

import hyperframe.frame as frames
import pytest
from hpack import Encoder

from fakes.gateway.proxied import Conversation, proxied
from fakes.peers.http2 import Peer, http2_client, request
from fakes.waiting import until
from headgate.gateway.proxy.http1.server import ClientConnection
from headgate.gateway.proxy.http2.server import Http2Connection
from headgate.gateway.proxy.http2.session import FRAMES_AT_ONCE

ENHANCE_YOUR_CALM = 11
MANY = 1500


async def silent(conversation: Conversation) -> None:
    await conversation.request()
    await asyncio.sleep(30)


def reset_rapidly(client: Peer) -> None:
    for _ in range(MANY):
        stream_id = client.h2.get_next_available_stream_id()
        client.h2.send_headers(stream_id, request(b"GET", b"/silent"), end_stream=True)
        client.h2.reset_stream(stream_id, 8)
    client.flush()


def ping(client: Peer) -> None:
    client.frames(*[frames.PingFrame(0, opaque_data=b"12345678")] * MANY)


def set_often(client: Peer) -> None:
    client.frames(*[frames.SettingsFrame(0, settings={4: 65535})] * MANY)


def prioritize(client: Peer) -> None:
    client.frames(*[frames.PriorityFrame(1, depends_on=3, stream_weight=1, exclusive=False)] * MANY)


def set_much(client: Peer) -> None:
    """CVE-2020-11080: each entry would move the windows of all streams."""
    entry = (4).to_bytes(2, "big") + (65_535).to_bytes(4, "big")
    frame = (len(entry) * 2700).to_bytes(3, "big") + b"\4\0" + bytes(4) + entry * 2700
    client.writer.write(frame * 100)


def acknowledge(client: Peer) -> None:
    client.frames(*[frames.PingFrame(0, opaque_data=b"12345678", flags=["ACK"])] * MANY)


def send_nothing(client: Peer) -> None:
    stream_id = client.open(request(b"POST", b"/silent"), end=False)
    client.frames(*[frames.DataFrame(stream_id, data=b"")] * MANY)


def open_windows(client: Peer) -> None:
    client.frames(*[frames.WindowUpdateFrame(0, window_increment=1)] * MANY)


def invent_frames(client: Peer) -> None:
    client.frames(*[frames.ExtensionFrame(0xF0, stream_id=0, flag_byte=0, body=b"")] * MANY)


def provoke_resets_by_windows(client: Peer) -> None:
    """CVE-2025-8671, one of its ways: the server resets streams that the client has just opened."""
    for _ in range(MANY):
        stream_id = client.open(request(b"GET", b"/silent"))
        client.frames(frames.WindowUpdateFrame(stream_id, window_increment=2**31 - 1))


def provoke_resets_by_data(client: Peer) -> None:
    """CVE-2025-8671, another of its ways: DATA on a stream that the client itself has ended."""
    for _ in range(MANY):
        stream_id = client.open(request(b"GET", b"/silent"))
        client.frames(frames.DataFrame(stream_id, data=b"x"))


def provoke_resets_by_heads(client: Peer) -> None:
    for _ in range(MANY):
        client.open(request(b"GET", b"no path"))


def knock_on_closed_streams(client: Peer) -> None:
    stream_id = client.open(request(b"GET", b"/silent"))
    client.reset(stream_id)
    client.frames(*[frames.DataFrame(stream_id, data=b"x")] * MANY)


def exceed_streams(client: Peer) -> None:
    for _ in range(MANY):
        client.open(request(b"GET", b"/silent"))


def continue_for_ever(client: Peer) -> None:
    stream_id = client.h2.get_next_available_stream_id()
    head = frames.HeadersFrame(stream_id, data=client.h2.encoder.encode(request()))
    client.frames(head, *[frames.ContinuationFrame(stream_id, data=b"")] * MANY)


def explode(client: Peer) -> None:
    """A large field, put into the table once and referred to many times."""
    stream_id = client.h2.get_next_available_stream_id()
    block = client.h2.encoder.encode([*request(), (b"x", b"y" * 3000)]) + b"\xbe" * 4000
    client.frames(frames.HeadersFrame(stream_id, data=block, flags=["END_HEADERS", "END_STREAM"]))


ATTACKS: list[tuple[Callable[[Peer], None], set[int]]] = [
    (reset_rapidly, {ENHANCE_YOUR_CALM}),
    (ping, {ENHANCE_YOUR_CALM}),
    (set_often, {ENHANCE_YOUR_CALM}),
    (set_much, {ENHANCE_YOUR_CALM}),
    (prioritize, {ENHANCE_YOUR_CALM}),
    (acknowledge, {ENHANCE_YOUR_CALM}),
    (send_nothing, {ENHANCE_YOUR_CALM}),
    (open_windows, {ENHANCE_YOUR_CALM}),
    (invent_frames, {ENHANCE_YOUR_CALM}),
    (provoke_resets_by_windows, {ENHANCE_YOUR_CALM}),
    (provoke_resets_by_data, {ENHANCE_YOUR_CALM}),
    (provoke_resets_by_heads, {ENHANCE_YOUR_CALM, 1}),
    (knock_on_closed_streams, {ENHANCE_YOUR_CALM}),
    (exceed_streams, {ENHANCE_YOUR_CALM, 1}),
    (continue_for_ever, {ENHANCE_YOUR_CALM}),
    (explode, {ENHANCE_YOUR_CALM}),
]


@pytest.mark.parametrize(("attack", "codes"), ATTACKS, ids=[attack.__name__ for attack, _ in ATTACKS])
async def test_an_attack_ends_its_connection_and_no_other(attack: Callable[[Peer], None], codes: set[int]) -> None:
    async def either(conversation: Conversation) -> None:
        while True:
            head, _ = await conversation.request()
            if b"/silent" in head:
                await asyncio.sleep(30)
            await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with proxied(either) as proxy, http2_client(proxy.port) as other, http2_client(proxy.port) as client:
        pending = other.open(request(b"POST"), end=False)
        await client.until(lambda: bool(client.events))
        with contextlib.suppress(ConnectionError):
            client.ignore_limits()
            attack(client)
        await client.closed()
        assert client.last_error in codes | {None}
        other.send(pending, b"x", end=True)
        assert (await other.answer(pending)).status == 200
        assert (await other.fetch(request())).status == 200
        assert proxy.target.pools[0].in_flight == 0
        assert any("http2" in kind for kind in proxy.stats.client_errors)


async def test_an_attacker_who_does_not_read_is_cut_off() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        client.writer.transport.pause_reading()
        await until(lambda: ping(client) or not proxy.server.connections)
        assert not client.goaways


async def test_ordinary_clients_are_not_taken_for_abusive() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        for round_number in range(30):
            ids = [client.open(request(b"GET", b"/%d" % number)) for number in range(40)]
            client.frames(frames.PingFrame(0, opaque_data=b"12345678"))
            for stream_id in ids:
                assert (await client.answer(stream_id)).status == 200, round_number


async def test_priorities_in_heads_cost_nothing() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        for _ in range(40):
            ids = []
            for _ in range(30):
                stream_id = client.h2.get_next_available_stream_id()
                client.h2.send_headers(stream_id, request(), end_stream=True, priority_weight=200)
                client.flush()
                ids.append(stream_id)
            for stream_id in ids:
                assert (await client.answer(stream_id)).status == 200


async def test_no_table_is_kept_for_a_client_that_would_like_a_large_one() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        client.frames(frames.SettingsFrame(0, settings={1: 2**31}))
        for _ in range(2):
            assert (await client.fetch(request())).status == 200
        assert client.h2.decoder.header_table_size == 0


async def test_a_neighbour_is_served_between_the_frames_of_a_flood() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        await client.fetch(request())
        (flooded,) = proxy.server.context.connections
        assert isinstance(flooded, Http2Connection)
        neighbour = await proxy.connect()
        await until(lambda: proxy.server.connections == 2)
        (other,) = proxy.server.context.connections - {flooded}
        assert isinstance(other, ClientConnection)
        flooded.data_received(frames.PingFrame(0, opaque_data=b"12345678").serialize() * 900)
        assert flooded.yields
        other.data_received(b"GET / HTTP/1.1\r\nHost: unknown\r\n\r\n")
        assert (await neighbour.answer())[0].startswith(b"HTTP/1.1 404 ")
        turns = 0
        while flooded.yields:
            await asyncio.sleep(0)
            turns += 1
        assert turns > 1, "the neighbour was answered while frames of the flood waited"
        assert (await client.fetch(request())).status == 200, "and the connection goes on behind them"


@pytest.mark.parametrize("way", ["close", "abort"])
async def test_a_connection_that_closes_while_frames_wait_reads_none_of_them(way: str) -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        await client.fetch(request())
        (flooded,) = proxy.server.context.connections
        assert isinstance(flooded, Http2Connection)
        asked = frames.HeadersFrame(3, data=Encoder().encode(request()), flags=["END_HEADERS", "END_STREAM"])
        pings = frames.PingFrame(0, opaque_data=b"12345678").serialize() * FRAMES_AT_ONCE
        flooded.data_received(pings + asked.serialize() + pings)
        (flooded.close if way == "close" else flooded.transport.abort)()
        await until(lambda: not proxy.server.connections)
        assert flooded.last_inbound == 1, "no request behind them is taken"
