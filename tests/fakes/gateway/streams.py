"""Stream listeners over a compiled table, the servers behind them, and raw clients."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from fakes.gateway.table import ORIGIN, load
from headgate.common.sealing import Unsealer
from headgate.common.table import (
    BackendProtocol,
    BackendTls,
    Ejection,
    Endpoint,
    StreamRoute,
    TableEntry,
    Upstream,
    WeightedUpstream,
)
from headgate.common.table_image import TableImage
from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.health.resolve import Query, Resolver
from headgate.gateway.health.stats import HealthStats
from headgate.gateway.health.upstreams import UpstreamHealth
from headgate.gateway.proxy.pools import PoolRegistry
from headgate.gateway.streams.context import StreamContext
from headgate.gateway.streams.listeners import SharesHttps, StreamListeners
from headgate.gateway.streams.log import StreamRecord
from headgate.gateway.streams.stats import StreamStats
from headgate.gateway.table.compiler import TableCompiler
from headgate.gateway.tls import CertificateStore

PATIENCE_S = 30.0


def stream(port: int, *, key: str = "s", up: str = "up", **fields: object) -> StreamRoute:
    return StreamRoute(key=key, port=port, backends=(WeightedUpstream(upstream=up),), provenance=ORIGIN, **fields)


def backend(
    *ports: int,
    key: str = "up",
    host: str = "127.0.0.1",
    protocol: str = "tcp",
    proxy_protocol: int | None = None,
    tls: BackendTls | None = None,
    ejection: Ejection | None = None,
) -> Upstream:
    endpoints = tuple(Endpoint(address=host, port=port) for port in sorted(ports))
    return Upstream(
        key=key,
        protocol=BackendProtocol(protocol),
        endpoints=endpoints,
        proxy_protocol=proxy_protocol,
        tls=tls,
        ejection=ejection,
        provenance=ORIGIN,
    )


@dataclass
class Streams:
    """Listeners and all that they report."""

    listeners: StreamListeners
    context: StreamContext
    compiler: TableCompiler
    image: TableImage = field(default_factory=TableImage)
    records: list[StreamRecord] = field(default_factory=list)
    revision: int = 0

    def put(self, *entries: TableEntry) -> None:
        """Serve these entries besides the others."""
        for entry in entries:
            self.image.put(entry)
        self.load()

    def remove(self, key: str) -> None:
        self.image.discard("streams", key)
        self.load()

    def load(self) -> None:
        """Have the listeners serve the image as it is."""
        self.revision += 1
        load(self.compiler, self.image, (1, self.revision))
        self.listeners.apply([route for _, route in self.compiler.streams.compiled()])

    async def ended(self, count: int = 1) -> Sequence[StreamRecord]:
        """Wait for so many finished streams."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.records) < count:  # noqa: ASYNC110 - the log has no event
                await asyncio.sleep(0.005)
        return self.records


@contextlib.asynccontextmanager
async def streams(
    *entries: TableEntry,
    host: str = "127.0.0.1",
    server_tls: ssl.SSLContext | None = None,
    https: SharesHttps | None = None,
    health: UpstreamHealth | None = None,
    query: Query | None = None,
    **settings: object,
) -> AsyncIterator[Streams]:
    """Listen as a table of these entries asks; `query` asks for the addresses of names."""
    records: list[StreamRecord] = []
    context = StreamContext(
        StreamStats(),
        server_tls or ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
        CertificateStore().context_for,
        records.append,
        **settings,
    )
    listeners = StreamListeners(context, host, https=https)
    resolver = Resolver(query, HealthStats(), is_routable=lambda address: True) if query else None
    compiler = TableCompiler(EndpointDirectory(PoolRegistry()), Unsealer([]).open, health=health, resolver=resolver)
    running = Streams(listeners, context, compiler, records=records)
    try:
        running.put(*entries)
        yield running
    finally:
        await listeners.drain(0)
        if resolver is not None:
            await resolver.close()
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def echo_server(
    host: str = "127.0.0.1", *, name: bytes = b"", tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Sends a name and then everything back; gives its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            writer.write(name)
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async with serving(serve, host, tls) as port:
        yield port


@contextlib.asynccontextmanager
async def serving(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], object],
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Run a server for a while; its conversations end with it."""
    tasks: set[asyncio.Task[object]] = set()

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await serve(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(keep, host, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.01)


class Udp(asyncio.DatagramProtocol):
    """A datagram socket: everything that arrives is kept, and answered by `answer`."""

    def __init__(self, answer: Callable[[bytes], Sequence[bytes]] = lambda data: ()) -> None:
        self.answer = answer
        self.received: asyncio.Queue[tuple[bytes, tuple[str, int]]] = asyncio.Queue()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.received.put_nowait((data, addr))
        for answer in self.answer(data):
            self.transport.sendto(answer, addr)

    def error_received(self, exc: Exception) -> None:
        self.received.put_nowait((repr(exc).encode(), ("", 0)))

    @property
    def port(self) -> int:
        return self.transport.get_extra_info("sockname")[1]

    def send(self, data: bytes) -> None:
        self.transport.sendto(data)

    async def next(self) -> bytes:
        return (await asyncio.wait_for(self.received.get(), PATIENCE_S))[0]


@contextlib.asynccontextmanager
async def udp_server(
    host: str = "127.0.0.1", answer: Callable[[bytes], Sequence[bytes]] = lambda data: (data.upper(),)
) -> AsyncIterator[Udp]:
    _, protocol = await asyncio.get_running_loop().create_datagram_endpoint(lambda: Udp(answer), (host, 0))
    try:
        yield protocol
    finally:
        protocol.transport.close()
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def udp_client(host: str, port: int) -> AsyncIterator[Udp]:
    _, protocol = await asyncio.get_running_loop().create_datagram_endpoint(Udp, remote_addr=(host, port))
    try:
        yield protocol
    finally:
        protocol.transport.close()
        await asyncio.sleep(0)
