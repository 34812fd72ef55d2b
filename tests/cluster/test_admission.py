"""The webhook as a real API server asks it: a watcher on this machine, reached by its URL."""

import asyncio
import base64
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from cluster.serving import CLASS, apply_ingress, apply_service, is_refused, plain, serving
from fakes.gateway.ports import free_port
from fakes.gateway.tls import Authority
from fakes.kubernetes.real import RealCluster, eventually
from fakes.peers.echo import EchoServer
from fakes.translator.deltas import ingress

JsonObject = dict[str, Any]


def configuration(cluster: RealCluster, authority: Authority, port: int, *rules: JsonObject) -> JsonObject:
    """A webhook for our namespace alone."""
    own = {"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace}}
    authority_pem = base64.b64encode(authority.pem).decode()
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "webhook"},
        "webhooks": [
            {
                "name": "objects.admission.headgate.dev",
                "clientConfig": {"url": f"https://{cluster.address}:{port}/validate", "caBundle": authority_pem},
                "namespaceSelector": own,
                "rules": list(rules),
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Ignore",
                "timeoutSeconds": 5,
            }
        ],
    }


def of(group: str, *resources: str) -> JsonObject:
    return {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [*resources]}


@asynccontextmanager
async def listening(folder: Path, address: str, port: int, authority: Authority) -> AsyncIterator[asyncio.Event]:
    """A server that notes whether anybody came."""
    called = asyncio.Event()

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.set()
        writer.close()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*issue(authority, address, folder))
    async with await asyncio.start_server(note, address, port, ssl=context):
        yield called


def issue(authority: Authority, address: str, folder: Path) -> tuple[Path, Path]:
    return authority.issue(address, x509.IPAddress(ipaddress.ip_address(address))).write(folder)


async def skip_unless_reached(cluster: RealCluster, folder: Path) -> None:
    """Leave the test out where the API server cannot reach this machine."""
    authority, port = Authority(), free_port(cluster.address)
    async with listening(folder, cluster.address, port, authority) as called:
        await cluster.apply(configuration(cluster, authority, port, of("", "configmaps")))

        async def is_called() -> bool:
            await cluster.try_out({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}})
            return called.is_set()

        try:
            await eventually(is_called, 30)
        except TimeoutError:
            pytest.skip(f"the API server does not reach this machine at {cluster.address}, for webhooks")


async def test_mistakes_are_refused_by_the_api_server_and_all_else_is_let_in(
    cluster: RealCluster, tmp_path: Path
) -> None:
    await skip_unless_reached(cluster, tmp_path)
    authority, port = Authority(), free_port(cluster.address)
    chain, key = issue(authority, cluster.address, tmp_path)
    hook = {
        "HEADGATE_ADMISSION_PORT": str(port),
        "HEADGATE_ADMISSION_CERTIFICATE_FILE": str(chain),
        "HEADGATE_ADMISSION_KEY_FILE": str(key),
    }
    async with (
        EchoServer("one", cluster.address) as server,
        serving(cluster, tmp_path, environment=hook) as stack,
    ):
        await apply_service(cluster, "web", server)
        host = await apply_ingress(cluster, "owner")
        await stack.wait_for_answer(host, "/", name="one")
        rules = (of("networking.k8s.io", "ingresses"), of("", "services"))
        await cluster.apply(configuration(cluster, authority, port, *rules))
        rival = plain(ingress("rival", host=host, class_name=CLASS))
        await eventually(lambda: is_refused(cluster, rival, "belongs to Ingress"))
        bad = plain(ingress("bad", host="bad.example", class_name=CLASS))
        bad["metadata"]["annotations"] = {"headgate.dev/plugins": "cors, gzip"}
        await eventually(lambda: is_refused(cluster, bad, "headgate.dev/plugins"))
        free = await apply_ingress(cluster, "free")
        await stack.wait_for_answer(free, "/", name="one")
        # Nobody answers any more, and the failure policy lets everything in.
        await stack.stop()
        await cluster.apply(rival)
