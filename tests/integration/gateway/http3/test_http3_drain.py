"""How connections end: with their requests, in time, and never because a table was swapped."""

import asyncio

import pytest

from fakes.gateway.proxied import OK, Conversation, answering
from fakes.gateway.served import at, named, origins, served, site
from fakes.peers.http3 import head_of, http3_client
from fakes.waiting import until
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.http3.numbers import frame

QUICKLY = ProxyConfig(drain_quiet_s=0.2)


async def test_requests_under_way_finish_and_new_ones_are_rejected() -> None:
    go_on = asyncio.Event()

    async def slow(conversation: Conversation) -> None:
        await conversation.head()
        await go_on.wait()
        await conversation.send(named(b"one"))

    async with (
        origins(slow) as (origin,),
        served(at(origin.port), site(), config=QUICKLY, http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        stream_id = client.begin(head_of(), end=True)
        await until(lambda: origin.heads != [])
        draining = asyncio.create_task(proxy.server.drain(20))
        await until(lambda: len(client.goaways()) == 2)
        assert client.goaways() == [2**62 - 4, stream_id + 4]
        assert (await client.ask("/late")).reset == 0x10B
        go_on.set()
        answer = await client.answers[stream_id].until_over()
        assert (answer.status, answer.body) == (200, b"one")
        assert (await client.until_closed()).error_code == 0x100
        await draining
        assert len(origin.heads) == 1


async def test_a_connection_that_rests_is_closed() -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(at(origin.port), site(), config=QUICKLY, http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        assert (await client.ask()).status == 200
        await asyncio.wait_for(proxy.server.drain(20), 10)
        assert (await client.until_closed()).error_code == 0x100


@pytest.mark.parametrize("ends", [False, True])
async def test_a_request_that_comes_behind_its_cancellation_is_not_made_and_keeps_no_connection(ends: bool) -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(at(origin.port), site(), config=QUICKLY, http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        stream_id = client.open_stream()
        client.quic.stop_stream(stream_id, 0x10C)
        client.transmit()
        client.http.send_headers(stream_id, head_of("/cancelled"), ends)
        client.transmit()
        assert (await client.answers[stream_id].until_over()).reset == 0x10C
        assert (await client.ask("/other")).status == 200
        assert [head.split()[1] for head in origin.heads] == [b"/other"]
        await asyncio.wait_for(proxy.server.drain(20), 10)
        assert (await client.until_closed()).error_code == 0x100


async def test_a_stream_that_is_reset_before_a_request_came_is_reset_by_us_too() -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(at(origin.port), site(), config=QUICKLY, http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        stream_id = client.open_stream()
        client.quic.reset_stream(stream_id, 0x10C)
        client.transmit()
        assert (await client.answers[stream_id].until_over()).reset == 0x10C
        assert (await client.ask()).status == 200


async def test_what_is_not_over_in_time_is_cut_off() -> None:
    async def never(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.reader.read()

    async with (
        origins(never) as (origin,),
        served(at(origin.port), site(), config=QUICKLY, http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        stream_id = client.begin(head_of(), end=True)
        await until(lambda: origin.heads != [])
        await asyncio.wait_for(proxy.server.drain(0.5), 10)
        await client.until_closed()
        assert client.answers[stream_id].heads == []


async def test_a_gateway_that_drains_takes_no_new_connection() -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(at(origin.port), site(), config=QUICKLY, http3=True) as proxy,
        http3_client(proxy.https_port),
    ):
        draining = asyncio.create_task(proxy.server.drain(20))
        await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        async with http3_client(proxy.https_port, waits=False) as late:
            await draining
            assert late.handshake is None


async def test_a_client_that_leaves_has_its_connection_closed_behind_its_requests() -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port, quiet=True) as client,
    ):
        client.raw(b"\0" + frame(4, b"") + frame(7, b"\0"), one_way=True)
        assert (await client.until_closed()).error_code == 0x100


async def test_a_swap_of_the_table_touches_no_connection() -> None:
    go_on = asyncio.Event()

    async def slow(conversation: Conversation) -> None:
        head = await conversation.head()
        if b"/slow" in head:
            await go_on.wait()
        await conversation.send(named(b"old"))

    async with (
        origins(slow, answering(named(b"new"))) as (old, new),
        served(at(old.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        stream_id = client.begin(head_of("/slow"), end=True)
        await until(lambda: old.heads != [])
        proxy.put(at(new.port))
        assert (await client.ask()).body == b"new"
        go_on.set()
        assert (await client.answers[stream_id].until_over()).body == b"old"
        assert proxy.server.connections == 1


async def test_a_client_that_moves_often_is_asked_for_a_new_connection_before_it_cannot_move() -> None:
    async with (
        origins(answering(*[OK] * 9)) as (origin,),
        served(at(origin.port), site(), config=QUICKLY, http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        for _ in range(3):
            assert (await client.ask()).status == 200
            assert client.goaways() == []
            await client.move()
        assert (await client.ask()).status == 200
        assert (await client.until_closed()).error_code == 0x100
        assert client.goaways()[0] == 2**62 - 4
