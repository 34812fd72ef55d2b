"""The source and the status writer against an API server in real time: the fake one over TLS, and a real one.

The real one is that of `KUBECONFIG`; its tests make and delete a namespace of their own.
"""

import asyncio
import base64
import os
import ssl
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from fakes.gateway.tls import SelfSigned
from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.following import Following
from fakes.kubernetes.objects import endpoint_slice, ingress, secret, service
from fakes.waiting import until
from headgate.common.resources import ENDPOINT_SLICE, INGRESS, SECRET, SERVICE, JsonObject, ObjectRef
from headgate.common.service.tasks import cancel
from headgate.common.status import EventNote, LoadBalancerAddress, StatusUpdate
from headgate.common.stores.memory.boards import MemoryStatusBoard
from headgate.watcher.api.kinds import group_path
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.api.wire import decode_object
from headgate.watcher.errors import Absent
from headgate.watcher.sources.kubernetes.source import KubernetesScope, KubernetesSource
from headgate.watcher.status.writer import StatusWriter

PLURALS = {"Ingress": "ingresses", "Service": "services", "EndpointSlice": "endpointslices", "Secret": "secrets"}


class Cluster:
    """A namespace of an API server, and a user's hands in it."""

    def __init__(self, transport: KubernetesTransport, namespace: str) -> None:
        self.transport = transport
        self.namespace = namespace

    async def create(self, item: JsonObject) -> JsonObject:
        item["metadata"]["namespace"] = self.namespace
        return decode_object(await self.transport.request("POST", self._path(item), body=item))

    async def annotate(self, item: JsonObject, **annotations: str) -> None:
        await self.transport.request(
            "PATCH",
            f"{self._path(item)}/{item['metadata']['name']}",
            body={"metadata": {"annotations": annotations}},
            content_type="application/merge-patch+json",
        )

    async def delete(self, item: JsonObject) -> None:
        await self.transport.request("DELETE", f"{self._path(item)}/{item['metadata']['name']}")

    async def get(self, item: JsonObject) -> JsonObject:
        return decode_object(await self.transport.request("GET", f"{self._path(item)}/{item['metadata']['name']}"))

    async def events(self) -> list[JsonObject]:
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        found = decode_object(await self.transport.request("GET", path))["items"]
        assert isinstance(found, list)
        return found

    def _path(self, item: JsonObject) -> str:
        return f"{group_path(item['apiVersion'])}/namespaces/{self.namespace}/{PLURALS[item['kind']]}"


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.skipif("'KUBECONFIG' not in os.environ"))])
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Cluster]:
    if request.param == "real":
        async for found in _real(KubernetesTransport(Path(os.environ["KUBECONFIG"]))):
            yield found
        return
    certificate = SelfSigned("api.test")
    (tmp_path / "server.pem").write_bytes(certificate.certificate_pem + certificate.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    authority = base64.b64encode(certificate.certificate_pem).decode()
    trust = {"certificate-authority-data": authority, "tls-server-name": "api.test"}
    async with FakeKubernetes(tls=context, streams_lists=True) as api:
        transport = KubernetesTransport(api.write_kubeconfig(tmp_path / "config", cluster=trust))
        yield Cluster(transport, "default")
        await transport.close()


async def _real(transport: KubernetesTransport) -> AsyncIterator[Cluster]:
    name = f"headgate-test-{uuid.uuid4().hex[:8]}"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await transport.request("POST", "/api/v1/namespaces", body=namespace)
    try:
        yield Cluster(transport, name)
    finally:
        await transport.request("DELETE", f"/api/v1/namespaces/{name}")
        await transport.close()


async def test_what_users_do_is_reported_in_order(cluster: Cluster) -> None:
    await cluster.create(ingress("before"))
    source = KubernetesSource(KubernetesScope((cluster.namespace,)), transport=cluster.transport, rng=Random(1))
    async with Following(source) as seen:
        await seen.until(lambda: {INGRESS, SERVICE, SECRET, ENDPOINT_SLICE} <= seen.state.keys())
        assert seen.names(INGRESS) == {"before"}
        await cluster.create(service("web"))
        await cluster.create(endpoint_slice("web-1", "10.1.2.3"))
        await cluster.create(secret("opaque", "Opaque"))
        await cluster.create(secret("cert"))
        await seen.until(lambda: "web" in seen.names(SERVICE) and "web-1" in seen.names(ENDPOINT_SLICE))
        await seen.until(lambda: seen.names(SECRET) == {"cert"})
        await cluster.annotate(ingress("before"), touched="yes")
        await seen.until(
            lambda: any("touched" in item["metadata"].get("annotations", {}) for item in seen.state[INGRESS].values())
        )
        await cluster.delete(ingress("before"))
        await seen.until(lambda: seen.names(INGRESS) == set())
        await cluster.create(ingress("large", annotations={"blob": "x" * 200_000}))
        await seen.until(lambda: seen.names(INGRESS) == {"large"})


async def test_a_status_and_its_event_arrive_and_the_status_is_taken_back(cluster: Cluster) -> None:
    made = await cluster.create(ingress("web"))
    board = MemoryStatusBoard()
    writer = StatusWriter(board, "here", cluster.transport, instance="watcher-0")
    running = asyncio.create_task(writer.run())
    update = StatusUpdate(
        ref=ObjectRef("here", "networking.k8s.io", "ingresses", cluster.namespace, "web"),
        api_version="networking.k8s.io/v1",
        kind="Ingress",
        uid=made["metadata"]["uid"],
        is_accepted=True,
        addresses=(LoadBalancerAddress(hostname="edge.example.com"),),
        events=(EventNote(type="Normal", reason="Accepted", note="Served", at=datetime.now(UTC)),),
        at=datetime.now(UTC),
    )
    try:
        await board.post(update)
        await _addresses_become([{"hostname": "edge.example.com"}], cluster)
        await until(lambda: writer.pending == 0)
        assert [event["note"] for event in await cluster.events()] == ["Served"]
        withdrawn = {"is_accepted": False, "addresses": (), "withdrawn": update.addresses, "events": ()}
        await board.post(update.model_copy(update=withdrawn))
        await _addresses_become([], cluster)
    finally:
        await cancel(running)


async def _addresses_become(wanted: list[JsonObject], cluster: Cluster) -> None:
    async with asyncio.timeout(30):
        while await _addresses(cluster) != wanted:  # noqa: ASYNC110 - the other side is a server
            await asyncio.sleep(0.05)


async def _addresses(cluster: Cluster) -> list[JsonObject]:
    status = (await cluster.get(ingress("web"))).get("status", {})
    found = status.get("loadBalancer", {}).get("ingress", [])
    assert isinstance(found, list)
    return found


async def test_a_kind_without_its_definition_is_absent(cluster: Cluster) -> None:
    with pytest.raises(Absent, match="404 page not found"):
        await cluster.transport.request("GET", "/apis/headgate.example.com/v9/nothings")
