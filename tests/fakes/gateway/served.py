"""A proxy that serves table entries, wired as a worker wires it: entries in, a running proxy out."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import Client, Origin, RecordedLog, Script
from fakes.gateway.table import ORIGIN, load
from fakes.gateway.tls import Issued, unverified
from headgate.common.sealing import ClusterValue, Purpose, Unsealer
from headgate.common.secret import Secret
from headgate.common.table import (
    Backend,
    Endpoint,
    EntryKind,
    PathMatch,
    PathType,
    PluginUse,
    Route,
    TableEntry,
    TlsPolicy,
    Upstream,
    VirtualHost,
)
from headgate.common.table.shards import Shard
from headgate.common.table_image import TableImage
from headgate.gateway.balancing.endpoints import EndpointDirectory, EndpointSlot
from headgate.gateway.balancing.levels import Place
from headgate.gateway.health.probes import probe
from headgate.gateway.health.resolve import Query, Resolver
from headgate.gateway.health.stats import HealthStats
from headgate.gateway.health.upstreams import UpstreamHealth
from headgate.gateway.listeners.http3 import Http3Ports
from headgate.gateway.listeners.http_listeners import HttpListeners
from headgate.gateway.listeners.server import ProxyServer
from headgate.gateway.net.dialling import UNBOUNDED, Dialler
from headgate.gateway.observability.metrics import TableMetrics
from headgate.gateway.plugins.interface.consumers import ConsumerDirectory
from headgate.gateway.plugins.interface.messages import Request, Response
from headgate.gateway.plugins.interface.targets import Endpoints
from headgate.gateway.plugins.runtime.host import PluginHost
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.pools import PoolRegistry
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.streams.context import StreamContext
from headgate.gateway.streams.listeners import StreamListeners
from headgate.gateway.streams.log import StreamRecord
from headgate.gateway.streams.ports import udp_numbers
from headgate.gateway.streams.stats import StreamStats
from headgate.gateway.table.compiler import TableCompiler
from headgate.gateway.table.listener_ports import OWN_HTTP, OWN_HTTPS
from headgate.gateway.table.port_routers import PortRouters
from headgate.gateway.table.shards.part import ShardPart
from headgate.gateway.tls import CertificateEntry, CertificateStore

HOST = "a.example"


def at(*ports: int | Endpoint, key: str = "up", **fields: object) -> Upstream:
    """An upstream with endpoints at ports of 127.0.0.1."""
    endpoints = [port if isinstance(port, Endpoint) else Endpoint(address="127.0.0.1", port=port) for port in ports]
    ordered = tuple(sorted(endpoints, key=lambda endpoint: (endpoint.address, endpoint.port)))
    return Upstream.model_validate({"key": key, "endpoints": ordered, "provenance": ORIGIN, **fields})


def to(
    *upstreams: str | tuple[str, int],
    path: str = "/",
    name: str = "",
    plugins: Sequence[tuple[str, dict[str, object]]] = (),
    **fields: object,
) -> Route:
    """A route for a prefix; upstreams are keys, or keys with weights."""
    split = [each if isinstance(each, tuple) else (each, 1) for each in upstreams]
    return Route.model_validate(
        {
            "name": name or path,
            "path": PathMatch(type=PathType.PREFIX, value=path),
            "backends": tuple(Backend(upstream=key, weight=weight) for key, weight in split),
            "plugins": tuple(PluginUse.model_validate({"name": name, "config": config}) for name, config in plugins),
            "provenance": ORIGIN,
            **fields,
        }
    )


def site(*routes: Route, host: str = HOST, tls: TlsPolicy | None = None) -> VirtualHost:
    """A virtual host; without routes all its requests go to `up`."""
    return VirtualHost(host=host, routes=routes or (to("up"),), tls=tls)


def named(name: bytes) -> bytes:
    """An answer whose body is a name."""
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(name), name)


@dataclass
class Got:
    """An answer."""

    head: bytes
    body: bytes

    @property
    def status(self) -> int:
        return int(self.head.split(b" ", 2)[1])

    def all(self, name: str) -> list[str]:
        """Values of all fields of a name."""
        lines = [line.partition(b":") for line in self.head.split(b"\r\n")[1:]]
        return [value.strip().decode() for key, _, value in lines if key.decode().lower() == name.lower()]

    def __getitem__(self, name: str) -> str:
        return ", ".join(self.all(name))

    @property
    def cookie(self) -> str:
        """Name and value of the only cookie that was set, empty if there is none."""
        set_cookies = self.all("set-cookie")
        assert len(set_cookies) < 2
        return set_cookies[0].partition(";")[0] if set_cookies else ""


async def read_answer(client: Client, *, has_body: bool = True) -> Got:
    """Read one answer, whatever says where it ends."""
    head = await client.head()
    while head.startswith(b"HTTP/1.1 1"):
        head = await client.head()
    got = Got(head, b"")
    if not has_body or got.status in (204, 304):
        return got
    if got["transfer-encoding"] == "chunked":
        while size := int(await client.reader.readline(), 16):
            got.body += await client.exactly(size)
            await client.exactly(2)
        await client.exactly(2)
    elif got["content-length"]:
        got.body = await client.exactly(int(got["content-length"]))
    else:
        got.body = await client.rest()
    return got


def asking(path: str = "/", method: str = "GET", host: str = HOST, body: bytes | None = None, **headers: str) -> bytes:
    """A request; header names have `_` for `-`."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body is not None and "Transfer_Encoding" not in headers:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


class Served:
    """A running proxy and the table behind it."""

    def __init__(
        self,
        config: ProxyConfig,
        query: Query | None,
        cluster: str,
        dialler: Dialler,
        proxy_protocol: bool = False,
        hooks_file: Path | None = None,
        shard: Shard | None = None,
        http3: bool = False,
    ) -> None:
        self.stats = ProxyStats()
        self.log = RecordedLog()
        self.pools = PoolRegistry(config, dialler)
        self.directory = EndpointDirectory(self.pools)
        self.health = UpstreamHealth(HealthStats(), partial(probe, dialler=dialler))
        self.resolver = Resolver(query, self.health.stats, is_routable=lambda address: True) if query else None
        self.consumers = ConsumerDirectory()
        self.plugins = PluginHost(
            _unseal,
            self._send_to,
            lambda key: self.compiler.hold_endpoints(key),
            consumers=self.consumers,
            dialler=dialler,
            find_group=lambda key: self.compiler.hold_group(key),
            hooks_file=hooks_file,
        )
        self.compiler = TableCompiler(
            self.directory,
            _unseal,
            health=self.health,
            make_hooks=self.plugins.make_plugins,
            resolver=self.resolver,
            place=Place(cluster=cluster),
            consumers=self.consumers,
            part=ShardPart(shard) if shard is not None else None,
        )
        self.routers = PortRouters()
        self.holder = self.routers.holder(OWN_HTTP)
        self.certificates = CertificateStore(alpn=("h2", "http/1.1"))
        self.certificates.set_policies(self.compiler.find_tls, self.compiler.find_certificates)
        self.stream_records: list[StreamRecord] = []
        streams = StreamContext(
            StreamStats(),
            self.certificates.server_context,
            self.certificates.context_for,
            self.stream_records.append,
            certificates_at=self.compiler.certificates_at,
        )
        self.server = ProxyServer(
            self.holder, self.pools, config, self.stats, self.log, streams, proxy_protocol=proxy_protocol
        )
        self.streams = StreamListeners(streams, "127.0.0.1", https=self.server)
        self.http3 = Http3Ports(self.certificates, 86_400)
        self.listeners = HttpListeners(
            self.server,
            self.routers,
            self.compiler,
            self.certificates,
            TableMetrics(CollectorRegistry()),
            "127.0.0.1",
            reserved={},
            serve_http3=self.http3.serve if http3 else None,
        )
        self._calls = self.server.calls(self.compiler.find_endpoints)
        self._image = TableImage()
        self._revision = 0
        self._clients: list[Client] = []
        self.port = 0
        self.https_port = 0

    async def _send_to(
        self, upstream: str | Endpoints, request: Request, *, timeout_s: float, max_body: int
    ) -> Response:
        return await self._calls.send_to(upstream, request, timeout_s=timeout_s, max_body=max_body)

    def put(self, *entries: TableEntry) -> None:
        """Serve these entries besides the others."""
        for entry in entries:
            self._image.put(entry)
        self._swap()

    def remove(self, kind: EntryKind, key: str) -> None:
        self._image.discard(kind, key)
        self._swap()

    def _swap(self) -> None:
        self._revision += 1
        load(self.compiler, self._image, (1, self._revision))
        assert self.compiler.table is not None
        self.routers.swap(self.compiler.table)
        if self.port:
            self.serve_ports()

    def serve_ports(self) -> None:
        """Have the ports open that the table asks for."""
        assert self.compiler.table is not None
        plan = self.compiler.table.plan
        streams = [stream for _, stream in self.compiler.streams.compiled()]
        self.listeners.leave_udp(udp_numbers(streams))
        self.listeners.apply(
            plan, self.streams.apply(streams, self.listeners.keys(plan), self.compiler.listener_entries)
        )

    def present(self, name: str, issued: Issued) -> None:
        """Have a certificate for a server name."""
        chain, key = issued.chain_pem.decode(), Secret(issued.key_pem)
        self.certificates.set_certificates([CertificateEntry((name,), chain, key, name, name, "")])

    def slot(self, port: int) -> EndpointSlot:
        """The endpoint at a port."""
        return next(slot for slot in self.slots() if slot.key[1] == port)

    def slots(self) -> list[EndpointSlot]:
        """The endpoints that may get new requests."""
        return [slot for _, holder in self.compiler.upstreams.compiled() for slot in holder.balancer.slots]

    async def connect(
        self, tls: ssl.SSLContext | None = None, server_name: str = HOST, port: int = 0, *, to: str = "127.0.0.1"
    ) -> Client:
        """A connection of a client, over TLS if it has a context; to one of the gateway's own ports, or another."""
        if tls is None:
            streams = await asyncio.open_connection(to, port or self.port)
        else:
            port = port or self.https_port
            streams = await asyncio.open_connection(to, port, ssl=tls, server_hostname=server_name)
        client = Client(*streams)
        self._clients.append(client)
        return client

    async def get(self, path: str = "/", method: str = "GET", **more: str) -> Got:
        """Ask on a connection of its own."""
        return await self.post(None, path, method=method, **more)

    async def post(self, body: bytes | None, path: str = "/", *, method: str = "POST", **more: str) -> Got:
        """Ask with a body."""
        client = await self.connect()
        await client.send(asking(path, method, body=body, **more))
        got = await read_answer(client, has_body=method != "HEAD")
        client.close()
        return got

    async def secure(self, client: ssl.SSLContext | None = None, *, server_name: str = HOST, **more: str) -> Got:
        """Ask over TLS, on a connection of its own."""
        connection = await self.connect(client or unverified(), server_name)
        await connection.send(asking(**more))
        return await read_answer(connection)

    async def bodies(self, count: int, path: str = "/", **more: str) -> list[str]:
        """Bodies of so many answers, one after the other."""
        return [(await self.get(path, **more)).body.decode() for _ in range(count)]

    def close_clients(self) -> None:
        for client in self._clients:
            client.close()


def sealed(value: bytes) -> ClusterValue:
    """A value in a box that `served` opens."""
    return ClusterValue(boxes={"any": value.decode("latin-1")})


def opened(value: ClusterValue) -> Secret[bytes]:
    """What `sealed` put into a box."""
    return Secret(next(iter(value.boxes.values())).encode("latin-1"))


def _unseal(value: ClusterValue, purpose: Purpose) -> Secret[bytes]:
    return opened(value) if value.boxes else Unsealer([]).open(value, purpose)


@contextlib.asynccontextmanager
async def served(
    *entries: TableEntry,
    config: ProxyConfig | None = None,
    query: Query | None = None,
    cluster: str = "",
    dialler: Dialler = UNBOUNDED,
    detailed: bool = True,
    proxy_protocol: bool = False,
    hooks_file: Path | None = None,
    http3: bool = False,
    shard: Shard | None = None,
) -> AsyncIterator[Served]:
    """Serve entries over HTTP and HTTPS, by `http3` on UDP too, in a cluster; `query` asks for the addresses of names.

    Failures are answered with their reasons if `detailed`, as tests look at those. With `proxy_protocol` connections to
    the gateway's own ports begin with a PROXY header. Of a `shard` the hosts of others are refused.
    """
    told = replace(config or ProxyConfig(), detailed_errors=detailed)
    running = Served(told, query, cluster, dialler, proxy_protocol, hooks_file, shard, http3)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.sleep, 0.01)
        if running.resolver is not None:
            stack.push_async_callback(running.resolver.close)
        stack.push_async_callback(running.health.close)
        stack.push_async_callback(running.plugins.close)
        running.put(*entries)
        running.port = await running.server.listen_http("127.0.0.1", 0)
        running.https_port = await running.server.listen_https(
            "127.0.0.1", 0, running.certificates, holder=running.routers.holder(OWN_HTTPS)
        )
        if http3:
            running.http3.serve_own(running.server.https_port(), "127.0.0.1")
        running.serve_ports()
        stack.push_async_callback(running.server.drain, 0)
        stack.push_async_callback(running.streams.drain, 0)
        stack.callback(running.listeners.stop)
        stack.callback(running.close_clients)
        yield running


@contextlib.asynccontextmanager
async def origins(*scripts: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[list[Origin]]:
    """Raw servers, one for each script; over TLS if there is a context."""
    async with contextlib.AsyncExitStack() as stack:
        started = []
        for script in scripts:
            origin = Origin(script, tls)
            await origin.start()
            stack.push_async_callback(origin.stop)
            started.append(origin)
        yield started


def ports(servers: Collection[Origin]) -> list[int]:
    return [server.port for server in servers]


def closed_port() -> int:
    """A port at which nobody answers."""
    return free_port()
