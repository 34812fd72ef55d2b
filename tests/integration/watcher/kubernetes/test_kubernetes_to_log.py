"""The watcher's own process between an API server and NATS: the whole way of a change, and of a status back."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.objects import ingress, service
from fakes.service_process import running_service
from fakes.stores.nats import real_bus
from fakes.waiting import until
from headgate.common.deltas import Delta, Operation, SyncMarker
from headgate.common.resources import ObjectRef
from headgate.common.sealing import load_or_create_key_pair
from headgate.common.status import LoadBalancerAddress, StatusUpdate
from headgate.common.stores import LogReplay
from headgate.common.stores.nats import NatsStores


class Log:
    """What a translator knows after reading the log so far."""

    def __init__(self) -> None:
        self.last: dict[ObjectRef, Delta] = {}
        self.synced: set[str] = set()

    async def follow(self, stores: NatsStores) -> None:
        async for batch in stores.log_reader.follow():
            for message in () if isinstance(batch, LogReplay) else batch:
                if isinstance(message, Delta):
                    self.last[message.ref] = message
                elif isinstance(message, SyncMarker):
                    self.synced.add(message.kind.resource)

    def names(self, resource: str) -> set[str]:
        applied = (ref for ref, delta in self.last.items() if delta.operation is Operation.APPLY)
        return {ref.name for ref in applied if ref.resource == resource}


async def test_a_cluster_reaches_the_log_and_a_status_the_cluster(tmp_path: Path) -> None:
    load_or_create_key_pair(tmp_path / "data")
    async with FakeKubernetes() as api, real_bus() as (server, bus):
        api.apply(ingress("a"))
        config = api.write_kubeconfig(tmp_path / "config")
        stores, log = await NatsStores.open(bus), Log()
        flags = (f"--kubeconfig={config}", "--cluster=east", f"--nats-url={server.url}")
        own = (f"--data-dir={tmp_path / 'data'}",)
        following = asyncio.create_task(log.follow(stores))
        async with running_service("watcher", *flags, *own, log=tmp_path / "log", is_ended_orderly=True):
            await until(lambda: {"ingresses", "services", "endpoints", "secrets"} <= log.synced)
            assert log.names("ingresses") == {"a"}
            api.apply(service("web"))
            await until(lambda: log.names("services") == {"web"})
            api.delete("ingresses", "a")
            await until(lambda: log.names("ingresses") == set())
            made = api.apply(ingress("b"))
            await stores.statuses.post(_served(made["metadata"]["uid"]))
            await until(lambda: "ingress" in api.get("ingresses", "b").get("status", {}).get("loadBalancer", {}))
            api.set_status("ingresses", "b", {"loadBalancer": {}})  # as ingress-nginx does when it is removed
            await until(lambda: "ingress" in api.get("ingresses", "b")["status"]["loadBalancer"])
        following.cancel()
        await asyncio.wait([following])


def _served(uid: str) -> StatusUpdate:
    return StatusUpdate(
        ref=ObjectRef("east", "networking.k8s.io", "ingresses", "default", "b"),
        api_version="networking.k8s.io/v1",
        kind="Ingress",
        uid=uid,
        is_accepted=True,
        addresses=(LoadBalancerAddress(ip="192.0.2.7"),),
        at=datetime.now(UTC),
    )
