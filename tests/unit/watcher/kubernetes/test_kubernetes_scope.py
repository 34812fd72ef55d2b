"""What of a cluster may be read, and what is wanted of it: rights, namespaces and labels."""

import asyncio
from pathlib import Path

import pytest

from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.following import CUSTOM_KINDS, follow_kinds, settled
from fakes.kubernetes.objects import ingress, secret, service
from fakes.virtual_time import in_virtual_time
from headgate.common.deltas import SyncState
from headgate.common.resources import (
    DEFINITION,
    INGRESS,
    INGRESS_CLASS,
    NAMESPACE,
    POD,
    SECRET,
    SERVICE,
    SERVICE_EXPORT,
    SERVICE_IMPORT,
)
from headgate.watcher.sources import Applied, Deleted
from headgate.watcher.sources.kubernetes.source import KubernetesScope

# Rights


@in_virtual_time
async def test_a_forbidden_kind_is_reported_and_does_not_hold_back_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with FakeKubernetes() as api:
        api.apply(ingress("a"))
        api.forbid("secrets")
        async with follow_kinds(api, tmp_path) as seen:
            await seen.until(lambda: settled(seen))
            assert seen.names(INGRESS) == {"a"}
            assert seen.unavailable[SECRET].state is SyncState.FORBIDDEN
            assert 'cannot list resource "secrets"' in seen.unavailable[SECRET].message
            assert "give the right with a Role or ClusterRole" in caplog.text
            await asyncio.sleep(1800)
            assert len([event for event in seen.log if event.kind == SECRET]) == 1
            assert 5 <= len(api.seen("list", "secrets")) <= 20
            api.allow("secrets")
            api.apply(secret("mine"))
            await seen.until(lambda: seen.names(SECRET) == {"mine"}, within_s=301)
            assert SECRET not in seen.unavailable


@in_virtual_time
async def test_discovery_that_is_forbidden_is_done_without(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(ingress("a"))
        api.faults.status(403, verb="discover", times=None)
        async with follow_kinds(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(INGRESS) == {"a"})


# Scope


@in_virtual_time
async def test_namespaces_are_read_each_by_itself_and_reported_as_one(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        for namespace in ("one", "two", "three"):
            api.apply(ingress("a", namespace=namespace))
        for plural in ("ingresses", "services", "secrets", "endpointslices", "namespaces", "ingressclasses"):
            api.forbid(plural, "")  # Roles give no right at the cluster scope
        async with follow_kinds(api, tmp_path, KubernetesScope(("one", "two"))) as seen:
            await seen.until(lambda: settled(seen))
            assert [len(listed.objects) for listed in seen.listed(INGRESS)] == [2]
            assert set(seen.state[INGRESS]) == {("one", "a"), ("two", "a")}
            others = (SERVICE_EXPORT, SERVICE_IMPORT, DEFINITION, *CUSTOM_KINDS)
            assert seen.unavailable.keys() == {NAMESPACE, INGRESS_CLASS, *others}
            api.apply(ingress("b", namespace="two"))
            api.apply(ingress("b", namespace="three"))
            await seen.until(lambda: ("two", "b") in seen.state[INGRESS])
            api.delete("ingresses", "a", "one")
            await seen.until(lambda: set(seen.state[INGRESS]) == {("two", "a"), ("two", "b")})


@in_virtual_time
async def test_without_cluster_scoped_kinds_nothing_outside_of_the_namespaces_is_asked_for(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(ingress("a", namespace="one"))
        scope = KubernetesScope(("one", "two"), reads_pods=True, reads_cluster_scoped=False)
        async with follow_kinds(api, tmp_path, scope) as seen:
            await seen.until(lambda: {SERVICE, POD} <= {event.kind for event in seen.log})
            await seen.until(lambda: seen.names(INGRESS) == {"a"})
            await asyncio.sleep(1800)
            asked = [request for request in api.requests if request.verb not in ("discover", "probe")]
            assert {request.namespace for request in asked} == {"one", "two"}
            assert not {INGRESS_CLASS, NAMESPACE} & {*seen.source.kinds, *(event.kind for event in seen.log)}


@in_virtual_time
async def test_a_new_list_of_one_namespace_keeps_the_others(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(service("a", namespace="one"))
        api.apply(service("b", namespace="two"))
        async with follow_kinds(api, tmp_path, KubernetesScope(("one", "two"))) as seen:
            await seen.until(lambda: settled(seen))
            await seen.until(lambda: api.open_watches >= 8)
            api.faults.status(410, verb="watch", resource="services", namespace="two")
            api.break_watches("end", "services")
            await seen.until(lambda: len(seen.listed(SERVICE)) == 2)
            assert seen.names(SERVICE) == {"a", "b"}


@in_virtual_time
async def test_a_forbidden_namespace_does_not_hold_back_the_others_nor_lose_its_objects(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(ingress("a", namespace="one"))
        api.apply(ingress("b", namespace="two"))
        api.forbid("ingresses", "two")
        async with follow_kinds(api, tmp_path, KubernetesScope(("one", "two"))) as seen:
            await seen.until(lambda: seen.names(INGRESS) == {"a"} and INGRESS in seen.unavailable)
            assert seen.listed(INGRESS) == []  # a list would say that all of "two" is gone
            assert "namespaces two: " in seen.unavailable[INGRESS].message
            api.apply(ingress("c", namespace="one"))
            await seen.until(lambda: seen.names(INGRESS) == {"a", "c"})
            api.allow("ingresses")
            await seen.until(lambda: seen.names(INGRESS) == {"a", "b", "c"}, within_s=301)
            assert len(seen.listed(INGRESS)) == 1


@in_virtual_time
async def test_beside_a_forbidden_namespace_a_new_list_is_told_as_changes(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        for name in ("kept", "gone"):
            api.apply(ingress(name, namespace="one"))
        api.forbid("ingresses", "two")
        async with follow_kinds(api, tmp_path, KubernetesScope(("one", "two"))) as seen:
            await seen.until(lambda: seen.names(INGRESS) == {"kept", "gone"} and api.open_watches >= 7)
            api.faults.status(503, verb="watch", resource="ingresses", namespace="one")
            api.break_watches("reset", "ingresses")
            await asyncio.sleep(0)
            api.delete("ingresses", "gone", "one")
            api.apply(ingress("new", namespace="one"))
            await seen.until(lambda: seen.names(INGRESS) == {"kept", "new"})
            told = [(type(event), event.object["metadata"]["name"]) for event in seen.log[-2:]]  # type: ignore[union-attr]
            assert told == [(Applied, "new"), (Deleted, "gone")]


@in_virtual_time
async def test_a_label_selector_narrows_ingresses_only(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(ingress("mine", labels={"team": "a"}))
        api.apply(ingress("theirs", labels={"team": "b"}))
        api.apply(service("web"))
        async with follow_kinds(api, tmp_path, KubernetesScope(ingress_selector="team=a")) as seen:
            await seen.until(lambda: settled(seen))
            assert (seen.names(INGRESS), seen.names(SERVICE)) == ({"mine"}, {"web"})
            api.apply(ingress("mine", labels={"team": "b"}))
            await seen.until(lambda: seen.names(INGRESS) == set())
            assert isinstance(seen.log[-1], Deleted)
