"""Clients that make more work than requests, and datagrams of nobody."""

import asyncio
import contextlib
import os
import socket

import pytest
from aioquic.quic.packet import QuicProtocolVersion

from fakes.gateway.proxied import OK, Conversation, answering
from fakes.gateway.served import Served, at, origins, served, site
from fakes.peers.http3 import first_datagrams, head_of, http3_client
from fakes.waiting import until
from headgate.gateway.proxy.http2.budget import CONTROL
from headgate.gateway.proxy.http3.numbers import frame
from headgate.gateway.quic import endpoint


async def still_serves(proxy: Served) -> bool:
    async with http3_client(proxy.https_port) as client:
        return (await client.ask()).status == 200


async def test_rapid_resets_end_the_connection() -> None:
    async def waiting(conversation: Conversation) -> None:
        while True:
            if b"/stay" not in await conversation.head():
                await conversation.send(OK)

    async with (
        origins(waiting) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        async with asyncio.timeout(60):
            while client.terminated is None:  # a slow gateway gives less credit for streams, so that some wait unsent
                for _ in range(20):
                    client.quic.stop_stream(client.begin(head_of("/stay"), end=True), 0x10C)
                client.transmit()
                await asyncio.sleep(0.005)
        assert client.terminated.error_code == 0x107
        assert proxy.stats.client_errors["http3 abuse"] == 1
        assert await still_serves(proxy)


@pytest.mark.parametrize("kind", [0x21, 0xF0700])
async def test_frames_that_mean_nothing_end_the_connection(kind: int) -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port, quiet=True) as client,
    ):
        written = (b"\x21" if kind == 0x21 else b"\x80\x0f\x07\x00") + b"\0"
        client.raw(b"\0" + frame(4, b"") + written * (int(CONTROL[0]) + 200), one_way=True)
        assert (await client.until_closed()).error_code == 0x107
        assert await still_serves(proxy)


async def test_empty_data_frames_end_the_connection() -> None:
    async with (
        origins(answering(OK, OK)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        stream_id = client.begin(head_of(method="POST"))
        client.quic.send_stream_data(stream_id, b"\0\0" * (int(CONTROL[0]) + 200))
        client.transmit()
        assert (await client.until_closed()).error_code == 0x107
        assert await still_serves(proxy)


async def test_random_datagrams_change_nothing_and_are_not_answered() -> None:
    async with origins(answering(OK)) as (origin,), served(at(origin.port), site(), http3=True) as proxy:
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as noise:
            noise.setblocking(False)
            await loop.sock_connect(noise, ("127.0.0.1", proxy.https_port))
            for size in (0, 1, 8, 9, 20, 60, 1200, 1472):
                for first in (b"", b"\x40", b"\xc0", b"\xc0\0\0\0\1", b"\xe0\0\0\0\1\x08", b"\xc3\0\0\0\1\xff"):
                    await loop.sock_sendall(noise, first + os.urandom(size))
            assert await still_serves(proxy)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(_own_version(loop, noise), 0.2)


async def _own_version(loop: asyncio.AbstractEventLoop, noise: socket.socket) -> bytes:
    """Wait for an answer that is no Version Negotiation, which long datagrams of other versions get."""
    while True:
        came = await loop.sock_recv(noise, 2000)
        if came[1:5] != b"\0\0\0\0":
            return came


async def test_other_versions_are_told_which_there_is() -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(
            proxy.https_port,
            original_version=0x1A2A3A4A,
            supported_versions=[0x1A2A3A4A, QuicProtocolVersion.VERSION_1],
        ) as client,
    ):
        assert (await client.ask()).status == 200


async def test_clients_show_their_address_while_many_handshakes_are_in_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(endpoint, "VALIDATE_ABOVE", 0)
    async with (
        origins(answering(OK)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        assert client.retries == 1
        assert (await client.ask()).status == 200
        assert proxy.certificates.counts.started == 1


async def test_handshakes_that_nobody_goes_on_with_are_bounded_answered_thrice_and_forgotten() -> None:
    async with origins(answering(OK)) as (origin,), served(at(origin.port), site(), http3=True) as proxy:
        clients = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(endpoint.VALIDATE_ABOVE + 10)]
        size = 0
        for opened in clients:
            opened.setblocking(False)
            for data in first_datagrams():
                opened.sendto(data, ("127.0.0.1", proxy.https_port))
                size = len(data)
        await until(lambda: proxy.certificates.counts.started >= endpoint.VALIDATE_ABOVE)
        assert proxy.certificates.counts.started == endpoint.VALIDATE_ABOVE
        await asyncio.sleep(0.5)
        came = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                came += len(clients[0].recv(2000))
        assert 0 < came <= 3 * size
        assert await still_serves(proxy)
        for opened in clients:
            opened.close()
