"""A proxy between a client and an origin of which every byte is decided and seen by the test."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from headgate.common.table.listener import AccessLogFormat
from headgate.gateway.listeners.server import ProxyServer
from headgate.gateway.observability.access_log import FormattedLog
from headgate.gateway.observability.log_format import LogFormat
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.proxy.policies import RoutePolicies
from headgate.gateway.proxy.pools import PoolRegistry
from headgate.gateway.proxy.reports import LogRecord
from headgate.gateway.proxy.request_source import RequestSource
from headgate.gateway.proxy.seam import RouterHolder
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.proxy.traffic import RouteTraffic

PATIENCE_S = 30.0
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Script = Callable[["Conversation"], Awaitable[None]]


class Conversation:
    """One connection that an origin accepted."""

    def __init__(self, index: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.index = index
        self.reader = reader
        self.writer = writer
        self.heads: list[bytes] = []

    async def head(self) -> bytes:
        """Read a head; raises IncompleteReadError at the end of the connection."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        return head

    async def request(self) -> tuple[bytes, bytes]:
        """Read a head and its body as it stands on the wire."""
        head = await self.head()
        lower = head.lower()
        if b"\r\ntransfer-encoding: chunked" in lower:
            return head, await self.reader.readuntil(b"0\r\n\r\n")
        if b"\r\ncontent-length: " in lower:
            return head, await self.reader.readexactly(int(lower.split(b"\r\ncontent-length: ")[1].split(b"\r")[0]))
        return head, b""

    async def send(self, data: bytes, *, bytewise: bool = False) -> None:
        """Write bytes, if asked each in a packet of its own."""
        await send_all(self.writer, data, bytewise=bytewise)


async def send_all(writer: asyncio.StreamWriter, data: bytes, *, bytewise: bool) -> None:
    """Write, and do not mind if the other side has had enough."""
    with contextlib.suppress(ConnectionError):
        for piece in [data[i : i + 1] for i in range(len(data))] if bytewise else [data]:
            writer.write(piece)
            await writer.drain()
            if bytewise:
                await asyncio.sleep(0)


def answering(*answers: bytes, bytewise: bool = False, then_close: bool = False) -> Script:
    """Script: each request gets the next of these answers, later ones the last."""

    async def script(conversation: Conversation) -> None:
        remaining = list(answers)
        while True:
            await conversation.request()
            answer = remaining.pop(0) if len(remaining) > 1 else remaining[0]
            await conversation.send(answer, bytewise=bytewise)
            if then_close:
                return

    return script


class Origin:
    """A raw TCP server that follows a script per connection."""

    def __init__(self, script: Script, tls: ssl.SSLContext | None = None) -> None:
        self.script = script
        self.tls = tls
        self.conversations: list[Conversation] = []
        self.port = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, host: str = "127.0.0.1") -> None:
        self._server = await asyncio.start_server(self._accept, host, self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop_listening(self) -> None:
        assert self._server is not None
        self._server.close()

    async def stop(self) -> None:
        self.stop_listening()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def heads(self) -> list[bytes]:
        """Heads of all requests, in the order of connections."""
        return [head for conversation in self.conversations for head in conversation.heads]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        conversation = Conversation(len(self.conversations), reader, writer)
        self.conversations.append(conversation)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                await self.script(conversation)
        finally:
            self._tasks.discard(task)
            writer.close()


@dataclass
class Target:
    """A route target over pools in a fixed order."""

    pools: Sequence[EndpointPool]
    name: str = "test|all"
    upstream_label: str = "test"
    connect_timeout_s: float | None = None
    send_timeout_s: float | None = None
    read_timeout_s: float | None = None
    unavailable: str = "Service default/web not found"
    policies: RoutePolicies | None = None
    traffic: RouteTraffic | None = None

    def choose(self, tried: Collection[EndpointPool], source: RequestSource) -> EndpointPool | None:
        return next((pool for pool in self.pools if pool not in tried), next(iter(self.pools), None))


@dataclass
class AnyRouter:
    """Takes every host except `unknown`, and notes what it was asked."""

    target: Target
    version_label: str = "1.1"
    asked: list[tuple[bytes, bytes]] = field(default_factory=list)

    def match(self, host: bytes, path: bytes, source: RequestSource) -> Target | None:
        self.asked.append((host, path))
        return None if host == b"unknown" else self.target


class RecordedLog:
    """Stands for the access log."""

    is_detailed = False

    def __init__(self) -> None:
        self.records: list[LogRecord] = []
        self.lines: list[str] = []
        """Of listeners with a format of their own."""

    def append(self, record: LogRecord) -> None:
        self.records.append(record)

    def append_written(self, record: LogRecord, line: bytes) -> None:
        self.lines.append(line.decode().rstrip("\n"))

    def formatted(self, line: AccessLogFormat) -> FormattedLog:
        return FormattedLog(self, LogFormat(line.format, as_json=False, escape=line.escape, is_lenient=True))


class Client:
    """A raw client connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes, *, bytewise: bool = False) -> None:
        await send_all(self.writer, data, bytewise=bytewise)

    async def head(self) -> bytes:
        return await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), PATIENCE_S)

    async def exactly(self, size: int) -> bytes:
        return await asyncio.wait_for(self.reader.readexactly(size), PATIENCE_S)

    async def answer(self) -> tuple[bytes, bytes]:
        """Read an answer with Content-Length."""
        head = await self.head()
        return head, await self.exactly(int(head.lower().split(b"content-length: ")[1].split(b"\r")[0]))

    async def rest(self) -> bytes:
        """Read to the end of the connection."""
        chunks = []
        with contextlib.suppress(ConnectionError):
            while chunk := await asyncio.wait_for(self.reader.read(65536), PATIENCE_S):
                chunks.append(chunk)
        return b"".join(chunks)

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        """Leave at once: a client that closes in good order may only have ended its sending half."""
        connection = self.writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class Proxied:
    """A running proxy, its origins, and the means to talk through it."""

    def __init__(self, origins: Sequence[Origin], config: ProxyConfig) -> None:
        self.origins = origins
        self.origin = origins[0]
        self.pools = PoolRegistry(config)
        self.target = Target([self.pools.get("127.0.0.1", origin.port) for origin in origins])
        self.router = AnyRouter(self.target)
        self.holder = RouterHolder(self.router)
        self.stats = ProxyStats()
        self.log = RecordedLog()
        self.server = ProxyServer(self.holder, self.pools, config, self.stats, self.log)
        self.port = 0
        self._clients: list[Client] = []

    async def connect(self) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port))
        self._clients.append(client)
        return client

    async def talk(self, data: bytes, *, bytewise: bool = False) -> bytes:
        """Send on a new connection and give all that comes back until it is closed."""
        client = await self.connect()
        await client.send(data, bytewise=bytewise)
        return await client.rest()

    def close_clients(self) -> None:
        for client in self._clients:
            client.close()


@contextlib.asynccontextmanager
async def proxied(*scripts: Script, config: ProxyConfig | None = None, detailed: bool = True) -> AsyncIterator[Proxied]:
    """Run a proxy before one origin per script."""
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.sleep, 0)
        origins = [Origin(script) for script in scripts or (answering(OK),)]
        for origin in origins:
            await origin.start()
            stack.push_async_callback(origin.stop)
        running = Proxied(origins, replace(config or ProxyConfig(), detailed_errors=detailed))
        running.port = await running.server.listen_http("127.0.0.1", 0)
        stack.push_async_callback(running.server.drain, 0)
        stack.callback(running.close_clients)
        yield running
