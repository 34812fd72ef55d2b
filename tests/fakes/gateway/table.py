"""Short ways to write table entries, and to compile them as a gateway does."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from headgate.common.sealing import ClusterValue, Unsealer
from headgate.common.snapshot import Chunk, ChunkName, Manifest, Version
from headgate.common.table import (
    Backend,
    Certificate,
    Endpoint,
    Listener,
    PathMatch,
    PathType,
    Provenance,
    Route,
    TableEntry,
    Timeouts,
    Upstream,
    VirtualHost,
)
from headgate.common.table_image import TableImage
from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.table.compiler import TableCompiler

ORIGIN = Provenance(cluster="c1", kind="Ingress", namespace="default", name="web", rule="spec.rules[0]")


class FakePool:
    """Stands for connections to one endpoint."""

    def __init__(self, address: str, port: int, protocol: str) -> None:
        self.key = (address, port, protocol)
        self.address = address
        self.port = port
        self.in_flight = 0
        self.is_hop = bool(getattr(protocol, "is_hop", False))

    def __repr__(self) -> str:
        return f"{self.address}:{self.port}"


class FakePools:
    """A pool registry that only remembers."""

    def __init__(self) -> None:
        self.pools: dict[tuple[str, int, str], FakePool] = {}

    def get(self, address: str, port: int, protocol: str) -> FakePool:
        return self.pools.setdefault((address, port, protocol), FakePool(address, port, protocol))


def route(path: str, kind: str = "prefix", *backends: str | tuple[str, int], name: str = "") -> Route:
    """A route named by kind and path; backends are upstream keys, or keys with weights."""
    split = [backend if isinstance(backend, tuple) else (backend, 1) for backend in backends or ("up",)]
    return Route(
        name=name or f"{kind} {path}",
        path=PathMatch(type=PathType(kind), value=path),
        backends=tuple(Backend(upstream=key, weight=weight) for key, weight in split),
        timeouts=Timeouts(),
        provenance=ORIGIN,
    )


def host(name: str, *routes: Route, on: Sequence[str] = ()) -> VirtualHost:
    """A virtual host; `on` are its listeners."""
    return VirtualHost(host=name, routes=routes or (route("/"),), listeners=tuple(on))


def listener(key: str, **fields: object) -> Listener:
    """A listener, of HTTP on the gateway's own port if nothing else is said."""
    return Listener.model_validate({"key": key, "protocol": "http", "provenance": ORIGIN, **fields})


def endpoint(number: int, *, port: int = 80, weight: int = 1, **flags: bool) -> Endpoint:
    return Endpoint(address=f"10.0.0.{number}", port=port, weight=weight, **flags)


def upstream(key: str, *endpoints: Endpoint, unavailable: str | None = None) -> Upstream:
    return Upstream(key=key, endpoints=endpoints, unavailable=unavailable, provenance=ORIGIN)


def certificate(
    key: str, sealed: ClusterValue, *names: str, chain: str = "chain", fingerprint: str = "aa"
) -> Certificate:
    return Certificate(
        key=key, server_names=names, chain_pem=chain, private_key=sealed, fingerprint=fingerprint, provenance=ORIGIN
    )


def new_compiler(pools: FakePools | None = None, unsealer: Unsealer | None = None) -> TableCompiler:
    directory = EndpointDirectory(pools or FakePools())
    return TableCompiler(directory, (unsealer or Unsealer([])).open)


def publish(image: TableImage, version: tuple[int, int], table: str = "default") -> tuple[Manifest, list[Chunk]]:
    """What a translator would commit for the image as it is now."""
    chunks = image.chunks()
    names = tuple(ChunkName(kind=chunk.kind, prefix=chunk.prefix, digest=chunk.digest) for chunk in chunks)
    manifest = Manifest(
        table=table, version=Version(*version), created_at=datetime(2026, 1, 1, tzinfo=UTC), chunks=names
    )
    return manifest, chunks


def load(
    compiler: TableCompiler,
    image: TableImage,
    version: tuple[int, int] = (1, 1),
    *,
    before_commit: Callable[[], None] = lambda: None,
) -> int:
    """Bring a compiler to the image; return how many chunks it needed."""
    manifest, chunks = publish(image, version)
    contents = {chunk.digest: chunk.content for chunk in chunks}
    update = compiler.stage(manifest.version, manifest.chunks)
    for names in update.rounds():
        for name in names:
            list(update.add(name, contents[name.digest]))
    before_commit()
    update.commit()
    list(update.settling)
    return len(update.needed)


def compiled(entries: Iterable[TableEntry]) -> TableCompiler:
    """A compiler that holds these entries as revision 1.1."""
    compiler = new_compiler()
    load(compiler, TableImage(entries))
    return compiler
