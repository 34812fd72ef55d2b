"""Streams to where no route may lead: nothing connects, nothing is sent."""

import asyncio
import contextlib
import logging
import socket

import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.streams import backend, echo_server, stream, streams, udp_client, udp_server
from fakes.kubernetes.forbidden import forbidden, without
from headgate.common.table import BackendTls
from headgate.gateway.streams.log import Status


@pytest.mark.parametrize("kind", ["tcp", "tls", "tcp, with a PROXY header", "localhost"])
async def test_a_stream_connects_to_no_denied_endpoint(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    protocol = "tls" if kind == "tls" else "tcp"
    async with forbidden() as server:
        upstream = backend(
            server.port,
            host="localhost" if kind == "localhost" else "127.0.0.1",
            protocol=protocol,
            tls=BackendTls() if protocol == "tls" else None,
            proxy_protocol=1 if "PROXY" in kind else None,
        )
        port = free_port()
        async with streams(stream(port), upstream, dialler=without("127.0.0.0/8", "::1")) as running:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
            (record,) = await running.ended()
    assert record.status == Status.NO_UPSTREAM
    assert "of the setting denied_destinations" in record.reason
    assert "a connection was denied" in [entry.message for entry in caplog.records if entry.levelno == logging.WARNING]


async def test_a_stream_goes_to_an_endpoint_that_may_be_connected_to() -> None:
    async with echo_server("127.0.0.2", name=b"good") as good:
        port = free_port()
        upstream = backend(good, host="127.0.0.2")
        async with streams(stream(port), upstream, dialler=without("127.0.0.1")):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.readexactly(4) == b"good"
            writer.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_no_datagram_goes_to_a_denied_endpoint(host: str) -> None:
    port = free_port(kind=socket.SOCK_DGRAM)
    async with udp_server() as server:
        upstream, denying = backend(server.port, host=host, protocol="udp"), without("127.0.0.0/8", "::1")
        async with (
            streams(stream(port, protocol="udp"), upstream, dialler=denying) as running,
            udp_client("127.0.0.1", port) as client,
        ):
            client.send(b"hello")
            (record,) = await running.ended()
        assert "of the setting denied_destinations" in record.reason
        assert server.received.empty()
