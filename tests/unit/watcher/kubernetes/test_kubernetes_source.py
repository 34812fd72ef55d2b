"""All kinds of a cluster: which are read, in which version, and what becomes of those that come and go."""

import asyncio
from pathlib import Path
from random import Random

from fakes.kubernetes.api import FakeKubernetes, Resource
from fakes.kubernetes.following import CUSTOM_KINDS, Following, follow_kinds, settled
from fakes.kubernetes.objects import config_map, endpoint_slice, ingress, secret, service
from fakes.virtual_time import in_virtual_time
from headgate.common.deltas import SyncState
from headgate.common.resources import (
    APISIX_KINDS,
    APISIX_ROUTE,
    CONFIG_MAP,
    DEFINITION,
    ENDPOINT_SLICE,
    ENDPOINTS,
    INGRESS,
    LEGACY_INGRESS,
    NAMESPACE,
    POD,
    SECRET,
    SERVICE,
    SERVICE_EXPORT,
    SERVICE_IMPORT,
    ResourceKind,
)
from headgate.watcher.sources import Listed
from headgate.watcher.sources.kubernetes.source import KubernetesScope, KubernetesSource, SecretScope


@in_virtual_time
async def test_each_kind_is_reported_on_and_a_second_name_of_one_is_empty(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(ingress("a"))
        api.apply(service("web"))
        api.apply(endpoint_slice("web-1", "10.0.0.1"))
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
        async with follow_kinds(api, tmp_path) as seen:
            await seen.until(lambda: settled(seen))
            assert (seen.names(INGRESS), seen.names(SERVICE)) == ({"a"}, {"web"})
            assert (seen.names(ENDPOINT_SLICE), seen.names(NAMESPACE)) == ({"web-1"}, {"default"})
            assert [list(event.objects) for event in seen.listed(LEGACY_INGRESS)] == [[]]
            assert seen.unavailable.keys() == {
                DEFINITION,
                SERVICE_EXPORT,
                SERVICE_IMPORT,
                *CUSTOM_KINDS,
            }  # a server without their CRDs
        assert api.seen("list", "endpoints") == []


@in_virtual_time
async def test_only_tls_secrets_leave_the_server(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(secret("mine"))
        api.apply(secret("helm", "helm.sh/release.v1"))
        async with follow_kinds(api, tmp_path) as seen:
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
        async with follow_kinds(api, tmp_path, KubernetesScope(secrets=SecretScope.ALL)) as seen:
            await seen.until(lambda: settled(seen))
            assert seen.names(SECRET) == {"opaque"}


@in_virtual_time
async def test_pods_are_read_only_where_that_is_asked_for(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        async with follow_kinds(api, tmp_path) as seen:
            await seen.until(lambda: settled(seen))
        assert api.seen(resource="pods") == []
        async with follow_kinds(api, tmp_path, KubernetesScope(reads_pods=True)) as seen:
            await seen.until(lambda: settled(seen) and seen.listed(POD))


@in_virtual_time
async def test_config_maps_are_read_by_their_names_only(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        for name, namespace in (("options", "a"), ("tcp", "a"), ("tcp", "b"), ("other", "a")):
            api.apply(config_map(name, namespace))
        scope = KubernetesScope(config_maps=("a/options", "a/tcp", "b/options"))
        async with follow_kinds(api, tmp_path, scope) as seen:
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
        async with follow_kinds(api, tmp_path, scope) as seen:
            await seen.until(lambda: settled(seen))
            assert api.seen(resource="configmaps") == []


@in_virtual_time
async def test_of_definitions_the_one_that_is_wanted_is_read_by_its_name(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.install("apiextensions.k8s.io/v1", Resource(DEFINITION.group, DEFINITION.resource, DEFINITION.kind, False))
        kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        for name in (*DEFINITION.names, "httproutes.gateway.networking.k8s.io"):
            api.apply({**kind, "metadata": {"name": name}})
        async with follow_kinds(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(DEFINITION) == set(DEFINITION.names))
            api.delete(DEFINITION.resource, DEFINITION.names[0], namespace="")
            await seen.until(lambda: not seen.names(DEFINITION))
            selected = {request.query.get("fieldSelector") for request in api.seen(resource=DEFINITION.resource)}
            assert selected == {f"metadata.name={name}" for name in DEFINITION.names}


@in_virtual_time
async def test_resources_of_apisix_are_read_once_their_definitions_are_there(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        for kind in APISIX_KINDS:
            resource = Resource(kind.group, kind.resource, kind.kind, is_custom=True)
            api.install("apisix.apache.org/v2", resource)
        api.apply({"apiVersion": "apisix.apache.org/v2", "kind": "ApisixRoute", "metadata": {"name": "a"}, "spec": {}})
        async with follow_kinds(api, tmp_path) as seen:
            await seen.until(lambda: settled(seen))
            assert seen.names(APISIX_ROUTE) == {"a"}
            api.delete("apisixroutes", "a")
            await seen.until(lambda: not seen.names(APISIX_ROUTE))


@in_virtual_time
async def test_discovery_asks_for_each_group_version_once(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, follow_kinds(api, tmp_path) as seen:
        await seen.until(lambda: settled(seen))
        paths = [one.path for one in api.seen("discover")]
        assert sorted(paths) == [
            "/api/v1",
            "/apis/apiextensions.k8s.io/v1",
            "/apis/apisix.apache.org/v1",
            "/apis/apisix.apache.org/v1alpha1",
            "/apis/apisix.apache.org/v2",
            "/apis/apisix.apache.org/v2alpha1",
            "/apis/apisix.apache.org/v2beta1",
            "/apis/apisix.apache.org/v2beta2",
            "/apis/apisix.apache.org/v2beta3",
            "/apis/discovery.k8s.io/v1",
            "/apis/gateway.networking.k8s.io/v1",
            "/apis/gateway.networking.k8s.io/v1alpha2",
            "/apis/gateway.networking.k8s.io/v1alpha3",
            "/apis/gateway.networking.k8s.io/v1beta1",
            "/apis/gateway.networking.x-k8s.io/v1alpha1",
            "/apis/headgate.dev/v1",
            "/apis/multicluster.x-k8s.io/v1alpha1",
            "/apis/multicluster.x-k8s.io/v1beta1",
            "/apis/networking.k8s.io/v1",
            "/apis/traefik.containo.us/v1alpha1",
            "/apis/traefik.io/v1alpha1",
        ]


@in_virtual_time
async def test_an_old_server_is_read_in_the_version_that_it_has(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.uninstall("networking.k8s.io/v1")
        api.install("networking.k8s.io/v1beta1", Resource("networking.k8s.io", "ingresses", "Ingress"))
        api.apply({**ingress("a"), "apiVersion": "networking.k8s.io/v1beta1"})
        async with follow_kinds(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(INGRESS) == {"a"})
            assert seen.state[INGRESS]["default", "a"]["apiVersion"] == "networking.k8s.io/v1beta1"


@in_virtual_time
async def test_what_is_absent_is_read_under_its_older_name_until_it_appears(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.uninstall("networking.k8s.io/v1")
        api.install("extensions/v1beta1", Resource("extensions", "ingresses", "Ingress"))
        api.apply({**ingress("old"), "apiVersion": "extensions/v1beta1"})
        async with follow_kinds(api, tmp_path) as seen:
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
        async with follow_kinds(api, tmp_path) as seen:
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
