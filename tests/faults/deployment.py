"""Everything under test, as processes of their own, and everything that can be done to it.

Between any two parts there is a link that can be partitioned. Only what is behind Redis' Sentinels is reached without
one, as they name the servers themselves.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from fakes.gateway.ports import free_ports
from fakes.kubernetes.api import FakeKubernetes
from fakes.peers.echo import EchoServer
from fakes.service_process import ServiceProcess
from fakes.stores.fallible_link import FallibleLink
from fakes.stores.nats_servers import NatsServer
from faults.desired import Desired
from faults.observed import Door
from faults.recorded_log import RecordedLog
from faults.stores import Broker, Tables, broker, tables
from headgate.common.sealing import load_or_create_key_pair

BACKENDS = ("red", "green", "blue")


class Shape(NamedTuple):
    """What is deployed."""

    clusters: Mapping[str, int]
    """Each with its number of watchers."""
    is_nats_cluster: bool = False
    has_redis: bool = False


SHAPES = {
    "single": Shape({"local": 2}),
    "cluster": Shape({"local": 1, "paris": 1}, is_nats_cluster=True),
    "redis": Shape({"local": 2}, has_redis=True),
}


class Deployment:
    """The parts, by name."""

    def __init__(self, folder: Path, shape: Shape) -> None:
        self.shape = shape
        self.desired: list[Desired] = []
        self.services: dict[str, ServiceProcess] = {}
        self.doors: dict[str, Door] = {}
        self.links: dict[str, Sequence[FallibleLink]] = {}
        """By `translator-0 > nats`: one for each server."""
        self.log = RecordedLog()
        self.broker: Broker
        self.tables: Tables | None = None
        self._folder = folder
        self._stack: AsyncExitStack

    def api(self, cluster: str) -> FakeKubernetes:
        """The API server of a cluster."""
        return next(each.api for each in self.desired if each.cluster == cluster)

    @property
    def nats_links(self) -> Sequence[Sequence[FallibleLink]]:
        """Of all services."""
        return [links for name, links in self.links.items() if name.endswith(" > nats")]

    async def start(self, stack: AsyncExitStack) -> None:
        """Start everything; what was started ends with the stack."""
        self._stack = stack
        backends = [await stack.enter_async_context(EchoServer(name)) for name in BACKENDS]
        self.broker = await stack.enter_async_context(
            broker(self._folder / "broker", is_cluster=self.shape.is_nats_cluster)
        )
        if self.shape.has_redis:
            self.tables = await stack.enter_async_context(tables(self._folder / "redis"))
        for cluster in self.shape.clusters:
            api = await stack.enter_async_context(FakeKubernetes(allows_loopback=True))
            self.desired.append(Desired(cluster, api, backends))
            self.desired[-1].begin()
        await self._make_services()
        await asyncio.gather(*(service.start() for service in self.services.values()))

    async def _make_services(self) -> None:
        store = [f"--store={self.tables.url}"] if self.tables else []
        for number in range(2):
            await self._make_gateway(f"gateway-{number}", store)
        for number in range(2):
            await self._make(f"translator-{number}", "translator", [*store, "--recovery-wait-s=3"])
        key = load_or_create_key_pair(self._folder / "gateway-0")
        assert key is not None
        public = f"--sealing-public-keys={self._folder / 'gateway-0' / 'gateway.pub'}"
        for cluster, count in self.shape.clusters.items():
            for number in range(count):
                name = f"watcher-{cluster}-{number}"
                [link] = await self._link(f"{name} > api-{cluster}", [_port_of(self.api(cluster).url)])
                kubeconfig = self.api(cluster).write_kubeconfig(
                    self._folder / f"{name}.kubeconfig", cluster={"server": f"http://127.0.0.1:{link.port}"}
                )
                flags = [public, f"--cluster={cluster}", f"--kubeconfig={kubeconfig}"]
                await self._make(name, f"watcher-{cluster}", flags, module="headgate.watcher")

    async def _make_gateway(self, name: str, store: Sequence[str]) -> None:
        http_port, admin_port = free_ports(2)
        ports = [f"--http-port={http_port}", f"--admin-port={admin_port}", "--http-host=127.0.0.1", "--https-port=0"]
        await self._make(name, "gateway", [*store, *ports, "--allowed-destinations=127.0.0.0/8", "--detailed-errors"])
        self.doors[name] = Door(name, http_port, admin_port, self._folder / name / "table-default.last-good")

    async def _make(self, name: str, user: str, flags: Sequence[str], *, module: str = "") -> None:
        links = await self._link(f"{name} > nats", [server.port for server in self.broker.servers])
        folder = self._folder / name
        common = [f"--data-dir={folder}", f"--instance={name}"]
        to_nats = self.broker.flags(user, [link.port for link in links])
        self.services[name] = service = ServiceProcess(
            name, module or f"headgate.{user}", [*common, *to_nats, *flags], folder
        )
        self._stack.push_async_callback(service.kill)

    async def _link(self, name: str, ports: Sequence[int]) -> Sequence[FallibleLink]:
        self.links[name] = [await self._stack.enter_async_context(FallibleLink(port)) for port in ports]
        return self.links[name]

    def signal(self, victim: str, number: signal.Signals) -> None:
        """Send a signal to a service or a server of NATS."""
        if victim in self.services:
            self.services[victim].send(number)
        else:
            self.nats_server(victim).process.send_signal(number)

    def nats_server(self, victim: str) -> NatsServer:
        """A server by its name, such as `nats-server-1`."""
        return self.broker.servers[int(victim.rpartition("-")[2])]


def _port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


@asynccontextmanager
async def deployed(folder: Path, shape: Shape) -> AsyncIterator[Deployment]:
    """Run everything; on an error show what the services printed."""
    async with AsyncExitStack() as stack:
        deployment = Deployment(folder, shape)
        await deployment.start(stack)
        yield deployment
