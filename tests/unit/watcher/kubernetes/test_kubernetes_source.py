"""All kinds of a cluster together: what a server has, what may be read, which namespaces, and random histories."""

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fakes.kubernetes.api import FakeKubernetes, Resource
from fakes.kubernetes.following import Following
from fakes.kubernetes.objects import config_map, endpoint_slice, ingress, secret, service
from fakes.virtual_time import in_virtual_time
from headgate.common.deltas import SyncState
from headgate.common.resources import (
    APISIX_KINDS,
    APISIX_ROUTE,
    CONFIG_MAP,
    ENDPOINT_SLICE,
    ENDPOINTS,
    GATEWAY_KINDS,
    INGRESS,
    INGRESS_CLASS,
    LEGACY_INGRESS,
    NAMESPACE,
    POD,
    SECRET,
    SERVICE,
    SERVICE_EXPORT,
    ResourceKind,
)
from headgate.watcher.sources import Applied, Deleted, Listed, Unavailable
from headgate.watcher.sources.kubernetes.source import QUEUE, KubernetesScope, KubernetesSource


def follow(api: FakeKubernetes, tmp_path: Path, scope: KubernetesScope | None = None, seed: int = 7) -> Following:
    config = api.write_kubeconfig(tmp_path / "config")
    return Following(KubernetesSource(scope or KubernetesScope(), config, rng=Random(seed)))


def settled(seen: Following, *kinds: ResourceKind) -> bool:
    """Whether each kind was listed or found unavailable."""
    common = (INGRESS, INGRESS_CLASS, SERVICE, ENDPOINT_SLICE, ENDPOINTS, NAMESPACE, SECRET, LEGACY_INGRESS)
    wanted = kinds or (*common, SERVICE_EXPORT, *GATEWAY_KINDS, *APISIX_KINDS)
    return set(wanted) <= {event.kind for event in seen.log if isinstance(event, Listed | Unavailable)}


# Kinds


@in_virtual_time
async def test_each_kind_is_reported_on_and_a_second_name_of_one_is_empty(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(ingress("a"))
        api.apply(service("web"))
        api.apply(endpoint_slice("web-1", "10.0.0.1"))
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: settled(seen))
            assert (seen.names(INGRESS), seen.names(SERVICE)) == ({"a"}, {"web"})
            assert (seen.names(ENDPOINT_SLICE), seen.names(NAMESPACE)) == ({"web-1"}, {"default"})
            assert [list(event.objects) for event in seen.listed(LEGACY_INGRESS)] == [[]]
            assert seen.unavailable.keys() == {
                SERVICE_EXPORT,
                *GATEWAY_KINDS,
                *APISIX_KINDS,
            }  # a server without their CRDs
        assert api.seen("list", "endpoints") == []


@in_virtual_time
async def test_only_tls_secrets_leave_the_server(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(secret("mine"))
        api.apply(secret("helm", "helm.sh/release.v1"))
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: settled(seen))
            assert seen.names(SECRET) == {"mine"}
            api.apply(secret("late"))
            api.apply(secret("opaque", "Opaque"))
            await seen.until(lambda: seen.names(SECRET) == {"mine", "late"})
        asked = [one for one in api.seen(resource="secrets") if one.verb in ("list", "watch")]
        assert {one.query["fieldSelector"] for one in asked} == {"type=kubernetes.io/tls"}


@in_virtual_time
async def test_other_secrets_that_people_write_are_read_where_that_is_asked_for(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(secret("opaque", "Opaque"))
        api.apply(secret("helm", "helm.sh/release.v1"))
        async with follow(api, tmp_path, KubernetesScope(reads_all_secrets=True)) as seen:
            await seen.until(lambda: settled(seen))
            assert seen.names(SECRET) == {"opaque"}


@in_virtual_time
async def test_pods_are_read_only_where_that_is_asked_for(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: settled(seen))
        assert api.seen(resource="pods") == []
        async with follow(api, tmp_path, KubernetesScope(reads_pods=True)) as seen:
            await seen.until(lambda: settled(seen) and seen.listed(POD))


@in_virtual_time
async def test_config_maps_are_read_by_their_names_only(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        for name, namespace in (("options", "a"), ("tcp", "a"), ("tcp", "b"), ("other", "a")):
            api.apply(config_map(name, namespace))
        scope = KubernetesScope(config_maps=("a/options", "a/tcp", "b/options"))
        async with follow(api, tmp_path, scope) as seen:
            await seen.until(lambda: seen.names(CONFIG_MAP) == {"options", "tcp"})
            api.apply(config_map("other", "b"))
            api.delete("configmaps", "tcp", namespace="a")
            await seen.until(lambda: seen.names(CONFIG_MAP) == {"options"})
            selected = {request.query.get("fieldSelector") for request in api.seen(resource="configmaps")}
            assert selected == {"metadata.name=options", "metadata.name=tcp"}


@in_virtual_time
async def test_a_watcher_of_namespaces_asks_for_no_config_map_of_others(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        scope = KubernetesScope(("one",), config_maps=("a/options",))
        async with follow(api, tmp_path, scope) as seen:
            await seen.until(lambda: settled(seen))
            assert api.seen(resource="configmaps") == []


@in_virtual_time
async def test_resources_of_apisix_are_read_once_their_definitions_are_there(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        for kind in APISIX_KINDS:
            resource = Resource(kind.group, kind.resource, kind.kind, is_custom=True)
            api.install("apisix.apache.org/v2", resource)
        api.apply({"apiVersion": "apisix.apache.org/v2", "kind": "ApisixRoute", "metadata": {"name": "a"}, "spec": {}})
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: settled(seen))
            assert seen.names(APISIX_ROUTE) == {"a"}
            api.delete("apisixroutes", "a")
            await seen.until(lambda: not seen.names(APISIX_ROUTE))


@in_virtual_time
async def test_discovery_asks_for_each_group_version_once(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, follow(api, tmp_path) as seen:
        await seen.until(lambda: settled(seen))
        paths = [one.path for one in api.seen("discover")]
        assert sorted(paths) == [
            "/api/v1",
            "/apis/apisix.apache.org/v1",
            "/apis/apisix.apache.org/v1alpha1",
            "/apis/apisix.apache.org/v2",
            "/apis/apisix.apache.org/v2alpha1",
            "/apis/apisix.apache.org/v2beta1",
            "/apis/apisix.apache.org/v2beta2",
            "/apis/apisix.apache.org/v2beta3",
            "/apis/discovery.k8s.io/v1",
            "/apis/gateway.networking.k8s.io/v1",
            "/apis/gateway.networking.k8s.io/v1beta1",
            "/apis/multicluster.x-k8s.io/v1alpha1",
            "/apis/multicluster.x-k8s.io/v1beta1",
            "/apis/networking.k8s.io/v1",
        ]


@in_virtual_time
async def test_an_old_server_is_read_in_the_version_that_it_has(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.uninstall("networking.k8s.io/v1")
        api.install("networking.k8s.io/v1beta1", Resource("networking.k8s.io", "ingresses", "Ingress"))
        api.apply({**ingress("a"), "apiVersion": "networking.k8s.io/v1beta1"})
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(INGRESS) == {"a"})
            assert seen.state[INGRESS]["default", "a"]["apiVersion"] == "networking.k8s.io/v1beta1"


@in_virtual_time
async def test_what_is_absent_is_read_under_its_older_name_until_it_appears(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.uninstall("networking.k8s.io/v1")
        api.install("extensions/v1beta1", Resource("extensions", "ingresses", "Ingress"))
        api.apply({**ingress("old"), "apiVersion": "extensions/v1beta1"})
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(LEGACY_INGRESS) == {"old"})
            assert seen.unavailable[INGRESS].state is SyncState.ABSENT
            api.install("networking.k8s.io/v1", Resource("networking.k8s.io", "ingresses", "Ingress"))
            api.apply(ingress("new"))
            await seen.until(lambda: seen.names(INGRESS) == {"new"}, within_s=301)
            await seen.until(lambda: seen.names(LEGACY_INGRESS) == set())
            order = [event.kind for event in seen.log if isinstance(event, Listed) and event.kind.kind == "Ingress"]
            assert order == [LEGACY_INGRESS, INGRESS, LEGACY_INGRESS]


@in_virtual_time
async def test_endpoints_are_read_where_there_are_no_slices(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.uninstall("discovery.k8s.io/v1")
        api.apply({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "web"}, "subsets": []})
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: settled(seen))
            assert seen.names(ENDPOINTS) == {"web"}
            assert seen.unavailable[ENDPOINT_SLICE].state is SyncState.ABSENT


@in_virtual_time
async def test_a_kind_that_appears_later_is_listed_then(tmp_path: Path) -> None:
    widget = ResourceKind("example.com", "widgets", "Widget", ("v1",))
    async with FakeKubernetes() as api:
        source = KubernetesSource(
            kubeconfig=api.write_kubeconfig(tmp_path / "config"), choices=[(widget,), (SERVICE,)], rng=Random(1)
        )
        async with Following(source) as seen:
            await seen.until(lambda: settled(seen, widget, SERVICE))
            assert seen.unavailable[widget].state is SyncState.ABSENT
            await asyncio.sleep(3600)
            assert len([event for event in seen.log if event.kind == widget]) == 1
            assert 10 <= len([one for one in api.seen("discover") if "example" in one.path]) <= 40
            api.install("example.com/v1", Resource("example.com", "widgets", "Widget", is_custom=True))
            api.apply({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
            await seen.until(lambda: seen.names(widget) == {"w"}, within_s=301)


@in_virtual_time
async def test_a_kind_that_goes_away_is_reported_and_its_return_listed(tmp_path: Path) -> None:
    widget = ResourceKind("example.com", "widgets", "Widget", ("v1",))
    described = Resource("example.com", "widgets", "Widget", is_custom=True)
    async with FakeKubernetes() as api:
        api.install("example.com/v1", described)
        source = KubernetesSource(kubeconfig=api.write_kubeconfig(tmp_path / "config"), choices=[(widget,)])
        async with Following(source) as seen:
            await seen.until(lambda: api.open_watches == 1)
            api.uninstall("example.com/v1")
            api.break_watches("end")
            await seen.until(lambda: widget in seen.unavailable)
            api.install("example.com/v1", described)
            await seen.until(lambda: len(seen.listed(widget)) == 2, within_s=301)


# Rights


@in_virtual_time
async def test_a_forbidden_kind_is_reported_and_does_not_hold_back_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with FakeKubernetes() as api:
        api.apply(ingress("a"))
        api.forbid("secrets")
        async with follow(api, tmp_path) as seen:
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
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(INGRESS) == {"a"})


# Scope


@in_virtual_time
async def test_namespaces_are_read_each_by_itself_and_reported_as_one(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        for namespace in ("one", "two", "three"):
            api.apply(ingress("a", namespace=namespace))
        for plural in ("ingresses", "services", "secrets", "endpointslices", "namespaces", "ingressclasses"):
            api.forbid(plural, "")  # Roles give no right at the cluster scope
        async with follow(api, tmp_path, KubernetesScope(("one", "two"))) as seen:
            await seen.until(lambda: settled(seen))
            assert [len(listed.objects) for listed in seen.listed(INGRESS)] == [2]
            assert set(seen.state[INGRESS]) == {("one", "a"), ("two", "a")}
            assert seen.unavailable.keys() == {NAMESPACE, INGRESS_CLASS, SERVICE_EXPORT, *GATEWAY_KINDS, *APISIX_KINDS}
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
        async with follow(api, tmp_path, scope) as seen:
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
        async with follow(api, tmp_path, KubernetesScope(("one", "two"))) as seen:
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
        async with follow(api, tmp_path, KubernetesScope(("one", "two"))) as seen:
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
        async with follow(api, tmp_path, KubernetesScope(("one", "two"))) as seen:
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
        async with follow(api, tmp_path, KubernetesScope(ingress_selector="team=a")) as seen:
            await seen.until(lambda: settled(seen))
            assert (seen.names(INGRESS), seen.names(SERVICE)) == ({"mine"}, {"web"})
            api.apply(ingress("mine", labels={"team": "b"}))
            await seen.until(lambda: seen.names(INGRESS) == set())
            assert isinstance(seen.log[-1], Deleted)


# Everything at once


@pytest.mark.parametrize("seed", range(12))
@in_virtual_time
async def test_after_any_history_with_faults_the_state_is_the_servers(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    namespaces = ("one", "two") if seed % 3 == 0 else ()
    async with FakeKubernetes(streams_lists=seed % 2 == 0) as api:
        api.expires_continue = seed % 4 == 1
        backup = api.backup()
        async with follow(api, tmp_path, KubernetesScope(namespaces), seed) as seen:
            for _ in range(150):
                _change(api, rng)
                if rng.random() < 0.3:
                    _disturb(api, rng)
                if rng.random() < 0.02:
                    await api.stop()  # no restore without an outage
                    api.restore(backup)
                    await asyncio.sleep(35)
                    await api.start()
                if rng.random() < 0.1:
                    await asyncio.sleep(rng.choice((0.01, 1, 40, 200)))
                elif rng.random() < 0.5:
                    await asyncio.sleep(0.01)
            api.faults.clear()
            await seen.until(lambda: _state(seen) == _truth(api), within_s=400)
            await asyncio.sleep(200)
            assert _state(seen) == _truth(api)
            assert len(api.requests) < 6000


def _change(api: FakeKubernetes, rng: Random) -> None:
    name, namespace = rng.choice("abcdef"), rng.choice(("one", "two"))
    match rng.randrange(4):
        case 0:
            api.apply(ingress(name, f"{rng.randrange(1000)}.test", namespace=namespace))
        case 1:
            api.apply(service(name, namespace=namespace, port=rng.randrange(1, 1000)))
        case _:
            plural = rng.choice(("ingresses", "services"))
            found = api.all(plural)
            if found:
                metadata = rng.choice(found)["metadata"]
                api.delete(plural, metadata["name"], metadata["namespace"])


def _disturb(api: FakeKubernetes, rng: Random) -> None:
    what: dict[str, Any] = {"verb": rng.choice(("list", "watch")), "resource": rng.choice(("ingresses", "services"))}
    match rng.randrange(10):
        case 0:
            api.compact()
        case 1:
            api.drop_connections()
        case 2:
            api.faults.status(rng.choice((410, 429, 500, 503)), **what)
        case 3:
            api.faults.body(rng.choice((b"", b"{", b"[]\n")), **what)
        case 4:
            api.faults.reset(rng.choice((None, b"", b'{"type":"ADDED","object":{"met')), **what)
        case 5:
            api.faults.hang(**what)
        case _:
            api.break_watches(rng.choice(("end", "reset", "half", "silence")), what["resource"])


def _state(seen: Following) -> dict[str, Any]:
    return {
        f"{kind}/{namespace}/{name}": item["metadata"]["uid"] + repr(item["spec"])
        for kind in (INGRESS, SERVICE)
        for (namespace, name), item in seen.state.get(kind, {}).items()
    }


def _truth(api: FakeKubernetes) -> dict[str, Any]:
    return {
        f"{kind}/{item['metadata']['namespace']}/{item['metadata']['name']}": item["metadata"]["uid"]
        + repr(item["spec"])
        for kind in (INGRESS, SERVICE)
        for item in api.all(kind.resource)
    }


@in_virtual_time
async def test_a_publisher_that_does_not_take_events_stops_the_reading(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        source = KubernetesSource(kubeconfig=api.write_kubeconfig(tmp_path / "config"), choices=[(SERVICE,)])
        events = source.events()
        assert isinstance(await anext(events), Listed)
        await asyncio.sleep(1)
        for number in range(2000):
            api.apply(service(f"s{number}"))
        await asyncio.sleep(60)
        assert events.ag_frame.f_locals["queue"].qsize() == QUEUE  # type: ignore[attr-defined]
        names = set()
        async for event in events:
            assert isinstance(event, Applied)
            names.add(event.object["metadata"]["name"])
            if len(names) == 2000:
                break
        await events.aclose()  # type: ignore[attr-defined]
        assert len(api.seen("list")) == 1
