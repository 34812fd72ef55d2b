"""TLS routes by server name on shared ports, passed through or ended, and PROXY headers both ways."""

import asyncio
import ssl
from collections.abc import Callable

import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.streams import PATIENCE_S, backend, echo_server, serving, stream, streams
from fakes.gateway.tls import SelfSigned
from fakes.peers.client_hello import real_hello
from headgate.common.secret import Secret
from headgate.common.table import BackendTls
from headgate.gateway.listeners.sharing import SharedListener
from headgate.gateway.model.networks import parse_networks
from headgate.gateway.net.port_set import PortKey
from headgate.gateway.net.proxy_protocol import Addresses, write_proxy_header
from headgate.gateway.net.sockets import open_listener
from headgate.gateway.streams.log import Status
from headgate.gateway.tls import CertificateEntry, CertificateStore

CERTIFICATE = SelfSigned("a.test", "b.test", "w.c.test")
CLIENT = CERTIFICATE.client_context()


def server_context() -> ssl.SSLContext:
    store = CertificateStore(alpn=())
    store.set_certificates(
        [
            CertificateEntry(
                ("a.test", "b.test", "w.c.test"),
                CERTIFICATE.certificate_pem.decode(),
                Secret(CERTIFICATE.key_pem),
                "f1",
            )
        ]
    )
    return store.server_context


async def greeting(port: int, name: str, size: int = 1, context: ssl.SSLContext = CLIENT) -> bytes:
    """What the server behind a name says first."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    try:
        return await asyncio.wait_for(reader.readexactly(size), PATIENCE_S)
    finally:
        writer.close()


async def test_names_on_one_port_are_passed_through_or_ended_each_as_its_route_says() -> None:
    port = free_port()
    async with (
        echo_server(name=b"A", tls=server_context()) as through,
        echo_server(name=b"B") as ended,
        echo_server(name=b"W", tls=server_context()) as wildcard,
        streams(
            stream(port, key="a", up="through", protocol="tls", server_names=("a.test",)),
            stream(port, key="b", up="ended", protocol="tls", server_names=("b.test",), terminate=True),
            stream(port, key="w", up="wildcard", protocol="tls", server_names=("*.c.test",)),
            backend(through, key="through"),
            backend(ended, key="ended"),
            backend(wildcard, key="wildcard"),
            server_tls=server_context(),
        ) as running,
    ):
        assert await greeting(port, "a.test") == b"A"
        assert await greeting(port, "b.test") == b"B"
        assert await greeting(port, "w.c.test") == b"W"
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await greeting(port, "other.test")
        assert {record.server_name for record in await running.ended(3)} == {"a.test", "b.test", "w.c.test"}
        assert running.context.stats.unrouted == 1


async def test_a_route_without_names_takes_the_rest_and_clients_that_name_nothing() -> None:
    port = free_port()
    async with (
        echo_server(name=b"R", tls=server_context()) as upstream,
        streams(stream(port, protocol="tls"), backend(upstream)),
    ):
        unchecked = ssl.create_default_context()
        unchecked.check_hostname = False
        unchecked.verify_mode = ssl.CERT_NONE
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=unchecked, server_hostname="")
        assert await reader.readexactly(1) == b"R"
        writer.close()


async def test_a_hello_that_comes_byte_by_byte_is_read_and_passed_on_whole() -> None:
    hello = real_hello("a.test")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(len(hello)) == hello
        writer.write(b"!")
        writer.close()

    port = free_port()
    async with (
        serving(serve) as upstream,
        streams(stream(port, protocol="tls", server_names=("a.test",)), backend(upstream)),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for byte in hello:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.0005)
        assert await asyncio.wait_for(reader.readexactly(1), PATIENCE_S) == b"!"
        writer.close()


@pytest.mark.parametrize(
    "data",
    [b"SSH-2.0-x\r\n", real_hello("b.test"), real_hello("a.test")[:100], b""],
    ids=["no TLS", "another name", "half a hello", "nothing"],
)
async def test_what_no_route_takes_is_closed_in_time(data: bytes) -> None:
    port = free_port()
    async with streams(
        stream(port, protocol="tls", server_names=("a.test",)), backend(1), preface_timeout_s=0.3
    ) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        try:
            assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        except ConnectionResetError:
            assert data
        writer.close()
        assert running.context.stats.unrouted == 1
        assert running.records == []


async def test_tls_is_spoken_with_endpoints_and_their_name_is_checked() -> None:
    port, other = free_port(), free_port()
    tls = BackendTls(verify=True, ca_pem=CERTIFICATE.certificate_pem.decode(), server_name="a.test")
    wrong = tls.model_copy(update={"server_name": "x.test"})
    async with (
        echo_server(name=b"T", tls=server_context()) as upstream,
        streams(
            stream(port),
            stream(other, key="x", up="wrong"),
            backend(upstream, protocol="tls", tls=tls),
            backend(upstream, key="wrong", protocol="tls", tls=wrong),
        ) as running,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await asyncio.wait_for(reader.readexactly(1), PATIENCE_S) == b"T"
        writer.close()
        await running.ended()
        reader, writer = await asyncio.open_connection("127.0.0.1", other)
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        writer.close()
        assert "certificate" in (await running.ended(2))[1].reason.lower()


REAL = Addresses(("203.0.113.9", 4711), ("198.51.100.1", 443))


@pytest.mark.parametrize("incoming", [1, 2])
@pytest.mark.parametrize("outgoing", [1, 2])
async def test_the_client_that_a_proxy_header_names_is_passed_on_in_one(incoming: int, outgoing: int) -> None:
    port = free_port()
    async with (
        echo_server() as upstream,
        streams(
            stream(port, accept_proxy_protocol=True, allowed_networks=("203.0.113.0/24",)),
            backend(upstream, proxy_protocol=outgoing),
        ) as running,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        header = write_proxy_header(incoming, REAL)
        writer.write(header[:20])
        await asyncio.sleep(0.02)
        writer.write(header[20:] + b"hello")
        expected = write_proxy_header(outgoing, REAL) + b"hello"
        assert await asyncio.wait_for(reader.readexactly(len(expected)), PATIENCE_S) == expected
        writer.close()
        (record,) = await running.ended()
        assert (record.client, record.port) == ("203.0.113.9", 443)


async def test_a_header_of_our_own_names_both_ends_of_the_connection() -> None:
    port = free_port("::1")
    async with (
        echo_server() as upstream,
        streams(stream(port), backend(upstream, proxy_protocol=1), host="::1"),
    ):
        reader, writer = await asyncio.open_connection("::1", port)
        own = writer.get_extra_info("sockname")[1]
        line = await asyncio.wait_for(reader.readline(), PATIENCE_S)
        assert line == f"PROXY TCP6 ::1 ::1 {own} {port}\r\n".encode()
        writer.close()


class Repeat(asyncio.Protocol):
    """Says what it was given, over TLS."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(self.text)


async def test_a_proxy_header_goes_before_tls_in_both_directions() -> None:
    loop = asyncio.get_running_loop()
    expected = write_proxy_header(2, REAL)

    async def accept() -> None:
        accepted, _ = await loop.sock_accept(upstream)
        header = await loop.sock_recv(accepted, len(expected))
        await loop.connect_accepted_socket(lambda: Repeat(header), accepted, ssl=server_context())

    port = free_port()
    with open_listener("127.0.0.1", 0) as upstream:
        accepting = asyncio.create_task(accept())
        async with streams(
            stream(port, protocol="tls", server_names=("a.test",), terminate=True, accept_proxy_protocol=True),
            backend(upstream.getsockname()[1], protocol="tls", proxy_protocol=2),
            server_tls=server_context(),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(write_proxy_header(1, REAL))
            await writer.start_tls(CLIENT, server_hostname="a.test")
            assert await asyncio.wait_for(reader.readexactly(len(expected)), PATIENCE_S) == expected
            writer.close()
            await accepting


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n", b"PROXY TCP4 1.2.3.4\r\n"])
async def test_a_connection_without_its_header_is_closed(data: bytes) -> None:
    port = free_port()
    async with streams(stream(port, accept_proxy_protocol=True), backend(1)) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(reader.readexactly(1), PATIENCE_S)
        writer.close()
        assert running.context.stats.unrouted == 1


async def test_peers_that_are_not_trusted_send_no_header() -> None:
    port = free_port()
    async with (
        echo_server() as upstream,
        streams(
            stream(port, accept_proxy_protocol=True),
            backend(upstream),
            proxy_networks=parse_networks(["10.0.0.0/8"]),
        ) as running,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        line = write_proxy_header(1, REAL)
        writer.write(line)
        assert await asyncio.wait_for(reader.readexactly(len(line)), PATIENCE_S) == line
        writer.close()
        assert (await running.ended())[0].client == "127.0.0.1"


class Web(asyncio.Protocol):
    """Stands for the HTTP server: says who it thinks the client is."""

    def __init__(self, told: Addresses | None) -> None:
        self.told = told

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(f"web {self.told and self.told.source[0]}\n".encode())
        transport.close()


class Handle:
    """A `SharesHttps` whose listener is made once there is a context."""

    def __init__(self) -> None:
        self.listener: SharedListener | None = None

    def share(self, plan: object) -> None:
        if self.listener is not None:
            self.listener.share(plan)


async def test_the_https_port_is_shared_by_name_only_while_a_route_asks() -> None:
    handle = Handle()
    async with (
        echo_server(name=b"stream\n", tls=server_context()) as upstream,
        streams(backend(upstream), https=handle) as running,
    ):
        listener = SharedListener(running.context, open_listener("127.0.0.1", 0), Web, server_context())
        handle.listener = listener
        await listener.start()
        assert not listener.looks_first
        assert await greeting(listener.port, "a.test", 9) == b"web None\n"
        running.put(stream(0, protocol="tls", server_names=("a.test",)))
        assert listener.looks_first
        assert await greeting(listener.port, "a.test", 7) == b"stream\n"
        assert await greeting(listener.port, "b.test", 9) == b"web None\n"
        assert PortKey("tcp", 0) not in running.listeners.ports.open
        running.remove("s")
        assert not listener.looks_first
        assert await greeting(listener.port, "a.test", 9) == b"web None\n"
        listener.close()


async def test_a_connection_that_waits_while_the_way_of_accepting_changes_is_not_lost() -> None:
    handle = Handle()
    async with streams(https=handle) as running:
        listener = SharedListener(running.context, open_listener("127.0.0.1", 0), Web, server_context())
        handle.listener = listener
        await listener.start()
        results: list[bytes] = []

        async def ask() -> None:
            for _ in range(20):
                results.append(await greeting(listener.port, "a.test", 9))

        async def flip(change: Callable[[], None]) -> None:
            change()
            await asyncio.sleep(0.01)

        clients = [asyncio.create_task(ask()) for _ in range(4)]
        while not all(client.done() for client in clients):
            await flip(lambda: running.put(stream(0, protocol="tls", server_names=("x.test",)), backend(1)))
            await flip(lambda: running.remove("s"))
        await asyncio.gather(*clients)
        assert results == [b"web None\n"] * 80
        listener.close()


async def test_the_client_behind_a_proxy_header_reaches_the_http_server() -> None:
    async with streams() as running:
        for tls in (None, server_context()):
            listener = SharedListener(
                running.context, open_listener("127.0.0.1", 0), Web, tls, expects_proxy_header=True
            )
            await listener.start()
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(write_proxy_header(2, REAL))
            if tls is not None:
                await writer.start_tls(CLIENT, server_hostname="a.test")
            assert await asyncio.wait_for(reader.readline(), PATIENCE_S) == b"web 203.0.113.9\n"
            writer.close()
            listener.close()


@pytest.mark.parametrize(("networks", "line"), [(["10.0.0.0/8"], b""), (["127.0.0.0/8"], b"PROXY UNKNOWN\r\n")])
async def test_the_http_server_is_given_addresses_only_where_a_header_names_them(
    networks: list[str], line: bytes
) -> None:
    async with streams(proxy_networks=parse_networks(networks)) as running:
        listener = SharedListener(running.context, open_listener("127.0.0.1", 0), Web, None, expects_proxy_header=True)
        await listener.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(line)
        assert await asyncio.wait_for(reader.readline(), PATIENCE_S) == b"web None\n"
        writer.close()
        listener.close()


async def test_a_failed_handshake_is_the_clients_and_nobody_elses() -> None:
    port = free_port()
    async with streams(
        stream(port, protocol="tls", terminate=True), backend(1), server_tls=server_context()
    ) as running:
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname = False
        old.verify_mode = ssl.CERT_NONE
        old.set_ciphers("AES128-SHA")
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await greeting(port, "a.test", context=old)
        (record,) = await running.ended()
        assert (record.status, record.endpoint) == (Status.OK, "")
        assert record.reason.startswith("client: ")
        assert running.context.stats.active == 0
