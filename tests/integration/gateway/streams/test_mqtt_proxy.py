"""Routes for MQTT clients: who is let through, and which endpoint has a client."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.streams import PATIENCE_S, backend, echo_server, stream, streams
from fakes.gateway.tls import SelfSigned
from fakes.peers.mqtt import connect
from headgate.common.secret import Secret
from headgate.common.table import Balancing, BalancingPolicy, HashKey, MqttConnect, StreamRoute, Upstream
from headgate.gateway.streams.log import Status
from headgate.gateway.tls import CertificateEntry, CertificateStore

MQTT_3 = MqttConnect(protocol_level=4)


def mqtt(port: int, **fields: object) -> StreamRoute:
    return stream(port, mqtt=MQTT_3, **fields)


def by_client_id(*ports: int) -> Upstream:
    balancing = Balancing(policy=BalancingPolicy.RING_HASH, hash=(HashKey(source="mqtt-client-id"),))
    return backend(*ports).model_copy(update={"balancing": balancing})


async def first_byte(port: int, data: bytes) -> bytes:
    """Return what the endpoint says first: its name."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.readexactly(1), PATIENCE_S)
    finally:
        writer.close()


@contextlib.asynccontextmanager
async def named_servers(count: int) -> AsyncIterator[list[int]]:
    async with contextlib.AsyncExitStack() as stack:
        yield [await stack.enter_async_context(echo_server(name=b"%d" % number)) for number in range(count)]


@pytest.mark.parametrize("pieces", [1, 8])
async def test_a_connect_packet_is_passed_on_as_it_came_and_so_is_what_follows(pieces: int) -> None:
    packet = connect(b"sensor-1") + b"\xc0\x00"
    size = -(-len(packet) // pieces)
    port = free_port()
    async with echo_server() as upstream, streams(mqtt(port), backend(upstream)) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for start in range(0, len(packet), size):
            writer.write(packet[start : start + size])
            await writer.drain()
            await asyncio.sleep(0.002)
        assert await asyncio.wait_for(reader.readexactly(len(packet)), PATIENCE_S) == packet
        writer.write(b"more")
        assert await asyncio.wait_for(reader.readexactly(4), PATIENCE_S) == b"more"
        writer.close()
        (record,) = await running.ended()
        assert (record.status, record.received) == (Status.OK, len(packet) + 4)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "it does not begin with a CONNECT packet"),
        (connect(level=5), "its protocol level is 5, not 4"),
        (connect(name=b"MQIsdp"), "the name of its protocol is not MQTT"),
    ],
)
async def test_others_are_refused_before_an_endpoint_hears_of_them(sent: bytes, reason: str) -> None:
    port = free_port()
    # Nobody listens there: had it been asked, the connection would end otherwise.
    async with streams(mqtt(port), backend(free_port())) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        writer.close()
        (record,) = await running.ended()
        assert (record.status, record.reason) == (Status.BAD_DATA, f"not as mqtt-proxy asks: {reason}")


async def test_who_ends_or_hesitates_before_the_client_id_is_refused() -> None:
    port = free_port()
    async with streams(mqtt(port), backend(free_port()), preface_timeout_s=0.2) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(connect()[:5])
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        writer.close()
        assert (await running.ended())[0].reason.endswith("its client id did not come in time")
        running.context.preface_timeout_s = PATIENCE_S
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(connect()[:5])
        writer.write_eof()
        assert (await running.ended(2))[1].reason.endswith("it ended before its client id")
        writer.close()


async def test_a_client_that_leaves_before_its_id_is_forgotten() -> None:
    port = free_port()
    async with streams(mqtt(port), backend(free_port())) as running:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.transport.abort()
        (record,) = await running.ended()
        assert record.endpoint == ""
        assert running.context.stats.active == 0


async def test_a_client_finds_the_endpoint_of_its_id_again() -> None:
    port = free_port()
    async with named_servers(4) as servers, streams(mqtt(port), by_client_id(*servers)):
        chosen = {number: await first_byte(port, connect(b"client-%d" % number)) for number in range(20)}
        assert len({*chosen.values()}) > 1
        for number, name in chosen.items():
            assert await first_byte(port, connect(b"client-%d" % number)) == name


async def test_clients_without_an_id_are_told_apart_by_their_address() -> None:
    port = free_port()
    async with named_servers(4) as servers, streams(mqtt(port), by_client_id(*servers)):
        assert len({await first_byte(port, connect(b"")) for _ in range(8)}) == 1


async def test_mqtt_is_read_behind_tls_that_ends_here() -> None:
    certificate = SelfSigned("a.test")
    store = CertificateStore(alpn=())
    entry = CertificateEntry(("a.test",), certificate.certificate_pem.decode(), Secret(certificate.key_pem), "f1")
    store.set_certificates([entry])
    port = free_port()
    route = mqtt(port, protocol="tls", server_names=("a.test",), terminate=True)
    async with (
        echo_server() as upstream,
        streams(route, backend(upstream), server_tls=store.server_context) as running,
    ):
        for packet in (connect(), connect(level=5)):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=certificate.client_context(), server_hostname="a.test"
            )
            writer.write(packet)
            if packet == connect():
                assert await asyncio.wait_for(reader.readexactly(len(packet)), PATIENCE_S) == packet
            else:
                with contextlib.suppress(ConnectionError):
                    assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
            writer.transport.abort()
        assert {record.status for record in await running.ended(2)} == {Status.OK, Status.BAD_DATA}
