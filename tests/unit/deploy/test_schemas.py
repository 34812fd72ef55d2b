"""Every manifest that is shipped is as Kubernetes' schemas have it; `make validate` does the same for all options."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy.manifests.schemas import KINDS, ROOT, SOURCES, problems, schemas, shipped

JsonObject = dict[str, Any]


def objects(path: Path) -> list[JsonObject]:
    return [one for one in yaml.load_all(path.read_text(), yaml.CSafeLoader) if one]


@pytest.mark.parametrize("path", [str(path.relative_to(ROOT)) for path in shipped()])
def test_every_shipped_manifest_is_valid(path: str) -> None:
    found = objects(ROOT / path)
    assert found
    for one in found:
        assert problems(one) == [], f"{one['kind']} {one['metadata']['name']}"


def test_the_schemas_are_of_the_sources_and_kinds_that_are_listed() -> None:
    assert schemas()["sources"] == SOURCES
    assert set(KINDS) <= set(schemas()["kinds"])


DEPLOYMENT: JsonObject = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "resources": {"requests": {"cpu": 1, "memory": "1Gi"}}}]},
        },
    },
}
MONITOR: JsonObject = {
    "apiVersion": "monitoring.coreos.com/v1",
    "kind": "ServiceMonitor",
    "metadata": {"name": "web"},
    "spec": {"selector": {}, "endpoints": [{"port": "admin", "interval": "15s"}]},
}
ROUTE: JsonObject = {
    "apiVersion": "apisix.apache.org/v2",
    "kind": "ApisixRoute",
    "metadata": {"name": "web"},
    "spec": {"http": [{"name": "all", "match": {"paths": ["/*"]}}]},
}


def pod(one: JsonObject) -> JsonObject:
    found: JsonObject = one["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("valid", [DEPLOYMENT, MONITOR, ROUTE], ids=lambda one: str(one["kind"]))
def test_what_is_valid_has_no_problem(valid: JsonObject) -> None:
    assert problems(valid) == []


@pytest.mark.parametrize(
    ("valid", "spoil", "where"),
    [
        (DEPLOYMENT, lambda one: one.update(spce={}), ": "),
        (DEPLOYMENT, lambda one: one["metadata"].update(label={}), "metadata: "),
        (DEPLOYMENT, lambda one: one["spec"].update(replicas="2"), "spec.replicas: "),
        (DEPLOYMENT, lambda one: one["spec"].pop("selector"), "spec: "),
        (DEPLOYMENT, lambda one: one["spec"]["strategy"].update(rollingUpdate=[]), "spec.strategy.rollingUpdate: "),
        (DEPLOYMENT, lambda one: pod(one).update(hostname=None), "spec.template.spec.hostname: "),
        (
            DEPLOYMENT,
            lambda one: pod(one)["containers"][0].update(ports=[{}]),
            "spec.template.spec.containers.0.ports.0: ",
        ),
        (
            DEPLOYMENT,
            lambda one: pod(one)["containers"][0]["resources"]["requests"].update(memory="1GB"),
            "spec.template",
        ),
        (DEPLOYMENT, lambda one: one["metadata"]["labels"].update(app=1), "metadata.labels.app: "),
        (DEPLOYMENT, lambda one: one.update(apiVersion="apps/v2"), "no schema for apps/v2 Deployment"),
        (MONITOR, lambda one: one["spec"]["endpoints"][0].update(ports="admin"), "spec.endpoints.0: "),
        (MONITOR, lambda one: one["spec"]["endpoints"][0].update(interval="soon"), "spec.endpoints.0.interval: "),
        (ROUTE, lambda one: one["spec"]["http"][0].update(match=[]), "spec.http.0.match: "),
    ],
)
def test_what_is_spelt_or_typed_wrongly_is_found(
    valid: JsonObject, spoil: Callable[[JsonObject], object], where: str
) -> None:
    broken = deepcopy(valid)
    spoil(broken)
    (problem,) = problems(broken)
    assert problem.startswith(where)
