"""A tenant's watcher with nothing but the Role in `deploy/tenant/`: what it asks for, and what it writes."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from fakes.kubernetes.api import ApiFault, FakeKubernetes, Resource
from fakes.kubernetes.objects import ingress, service
from fakes.kubernetes.rights import RoleHolder
from fakes.service_process import running_service
from fakes.stores.nats import real_bus
from fakes.waiting import until
from headgate.common.resources import (
    APISIX_KINDS,
    GATEWAY_KINDS,
    OLDER_TRAEFIK_KINDS,
    PLUGIN,
    SERVICE_IMPORT,
    TRAEFIK_KINDS,
    ObjectRef,
    ResourceKind,
    StatusShape,
)
from headgate.common.sealing import load_or_create_key_pair
from headgate.common.status import (
    AncestorRef,
    ConditionType,
    EventNote,
    LoadBalancerAddress,
    ParentRef,
    PartRef,
    StatusCondition,
    StatusUpdate,
)
from headgate.common.stores.nats import NatsStores

ROLE = Path(__file__).parents[4] / "deploy" / "tenant" / "watcher.yaml"
TENANT, OTHER = "team-a", "team-b"
TOKEN = "of the service account"
NOW = datetime.now(UTC)
TOLD = [kind for kind in GATEWAY_KINDS if kind.status is not StatusShape.NONE]
CUSTOM = [kind for kind in (PLUGIN, *TOLD, *APISIX_KINDS, *TRAEFIK_KINDS, *OLDER_TRAEFIK_KINDS) if kind.namespaced]
"""What a Role can permit."""
LEASE = "headgate-watcher-team-a"
_POLICIES = frozenset(
    kind.kind for kind in CUSTOM if kind.status in (StatusShape.ANCESTORS, StatusShape.GATEWAY_ANCESTORS)
)
_ROUTES = frozenset(kind.kind for kind in CUSTOM if kind.status is StatusShape.PARENTS)


class World(NamedTuple):
    api: FakeKubernetes
    account: RoleHolder
    stores: NatsStores


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A watcher of one of two namespaces with equal objects, working."""
    load_or_create_key_pair(tmp_path)
    account = RoleHolder.of(ROLE, TENANT)
    async with FakeKubernetes() as api, real_bus() as (server, bus):
        api.accounts[TOKEN] = account
        for kind in (PLUGIN, SERVICE_IMPORT, *GATEWAY_KINDS, *APISIX_KINDS, *TRAEFIK_KINDS, *OLDER_TRAEFIK_KINDS):
            resource = Resource(kind.group, kind.resource, kind.kind, kind.namespaced, is_custom=True)
            api.install(f"{kind.group}/{kind.versions[0]}", resource)
        for namespace in (TENANT, OTHER):
            api.apply(ingress("web", namespace=namespace))
            api.apply(service("web", namespace=namespace))
            for kind in CUSTOM:
                api.apply(_custom(kind, namespace))
        stores = await NatsStores.open(bus)
        flags = (
            f"--kubeconfig={api.write_kubeconfig(tmp_path / 'config', user={'token': TOKEN})}",
            *(f"--cluster={TENANT}", f"--namespaces={TENANT}", "--no-watch-cluster-scoped"),
            *(f"--nats-url={server.url}", f"--data-dir={tmp_path}", "--lease-retry-s=0.3"),
        )
        async with running_service("watcher", *flags, log=tmp_path / "log"):
            await until(lambda: _has_lease(api))
            yield World(api, account, stores)


def _custom(kind: ResourceKind, namespace: str) -> dict[str, object]:
    metadata = {"name": "web", "namespace": namespace}
    return {"apiVersion": f"{kind.group}/{kind.versions[0]}", "kind": kind.kind, "metadata": metadata, "spec": {}}


def _has_lease(api: FakeKubernetes) -> bool:
    try:
        return bool(api.get("leases", LEASE, TENANT))
    except ApiFault:
        return False


def _update(api: FakeKubernetes, group: str, version: str, resource: str, kind: str, namespace: str) -> StatusUpdate:
    part: PartRef | None = AncestorRef("", "Service", namespace, "web") if kind in _POLICIES else None
    if kind in _ROUTES:
        part = ParentRef(group, "Gateway", namespace, "web")
    accepted = StatusCondition.of(part, type=ConditionType.ACCEPTED, status="True", reason="Accepted", since=NOW)
    return StatusUpdate(
        ref=ObjectRef(TENANT, group, resource, namespace, "web"),
        api_version=f"{group}/{version}" if group else version,
        kind=kind,
        uid=api.get(resource, "web", namespace, group)["metadata"]["uid"],
        is_accepted=True,
        addresses=(LoadBalancerAddress(ip="192.0.2.7"),) if kind == "Ingress" else None,
        conditions=(accepted,),
        events=(EventNote(type="Normal", reason="Accepted", note="it is served", at=NOW),),
        at=NOW,
    )


KINDS = (
    ("networking.k8s.io", "v1", "ingresses", "Ingress"),
    ("", "v1", "services", "Service"),
    *((kind.group, kind.versions[0], kind.resource, kind.kind) for kind in CUSTOM),
)


async def test_it_asks_for_nothing_outside_of_its_namespace_and_uses_every_right(world: World) -> None:
    api, account = world.api, world.account
    for kind in KINDS:
        await world.stores.statuses.post(_update(api, *kind, TENANT))
    await until(lambda: len(api.events()) == len(KINDS))
    await until(lambda: account.used == account.rights)
    assert account.outside == account.refused == []
    read = {seen.namespace for verb in ("get", "list", "watch") for seen in api.seen(verb)}
    assert read == {TENANT}


async def test_what_it_writes_is_in_its_namespace(world: World) -> None:
    api = world.api
    for kind in KINDS:
        await world.stores.statuses.post(_update(api, *kind, TENANT))
    await until(lambda: len(api.events()) == len(KINDS))
    await until(lambda: all(api.get(resource, "web", TENANT, group).get("status") for group, _, resource, _ in KINDS))
    assert {event["metadata"]["namespace"] for event in api.events()} == {TENANT}
    assert [lease["metadata"]["namespace"] for lease in api.all("leases")] == [TENANT]
    assert not any(api.get(resource, "web", OTHER, group).get("status") for group, _, resource, _ in KINDS)


async def test_a_status_for_another_namespace_is_refused_by_the_cluster(world: World) -> None:
    api, account = world.api, world.account
    await world.stores.statuses.post(_update(api, *KINDS[0], OTHER))
    await until(lambda: bool(account.refused))
    assert {seen.namespace for seen in account.refused} == {OTHER}
    await world.stores.statuses.post(_update(api, *KINDS[0], TENANT))
    await until(lambda: bool(api.get("ingresses", "web", TENANT).get("status")))
    assert not api.get("ingresses", "web", OTHER).get("status")
