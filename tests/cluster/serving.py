"""A stack on this machine that serves what hands make in a cluster."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fakes.kubernetes.real import RealCluster
from fakes.peers.echo import EchoServer
from fakes.stack import Stack
from fakes.translator.deltas import endpoint_slice, ingress, ingress_class, service
from headgate.watcher.errors import ApiStatusError

CLASS = "web"
PUBLISHED = "192.0.2.1"
START_S = 150.0
"""A cluster on the same machine may have much to do itself."""


@asynccontextmanager
async def serving(
    cluster: RealCluster,
    folder: Path,
    *,
    kubeconfig: Path | None = None,
    environment: Mapping[str, str] | None = None,
    extra: Sequence[str] = (),
) -> AsyncIterator[Stack]:
    """Run a stack on what is in the namespace, as its administrator or as whom a kubeconfig names."""
    await cluster.apply(ingress_class(CLASS))
    stack = Stack(
        kubeconfig=kubeconfig or cluster.kubeconfig,
        data_dir=folder / "data",
        publish_address=PUBLISHED,
        environment={**cluster.environment, **(environment or {})},
        extra=["--access-log=off", *extra],
        start_within_s=START_S,
    )
    async with stack:
        yield stack


async def apply_service(cluster: RealCluster, name: str, *servers: EchoServer) -> None:
    """Make a Service without a selector, with a slice of endpoints for each server."""
    await cluster.apply(plain(service(name)))
    for number, server in enumerate(servers):
        found = endpoint_slice(name, cluster.address, name=f"{name}-{number}", port=server.port)
        await cluster.apply(plain(found))


async def apply_ingress(cluster: RealCluster, name: str, service: str = "web", **fields: object) -> str:
    """Make an Ingress of our class for a host of its own, which is returned."""
    host = f"{name}.example"
    await cluster.apply(plain(ingress(name, host=host, service=service, class_name=CLASS, **fields)))
    return host


def plain(manifest: dict[str, object]) -> dict[str, object]:
    """A manifest as somebody applies it: without the uid that only an API server gives."""
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    return {**manifest, "metadata": {key: value for key, value in metadata.items() if key != "uid"}}


async def is_refused(cluster: RealCluster, manifest: dict[str, Any], reason: str) -> bool:
    """Whether the API server refuses an object and says why."""
    try:
        await cluster.try_out(manifest)
    except ApiStatusError as error:
        return reason in str(error)
    return False
