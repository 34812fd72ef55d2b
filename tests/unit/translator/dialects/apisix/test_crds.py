"""The custom resource definitions: as the models have them, as API servers take them, and kind to older manifests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from fakes.translator.apisix import BACKEND, one_backend, resource, route, rule
from headgate.translator.crds import main
from headgate.translator.dialects.apisix.definitions import DEFINITIONS
from headgate.translator.objects.definitions import make_definition

FOLDER = Path(__file__).parents[5] / "crds"
MADE = {kind.kind: make_definition(kind, one) for kind, one in DEFINITIONS.items()}


def schemas(kind: str) -> dict[str, Any]:
    return {one["name"]: one["schema"]["openAPIV3Schema"] for one in MADE[kind]["spec"]["versions"]}


def parts(schema: Any) -> Iterator[Any]:
    yield schema
    for one in schema.get("properties", {}).values():
        yield from parts(one)
    if "items" in schema:
        yield from parts(schema["items"])


def test_the_files_are_as_the_models_have_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(FOLDER), "--check"]) == 0
    assert capsys.readouterr().out == ""


def test_a_file_that_is_not_as_the_models_have_it_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 0
    (tmp_path / "apisix.apache.org_apisixtlses.yaml").write_text("other")
    capsys.readouterr()
    assert main([str(tmp_path), "--check"]) == 1
    assert "apisixtlses.yaml: not as the models have it; run make crds" in capsys.readouterr().out


@pytest.mark.parametrize("kind", MADE)
def test_schemas_are_structural(kind: str) -> None:
    """https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema"""
    for schema in schemas(kind).values():
        for part in parts(schema):
            assert part.keys() & {"type", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"}, part
            assert "$ref" not in part
            assert not ("properties" in part and "additionalProperties" in part), part
            if "x-kubernetes-int-or-string" not in part:
                assert "anyOf" not in part
            if part.get("type") == "object" and "properties" not in part:
                assert "additionalProperties" in part or part.get("x-kubernetes-preserve-unknown-fields")


@pytest.mark.parametrize("kind", MADE)
def test_one_version_is_stored_and_every_field_is_described(kind: str) -> None:
    versions = MADE[kind]["spec"]["versions"]
    assert [one["name"] for one in versions if one["storage"]] == [versions[0]["name"]]
    assert all(one["subresources"] == {"status": {}} for one in versions)
    spec = schemas(kind)[versions[0]["name"]]["properties"]["spec"]
    assert [name for name, one in spec["properties"].items() if not one.get("description")] == []


def test_the_versions_are_those_that_were_ever_published_for_a_kind() -> None:
    served = {kind: [one["name"] for one in made["spec"]["versions"]] for kind, made in MADE.items()}
    assert served == {
        "ApisixRoute": ["v2", "v2beta3", "v2beta2", "v2beta1", "v2alpha1", "v1"],
        "ApisixUpstream": ["v2", "v2beta3", "v1"],
        "ApisixTls": ["v2", "v2beta3", "v1"],
        "ApisixConsumer": ["v2", "v2beta3", "v2alpha1"],
        "ApisixPluginConfig": ["v2", "v2beta3"],
        "ApisixGlobalRule": ["v2", "v2beta3"],
        "ApisixClusterConfig": ["v2", "v2beta3", "v2alpha1"],
        "GatewayProxy": ["v1alpha1"],
        "Consumer": ["v1alpha1"],
        "PluginConfig": ["v1alpha1"],
        "BackendTrafficPolicy": ["v1alpha1"],
        "HTTPRoutePolicy": ["v1alpha1"],
        "L4RoutePolicy": ["v1alpha1"],
    }


def takes(manifest: Any) -> bool:
    version = manifest["apiVersion"].rpartition("/")[2]
    return bool(jsonschema_rs.is_valid(schemas(manifest["kind"])[version], manifest))


LEGACY = {"rules": [{"host": "a.com", "http": {"paths": [{"path": "/x", "backend": BACKEND}]}}]}


@pytest.mark.parametrize(
    "manifest",
    [
        route(rule(timeout={"read": "5s", "send": 5})),
        route(rule(backends=[{"serviceName": "web", "servicePort": "http"}])),
        route(rule(authentication={"enable": True, "keyauth": {"header": "X"}}), version="v2beta3"),
        route(rule(authentication={"enable": True, "type": "wolfRbac"}), version="v2beta2"),
        resource("ApisixRoute", "a", LEGACY, "v1"),
        resource("ApisixUpstream", "a", {"portLevelSettings": [{"port": 80, "timeout": {"read": "5s"}}]}, "v1"),
        resource(
            "ApisixUpstream", "a", {"healthCheck": {"active": {}, "passive": {"unhealthy": {"timeout": "5s"}}}}, "v1"
        ),
        route(one_backend(), version="v2beta1"),
        resource("ApisixTls", "a", {"hosts": ["*.a.com"], "secret": {"name": "b", "namespace": "c"}}, "v1"),
        resource("ApisixConsumer", "a", {"authParameter": {"keyAuth": {"value": {"key": "x"}}}}),
        resource("ApisixPluginConfig", "a", {"plugins": [{"name": "cors", "config": {"a": [1, {"b": None}]}}]}),
        resource(
            "BackendTrafficPolicy",
            "a",
            {
                "targetRefs": [{"group": "", "kind": "Service", "name": "web", "sectionName": "http"}],
                "loadbalancer": {"type": "chash", "hashOn": "vars", "key": "uri"},
                "timeout": {"read": "60s"},
                "healthCheck": {"active": {"timeout": "1s", "unhealthy": {"interval": "1s", "timeouts": 3}}},
            },
            "v1alpha1",
        ),
        resource(
            "HTTPRoutePolicy",
            "a",
            {
                "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "web"}],
                "priority": 10,
                "vars": [["http_x", "==", "a"], ["OR", ["arg_a", ">", 1], ["arg_b", "in", ["x", "y"]]]],
            },
            "v1alpha1",
        ),
    ],
    ids=lambda manifest: f"{manifest['kind']}-{manifest['apiVersion']}",
)
def test_manifests_as_they_are_published_are_taken(manifest: Any) -> None:
    assert takes(manifest)


@pytest.mark.parametrize(
    "manifest",
    [
        route(rule(match_paths=[])),
        route({"match": {"paths": ["/x"]}}),
        route(rule(match_exprs=[{"subject": {"scope": "Head"}, "op": "Equal"}])),
        resource("ApisixUpstream", "a", {"scheme": "ftp"}),
        resource("ApisixTls", "a", {"hosts": []}),
        resource("ApisixRoute", "a", {"rules": [{"http": {}}]}, "v1"),
        resource("BackendTrafficPolicy", "a", {"targetRefs": []}, "v1alpha1"),
        resource(
            "BackendTrafficPolicy",
            "a",
            {"targetRefs": [{"group": "networking.k8s.io", "kind": "Ingress", "name": "web"}]},
            "v1alpha1",
        ),
        resource("HTTPRoutePolicy", "a", {"targetRefs": [{"kind": "Ingress", "name": "web"}]}, "v1alpha1"),
    ],
)
def test_wrong_manifests_are_refused_by_the_api_server_itself(manifest: Any) -> None:
    assert not takes(manifest)


def test_the_files_hold_one_definition_each() -> None:
    for path in FOLDER.glob("*.yaml"):
        (made,) = yaml.safe_load_all(path.read_text())
        assert made["metadata"]["name"] == f"{made['spec']['names']['plural']}.{made['spec']['group']}"


def test_a_key_of_a_policy_is_for_hashes_only_as_api_servers_check_it() -> None:
    spec = schemas("BackendTrafficPolicy")["v1alpha1"]["properties"]["spec"]
    (rule_of_key,) = spec["properties"]["loadbalancer"]["x-kubernetes-validations"]
    assert rule_of_key["rule"] == "!(has(self.key) && self.type != 'chash')"
