"""The definitions in `crds/` as an API server takes them: schemas, CEL rules, versions; installed late."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.facts import OURS, Facts, without_definition
from cluster.serving import CLASS, apply_service, plain, serving
from e2e.test_apisix import (
    test_objects_of_a_cluster_are_served_and_told_how_they_stand as test_objects_of_all_kinds_are_served_and_told,
)
from fakes.kubernetes.real import RealCluster
from fakes.peers.echo import EchoServer
from fakes.translator.apisix import one_backend, resource, route, rule
from headgate.watcher.errors import ApiStatusError

__all__ = ["test_objects_of_all_kinds_are_served_and_told"]
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.usefixtures("definitions")]
EXAMPLES = Path(__file__).parents[2] / "examples"
TARGET = {"group": "", "kind": "Service", "name": "web"}
TAKEN = [
    route(rule(timeout={"read": "5s"})),
    route(rule(authentication={"enable": True, "type": "wolfRbac"}), version="v2beta2"),
    route(one_backend(), version="v2beta1"),
    resource("ApisixPluginConfig", "a", {"plugins": [{"name": "cors", "config": {"a": [1, {"b": None}]}}]}),
    resource(
        "BackendTrafficPolicy",
        "a",
        {"targetRefs": [TARGET], "loadbalancer": {"type": "chash", "key": "uri"}},
        "v1alpha1",
    ),
]
REFUSED = [
    (route(rule(match_paths=[])), "should have at least 1 items"),
    (route(rule("one"), rule("one")), "(?i)duplicate"),
    (resource("ApisixUpstream", "a", {"scheme": "ftp"}), "Unsupported value"),
    (
        resource(
            "BackendTrafficPolicy",
            "a",
            {"targetRefs": [TARGET], "loadbalancer": {"type": "roundrobin", "key": "uri"}},
            "v1alpha1",
        ),
        "key",
    ),
    (
        resource("GatewayProxy", "a", {"provider": {"type": "ControlPlane"}}, "v1alpha1"),
        "controlPlane must be given",
    ),
    (
        resource(
            "Consumer",
            "a",
            {"gatewayRef": {"name": "g"}, "credentials": [{"name": "c", "type": "key-auth"}]},
            "v1alpha1",
        ),
        "needs exactly one of config and secretRef",
    ),
]


@pytest.mark.parametrize("manifest", TAKEN, ids=lambda one: f"{one['kind']}-{one['apiVersion']}")
async def test_what_was_published_is_taken(hands: RealCluster, facts: Facts, manifest: Any) -> None:
    if facts.definitions != OURS:
        pytest.skip("these are for the definitions in crds/; the cluster has others")
    if facts.judges:
        pytest.skip(f"a webhook says more of these objects than their definitions: {', '.join(facts.judges)}")
    await hands.try_out(plain(manifest))


@pytest.mark.parametrize(("manifest", "reason"), REFUSED)
async def test_mistakes_are_refused_by_schema_or_rule(
    hands: RealCluster, definitions: str, manifest: Any, reason: str
) -> None:
    if definitions != OURS:
        pytest.skip("these are for the definitions in crds/; the cluster has others")
    with pytest.raises(ApiStatusError, match=reason):
        await hands.try_out(plain(manifest))


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.yaml")), ids=lambda path: str(path.relative_to(EXAMPLES)))
async def test_examples_are_taken(hands: RealCluster, path: Path) -> None:
    for manifest in filter(None, yaml.safe_load_all(path.read_text())):  # noqa: ASYNC240
        if "endpoints" in manifest:
            for endpoint in manifest["endpoints"]:
                # API servers take no loopback addresses for endpoints.
                endpoint["addresses"] = [
                    hands.address if one.startswith("127.") else one for one in endpoint["addresses"]
                ]
        manifest["metadata"]["namespace"] = "default"
        await hands.try_out(manifest)


@pytest.mark.parametrize("version", ["v2", "v2beta3", "v2beta2", "v2beta1", "v2alpha1", "v1"])
async def test_a_route_of_any_version_is_read_as_it_was_written(hands: RealCluster, version: str) -> None:
    """Stored and read as v2, which must lose nothing of what older versions spell otherwise."""
    spec: Any = {"http": [one_backend() if version in ("v2beta2", "v2beta1", "v2alpha1") else rule()]}
    if version == "v1":
        spec = {"rules": [{"host": "a.com", "http": {"paths": [{"path": "/x", "backend": rule()["backends"][0]}]}}]}
    name = f"route-{version}"
    await hands.apply(plain(resource("ApisixRoute", name, spec, version)))
    assert (await hands.get("apisixroutes", name))["spec"] == spec
    await hands.delete("apisixroutes", name)


async def test_a_definition_that_is_installed_later_is_read_then(
    hands: RealCluster, definitions: str, tmp_path: Path
) -> None:
    if definitions != OURS:
        pytest.skip("definitions that were there before are not taken away")
    async with EchoServer("late", hands.address) as server:
        await apply_service(hands, "late", server)
        async with AsyncExitStack() as resources:
            async with without_definition(hands, "apisixroutes.apisix.apache.org"):
                stack = await resources.enter_async_context(serving(hands, tmp_path))
            backend = {"serviceName": "late", "servicePort": 80}
            late = plain(route(rule(hosts=["late.example"], backends=[backend]), name="late"))
            late["spec"]["ingressClassName"] = hands.scoped(CLASS)
            await hands.apply(late)
            # A kind that is not there is asked for again after half a minute at first, later more rarely.
            await stack.wait_for_answer("late.example", "/", name="late", within_s=240)
