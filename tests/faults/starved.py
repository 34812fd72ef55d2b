"""A control plane that gets a small part of a core for each of its processes, with a cluster of any size.

    async with starved(folder, ingresses=10_000) as plane:
        await plane.start()
        async with plane.shortage(0.1): ...

Two watchers, two translators and NATS are processes; the API server is the fake one, in the process of the test. What
counts as served is what the table's current revision has.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from fakes.cpu_share import cpu_share
from fakes.gateway.ports import free_port
from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.objects import endpoint_slice, ingress, service
from fakes.service_process import ServiceProcess
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.bus.connection import Bus
from headgate.common.errors import StoreError
from headgate.common.sealing import load_or_create_key_pair
from headgate.common.stores.nats import NatsStores
from headgate.common.stores.reading import read_chunks
from headgate.common.table import DEFAULT_TABLE

HOST = "late{}.test"
_LATE = re.compile(rb"late\d+\.test")


class StarvedPlane:
    """The processes and what was asked of them."""

    def __init__(self, folder: Path, api: FakeKubernetes, nats: EmbeddedNats, stores: NatsStores) -> None:
        self.api, self.nats, self.stores = api, nats, stores
        self.folder = folder
        self.services: dict[str, ServiceProcess] = {}
        self._changes = 0
        self._late: dict[str, frozenset[bytes]] = {}
        """By chunk: which of the hosts that came late it has."""
        self.admin_ports: dict[str, int] = {}
        kubeconfig = api.write_kubeconfig(folder / "kubeconfig")
        load_or_create_key_pair(folder / "keys")
        keys = f"--sealing-public-keys={folder / 'keys' / 'gateway.pub'}"
        for number in range(2):
            self._add(f"watcher-{number}", "watcher", f"--kubeconfig={kubeconfig}", keys)
            self._add(f"translator-{number}", "translator")

    def _add(self, name: str, service: str, *flags: str) -> None:
        folder = self.folder / name
        self.admin_ports[name] = free_port()
        common = (f"--data-dir={folder}", f"--instance={name}", f"--nats-url={self.nats.url}")
        port = f"--admin-port={self.admin_ports[name]}"
        self.services[name] = ServiceProcess(name, f"headgate.{service}", [*common, port, *flags], folder)

    async def start(self, *names: str) -> None:
        """Start services: all, or these."""
        await asyncio.gather(*(self.services[name].start() for name in names or self.services))

    def change(self) -> str:
        """Make another Ingress; return its host."""
        self._changes += 1
        host = HOST.format(self._changes)
        self.api.apply(ingress(f"late{self._changes}", host))
        return host

    async def until_served(self, host: str, within_s: float) -> float:
        """Wait until the table has a host; return how long that took."""
        began = time.monotonic()
        async with asyncio.timeout(within_s):
            while not await self._has(host):  # noqa: ASYNC110 - a store has no event for it
                await asyncio.sleep(0.2)
        return time.monotonic() - began

    async def _has(self, host: str) -> bool:
        """Whether the current revision has a host; each chunk is looked into once."""
        try:
            pointer = await self.stores.snapshots.read_pointer(DEFAULT_TABLE)
            if pointer is None:
                return False
            manifest = await self.stores.snapshots.get_manifest(DEFAULT_TABLE, pointer.version)
            unknown = [name for name in manifest.chunks if name.digest not in self._late]
            for chunk in await read_chunks(self.stores.snapshots, unknown):
                self._late[chunk.digest] = frozenset(_LATE.findall(chunk.content))
        except StoreError:
            return False
        return any(host.encode() in self._late[name.digest] for name in manifest.chunks)

    async def leader(self, work: str) -> str:
        """The name of the service that leads its kind."""
        if work == "translator":
            stored = await self.stores.leases.read(f"translator.{DEFAULT_TABLE}")
            return stored.lease.holder if stored else ""
        return str(self.api.get("leases", "headgate-watcher-local")["spec"]["holderIdentity"])

    @asynccontextmanager
    async def shortage(self, share: float) -> AsyncIterator[str]:
        """Give each process of now this part of a core."""
        async with AsyncExitStack() as stack:
            pids = [service.pid for service in self.services.values() if service.is_running]
            means = [await stack.enter_async_context(cpu_share(share, pid)) for pid in (*pids, self.nats.process.pid)]
            yield means[0]


@asynccontextmanager
async def starved(folder: Path, ingresses: int) -> AsyncIterator[StarvedPlane]:
    """Run NATS and an API server with so many Ingresses, Services and EndpointSlices each; no service runs yet."""
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(FakeKubernetes())
        for number in range(ingresses):
            api.apply(ingress(f"site{number}", service=f"site{number}"))
            api.apply(service(f"site{number}"))
            api.apply(endpoint_slice(f"site{number}-1", "10.0.0.1", service=f"site{number}"))
        api.apply(service("web"))
        api.apply(endpoint_slice("web-1", "10.0.0.1"))
        nats = EmbeddedNats(folder / "nats")
        await nats.start()
        stack.push_async_callback(nats.kill)
        bus = await Bus.connect(nats.url, name="test")
        stack.push_async_callback(bus.close)
        plane = StarvedPlane(folder, api, nats, NatsStores(bus))
        for one in plane.services.values():
            stack.push_async_callback(one.kill)
        yield plane
