"""From an object to the gateway's pools: one change costs what it changes, however large the rest is.

Translation, publisher, store and gateway as they are, in one process, so that each step's work can be counted.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from fakes.gateway.requests import PLAIN
from fakes.gateway.table import FakePools
from fakes.translator.deltas import applied, endpoint_slice, ingress, service
from headgate.common.sealing import Unsealer
from headgate.common.snapshot import Chunk, ChunkName, Version
from headgate.common.stores.memory.snapshots import MemorySnapshotStore
from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.following.apply import TableApplier
from headgate.gateway.observability.metrics import TableMetrics
from headgate.gateway.table.compiler import TableCompiler
from headgate.gateway.table.port_routers import PortRouters
from headgate.gateway.table.route import CompiledRoute
from headgate.operations.committing.publisher import Draft, TablePublisher
from headgate.operations.committing.retention import Retention
from headgate.translator.composition import DIALECTS
from headgate.translator.translation import Translation

SITES = 600
ENDPOINTS = 10


class CountingStore(MemorySnapshotStore):
    """A store that counts what is written and fetched, by kind of chunk."""

    def __init__(self) -> None:
        super().__init__()
        self.written: Counter[str] = Counter()
        self.fetched: Counter[str] = Counter()

    async def put_chunks(self, chunks: Any) -> None:
        written: list[Chunk] = list(chunks)
        self.written.update(chunk.kind for chunk in written)
        await super().put_chunks(written)

    async def get_chunks(self, names: Sequence[ChunkName]) -> Sequence[bytes]:
        self.fetched.update(name.kind for name in names)
        return await super().get_chunks(names)


class Everything:
    """Translator and gateway on one store; `change` brings an object all the way."""

    def __init__(self) -> None:
        self.store = CountingStore()
        self.translation = Translation(DIALECTS)
        self.translation.activate("a")
        self.publisher = TablePublisher(self.store, "default", Retention())
        self.pools = FakePools()
        directory = EndpointDirectory(self.pools)
        self.compiler = TableCompiler(directory, Unsealer([]).open)
        metrics = TableMetrics(CollectorRegistry())
        self.applier = TableApplier(self.compiler, PortRouters().swap, metrics, lambda arrived, gone: None)

    async def change(self, *manifests: Any) -> int:
        """Apply objects and serve them; return how many nodes of the translation ran."""
        before = self.translation.graph.runs
        self.store.written.clear()
        self.store.fetched.clear()
        for manifest in manifests:
            self.translation.apply(applied(manifest, "a"))
        for _ in self.translation.settle():
            pass
        await self.publisher.publish(Draft(self.translation.assembly.image.chunks()))
        version = self.publisher.version
        assert version is not None
        await self.applier.apply(await self.store.get_manifest("default", version), self.store.get_chunks)
        return self.translation.graph.runs - before

    def send_to(self, host: str, requests: int) -> set[str]:
        """Return the endpoints that requests to a host are sent to."""
        table = self.compiler.table
        assert table is not None
        route = table.match(host.encode(), b"/", PLAIN)
        assert isinstance(route, CompiledRoute)
        return {str(route.choose((), PLAIN)) for _ in range(requests)}


def addresses(site: int) -> list[str]:
    return [f"10.{site >> 8}.{site & 255}.{number}" for number in range(ENDPOINTS)]


def slice_of(site: int, addresses: list[str]) -> Any:
    made = endpoint_slice(f"s{site}", addresses[0])
    template = made["endpoints"][0]
    made["endpoints"] = [{**template, "addresses": [address]} for address in addresses]
    return made


@pytest.fixture
async def served() -> Everything:
    everything = Everything()
    await everything.change(
        *(ingress(f"i{site}", host=f"h{site}.example", service=f"s{site}") for site in range(SITES)),
        *(service(f"s{site}") for site in range(SITES)),
        *(slice_of(site, addresses(site)) for site in range(SITES)),
    )
    for site in (7, 8):
        everything.send_to(f"h{site}.example", ENDPOINTS)
    return everything


async def test_one_endpoint_is_one_node_one_chunk_one_fetch_and_one_pool(served: Everything) -> None:
    bound = dict(served.compiler.upstreams.compiled())
    hosts, pools = served.compiler.table.hosts, dict(served.pools.pools)  # type: ignore[union-attr]
    moved = [*addresses(7)[:-1], "10.99.0.1"]
    assert await served.change(slice_of(7, moved)) == 1
    assert served.store.written == served.store.fetched == {"upstreams": 1}
    after = dict(served.compiler.upstreams.compiled())
    assert [key for key, upstream in after.items() if upstream is not bound[key]] == ["a/default/s7:80"]
    assert served.compiler.table.hosts is hosts  # type: ignore[union-attr]
    assert len(served.send_to("h7.example", ENDPOINTS)) == len(served.send_to("h8.example", ENDPOINTS)) == ENDPOINTS
    assert [key[0] for key in served.pools.pools.keys() - pools.keys()] == ["10.99.0.1"]


async def test_one_ingress_is_its_host_and_no_upstream(served: Everything) -> None:
    before, bound = dict(served.compiler.hosts.compiled()), dict(served.compiler.upstreams.compiled())
    ran = await served.change(ingress("i7", host="h7.example", path="/new", service="s7"))
    assert ran == 1
    assert served.store.written == served.store.fetched == {"hosts": 1}
    after = dict(served.compiler.hosts.compiled())
    assert [name for name, host in after.items() if host is not before[name]] == ["h7.example"]
    assert dict(served.compiler.upstreams.compiled()) == bound


async def test_a_new_ingress_on_a_service_that_is_used_is_one_host(served: Everything) -> None:
    before = dict(served.compiler.hosts.compiled())
    assert await served.change(ingress("new", host="new.example", service="s7")) == 1
    assert sum(served.store.fetched.values()) <= 2  # a full leaf splits
    assert {name for name, _ in served.compiler.hosts.compiled()} - before.keys() == {"new.example"}
    assert len(served.send_to("new.example", ENDPOINTS)) == ENDPOINTS


async def test_a_revision_says_what_changed_and_nothing_else(served: Everything) -> None:
    first = served.publisher.version
    await served.change(slice_of(7, ["10.99.0.1"]))
    manifest = served.publisher.manifest
    assert manifest is not None
    assert (first, manifest.version) == (manifest.parent, Version(manifest.version.epoch, 2))
    assert {kind: changed.names for kind, changed in manifest.changed.items()} == {"upstreams": ("a/default/s7:80",)}
