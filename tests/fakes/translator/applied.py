"""Resources of Apache APISIX and of Kubernetes from manifests to the wire: what is applied is translated and served."""

import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import Any, NamedTuple

from fakes.gateway.proxied import OK, Client, Conversation, Origin, Script, answering
from fakes.gateway.served import Got, Served, asking, named, opened, origins, sealed, served
from fakes.gateway.tls import Issued
from fakes.translator.deltas import applied, deleted, endpoint_slice, ref_of, service, tls_secret
from headgate.common.problems import Severity
from headgate.common.snapshot import decode_chunk
from headgate.common.table import Certificate, EntryKind, entry_key
from headgate.gateway.health.resolve import Query
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.tls import CertificateEntry
from headgate.translator.composition import DIALECTS
from headgate.translator.translation import Translation
from headgate.translator.world.settings import DEFAULT_SETTINGS, TranslationSettings

SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


async def switching(conversation: Conversation) -> None:
    """Script: answer requests, switch to a websocket where that is offered, and then say everything again."""
    while b"\r\nUpgrade: websocket\r\n" not in await conversation.head():
        await conversation.send(OK)
    await conversation.send(SWITCH)
    while data := await conversation.reader.read(4096):
        await conversation.send(data)


class Applied:
    """A running proxy, and the objects that its table is made of."""

    def __init__(self, proxy: Served, settings: TranslationSettings = DEFAULT_SETTINGS) -> None:
        self.proxy = proxy
        self._translation = Translation(DIALECTS, settings)
        self._translation.activate("a")
        self._keys: set[tuple[EntryKind, str]] = set()

    def apply(self, *manifests: Any, cluster: str = "a") -> None:
        """Make or change objects, and serve what becomes of them."""
        for manifest in manifests:
            self._translation.apply(applied(manifest, cluster))
        self._translation.activate(cluster)
        self._serve()

    def delete(self, *manifests: Any, cluster: str = "a") -> None:
        """Delete objects, and serve what is left."""
        for manifest in manifests:
            self._translation.apply(deleted(manifest, cluster))
        self._serve()

    def _serve(self) -> None:
        for _ in self._translation.settle():
            pass
        chunks = self._translation.assembly.image.chunks()
        entries = [(chunk.kind, entry) for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content)]
        present = {(kind, entry_key(entry)) for kind, entry in entries}
        self.proxy.put(*(entry for _, entry in entries))
        gone = self._keys - present
        for kind, key in gone:
            self.proxy.remove(kind, key)
        self._keys = present
        self._present([entry for _, entry in entries if isinstance(entry, Certificate)], gone)

    def _present(self, certificates: Iterable[Certificate], gone: Iterable[tuple[EntryKind, str]]) -> None:
        """Have the certificates of Secrets that `pair` made."""
        arrived = [
            CertificateEntry(each.server_names, each.chain_pem, opened(each.private_key), each.fingerprint, each.key)
            for each in certificates
            if each.chain_pem.startswith("-----BEGIN")
        ]
        removed = [key for kind, key in gone if kind == "certificates"]
        if arrived or removed:
            self.proxy.certificates.change_certificates(arrived, removed)

    def addresses(self, upstream: str) -> list[str]:
        """Return the addresses that an upstream's requests may go to."""
        holder = self.proxy.compiler.find_endpoints(upstream)
        return [slot.key[0] for slot in holder.balancer.slots] if holder is not None else []

    def errors(self, manifest: Any) -> list[str]:
        """Return the reasons of an object's errors."""
        condition = self._translation.condition(ref_of(manifest))
        problems = condition.problems if condition is not None else ()
        return [problem.reason for problem in problems if problem.severity is Severity.ERROR]

    def messages(self, manifest: Any) -> str:
        """Return what is said of an object's mistakes, a line for each."""
        condition = self._translation.condition(ref_of(manifest))
        return "\n".join(problem.message for problem in condition.problems) if condition is not None else ""

    def problems(self, manifest: Any) -> list[str]:
        """Return the reasons of what is wrong with an object, warnings too."""
        condition = self._translation.condition(ref_of(manifest))
        return [problem.reason for problem in condition.problems] if condition is not None else []

    def fields(self, manifest: Any) -> list[str]:
        """Return the fields about which something is said."""
        condition = self._translation.condition(ref_of(manifest))
        return [problem.field for problem in condition.problems] if condition is not None else []

    async def post(self, body: bytes, path: str = "/", **more: str) -> Got:
        return await self.proxy.post(body, path, **more)

    async def get(self, path: str = "/", **more: str) -> Got:
        return await self.proxy.get(path, **more)

    async def status(self, path: str = "/", **more: str) -> int:
        return (await self.get(path, **more)).status

    async def offer_websocket(self, **more: str) -> Client:
        """Return a connection on which a websocket was asked for."""
        client = await self.proxy.connect()
        offer = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec_WebSocket_Key": "a",
            "Sec_WebSocket_Version": "13",
        }
        await client.send(asking(**offer, **more))
        return client

    async def bodies(self, count: int, path: str = "/", **more: str) -> list[str]:
        return await self.proxy.bodies(count, path, **more)


class World(NamedTuple):
    """A proxy and the servers behind it."""

    proxy: Applied
    servers: dict[str, Origin]

    def port(self, name: str) -> int:
        return self.servers[name].port


@contextlib.asynccontextmanager
async def world(
    *names: str,
    query: Query | None = None,
    settings: TranslationSettings = DEFAULT_SETTINGS,
    config: ProxyConfig | None = None,
    proxy_protocol: bool = False,
    **scripts: Script,
) -> AsyncIterator[World]:
    """Run a proxy, and for each name a Service with one endpoint, which answers with its name or by its script."""
    told = {name: answering(named(name.encode())) for name in names} | scripts
    gateway = served(query=query, config=config, proxy_protocol=proxy_protocol)
    async with origins(*told.values()) as servers, gateway as proxy:
        made = World(Applied(proxy, settings), dict(zip(told, servers, strict=True)))
        for name in told:
            made.proxy.apply(service(name), endpoint_slice(name, "127.0.0.1", port=made.port(name)))
        yield made


def secret(name: str, **values: str) -> Any:
    """Return a Secret as a watcher seals it for the proxy."""
    boxes = {key: sealed(value.encode()).model_dump(include={"boxes"}) for key, value in values.items()}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "sealed": {"values": boxes}}


def pair(name: str, issued: Issued, *names: str) -> Any:
    """Return a TLS Secret with a certificate for some names, as a watcher seals it for the proxy."""
    made = tls_secret(name, *names)
    made["sealed"]["certificate"] |= {
        "chain_pem": issued.chain_pem.decode(),
        "fingerprint": str(issued.certificate.serial_number),
    }
    made["sealed"]["values"]["tls.key"] = sealed(issued.key_pem).model_dump(include={"boxes"})
    return made
