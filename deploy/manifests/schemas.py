#!/usr/bin/env python3
"""Strict JSON Schemas of the kinds in our manifests, from Kubernetes' own OpenAPI and from definitions of resources.

`schemas.json.gz` beside this file holds them for `validate.py` and for tests, which then need no network. To renew it,
change `SOURCES` and run this file: it takes `go`, which fetches the modules. Unknown fields are refused, as by
`kubectl apply --validate=strict`. What only an API server checks (names, ports named twice, fields that exclude each
other) is not in it.
"""

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema_rs import Draft7Validator

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("schemas.json.gz")
SOURCES = {
    "k8s.io/kubernetes": "v1.34.4",
    "github.com/cert-manager/cert-manager": "v1.21.2",
    "github.com/prometheus-operator/prometheus-operator": "v0.85.0",
}
OPENAPI = "api/openapi-spec/swagger.json"
DEFINITIONS = {
    "github.com/cert-manager/cert-manager": ("deploy/crds", ("certificates", "issuers")),
    "github.com/prometheus-operator/prometheus-operator": (
        "example/prometheus-operator-crd",
        ("prometheusrules", "servicemonitors"),
    ),
}
"""Files of definitions in the modules: their folder, and which resources."""
KINDS = (
    "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
    "apiextensions.k8s.io/v1 CustomResourceDefinition",
    "apps/v1 DaemonSet",
    "apps/v1 Deployment",
    "apps/v1 StatefulSet",
    "autoscaling/v2 HorizontalPodAutoscaler",
    "batch/v1 Job",
    "coordination.k8s.io/v1 Lease",
    "discovery.k8s.io/v1 EndpointSlice",
    "networking.k8s.io/v1 Ingress",
    "networking.k8s.io/v1 IngressClass",
    "networking.k8s.io/v1 NetworkPolicy",
    "policy/v1 PodDisruptionBudget",
    "rbac.authorization.k8s.io/v1 ClusterRole",
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
    "rbac.authorization.k8s.io/v1 Role",
    "rbac.authorization.k8s.io/v1 RoleBinding",
    "v1 ConfigMap",
    "v1 Namespace",
    "v1 Secret",
    "v1 Service",
    "v1 ServiceAccount",
)
"""Of Kubernetes itself; those that are defined by others come besides."""
SHIPPED = ("crds", "deploy/admission", "deploy/manifests", "deploy/tenant", "examples")
"""Folders whose manifests are validated as they are."""
NOT_OBJECTS = ("deploy/manifests/options.yaml", "deploy/manifests/kustomization.yaml", "deploy/manifests/values/")
"""YAML in these folders that is for no API server."""
METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
QUANTITY = {
    "type": ["string", "number"],
    "pattern": "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$",
}
INT_OR_STRING = {"type": ["integer", "string"]}
JSON_VALUES = (
    "JSON",
    "JSONSchemaPropsOrArray",
    "JSONSchemaPropsOrBool",
    "JSONSchemaPropsOrStringArray",
    "RawExtension",
)
"""Definitions without a type, which take any value."""
SAID = {"type", "format", "required", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems"} | {
    *("maxItems", "minProperties", "maxProperties", "uniqueItems", "anyOf", "oneOf", "allOf", "not", "$ref")
}
"""What is kept of a schema as it is; descriptions, defaults and extensions go."""
JsonObject = dict[str, Any]


def strict(schema: JsonObject) -> JsonObject:
    """Return a schema of OpenAPI as JSON Schema that refuses fields which it does not name."""
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
        return dict(INT_OR_STRING)
    found = {key: value for key, value in schema.items() if key in SAID}
    if "(?i)" in str(found.get("pattern")):
        del found["pattern"]  # of Go's regular expressions, which JSON Schema does not know
    if "properties" in schema:
        found["properties"] = {name: strict(one) for name, one in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            found["additionalProperties"] = False
    if isinstance(schema.get("additionalProperties"), dict):
        found["additionalProperties"] = strict(schema["additionalProperties"])
    if "items" in schema:
        found["items"] = strict(schema["items"])
    if schema.get("nullable") and "type" in found:
        found["type"] = [found["type"], "null"]
    return found


def of_kubernetes(openapi: JsonObject) -> JsonObject:
    """Return the definitions that `KINDS` need, and which of them is which kind."""
    every = openapi["definitions"]
    kinds: dict[str, str] = {}
    for name, definition in every.items():
        for one in definition.get("x-kubernetes-group-version-kind", []):
            kind = f"{one['group']}/{one['version']} {one['kind']}".removeprefix("/")
            if kind in KINDS:
                kinds[kind] = name
    definitions: dict[str, JsonObject] = {}
    waiting = [METADATA, *kinds.values()]
    while waiting:
        name = waiting.pop()
        if name not in definitions:
            definitions[name] = _definition(name, every[name])
            waiting += referred(definitions[name])
    for kind, name in kinds.items():
        definitions[name] = _typed(definitions[name], kind)
    if missing := set(KINDS) - set(kinds):
        sys.exit(f"not in the OpenAPI: {', '.join(sorted(missing))}")
    return {"definitions": definitions, "kinds": kinds}


def of_definition(document: JsonObject) -> JsonObject:
    """Return the same of a CustomResourceDefinition, with a kind for each of its versions."""
    spec = document["spec"]
    definitions, kinds = {}, {}
    for version in spec["versions"]:
        kind = f"{spec['group']}/{version['name']} {spec['names']['kind']}"
        schema = strict(version["schema"]["openAPIV3Schema"])
        schema["properties"]["metadata"] = {"$ref": f"#/definitions/{METADATA}"}
        kinds[kind] = kind.replace("/", ".").replace(" ", ".")
        definitions[kinds[kind]] = _typed(schema, kind)
    return {"definitions": definitions, "kinds": kinds}


def _definition(name: str, schema: JsonObject) -> JsonObject:
    if name.endswith(".Quantity"):
        return QUANTITY
    return {} if name.rpartition(".")[2] in JSON_VALUES else strict(schema)


def _typed(schema: JsonObject, kind: str) -> JsonObject:
    """Have an object say what it is, as a list of manifests has to."""
    version, _, name = kind.rpartition(" ")
    properties = schema["properties"] | {"apiVersion": {"const": version}, "kind": {"const": name}}
    required = sorted({*schema.get("required", []), "apiVersion", "kind", "metadata"})
    return schema | {"properties": properties, "required": required}


def referred(schema: Any) -> Iterator[str]:
    """Yield the definitions that a schema refers to."""
    for value in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from referred(value)
    if isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        yield schema["$ref"].removeprefix("#/definitions/")


@cache
def schemas() -> JsonObject:
    """Return all: `kinds`, of "apps/v1 Deployment" to a name, and `definitions`, of names to JSON Schemas.

    The kinds that Headgate reads are of `crds/`, so these are never behind.
    """
    found: JsonObject = json.loads(gzip.decompress(FILE.read_bytes()))
    for path in sorted((ROOT / "crds").glob("*.yaml")):
        _add(found, of_definition(yaml.load(path.read_text(), yaml.CSafeLoader)))
    return found


def _add(found: JsonObject, more: JsonObject) -> None:
    for part in ("definitions", "kinds"):
        found[part].update(more[part])


def schema_of(kind: str) -> JsonObject:
    """Return the JSON Schema of a kind, complete in itself."""
    return {"$ref": f"#/definitions/{schemas()['kinds'][kind]}", "definitions": schemas()["definitions"]}


@cache
def _validator(kind: str) -> Draft7Validator:
    return Draft7Validator(schema_of(kind))


def problems(document: JsonObject) -> list[str]:
    """Say what is wrong with an object: each time where and what."""
    kind = f"{document.get('apiVersion')} {document.get('kind')}"
    if kind not in schemas()["kinds"]:
        return [f"no schema for {kind}: add it to KINDS in deploy/manifests/schemas.py"]
    errors = _validator(kind).iter_errors(document)
    return [f"{'.'.join(map(str, one.instance_path))}: {one.message}" for one in errors]


def shipped() -> list[Path]:
    """Return the files with manifests for an API server."""
    files = sorted(path for folder in SHIPPED for path in (ROOT / folder).rglob("*.yaml"))
    return [path for path in files if not str(path.relative_to(ROOT)).startswith(NOT_OBJECTS)]


def module(path: str) -> Path:
    """Return the folder of a Go module, which `go` fetches."""
    command = ["go", "mod", "download", "-json", f"{path}@{SOURCES[path]}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - of SOURCES
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return Path(json.loads(done.stdout)["Dir"])


def main() -> None:
    """Write the file anew."""
    found = {"sources": SOURCES} | of_kubernetes(json.loads((module("k8s.io/kubernetes") / OPENAPI).read_text()))
    for path, (folder, resources) in DEFINITIONS.items():
        for resource in resources:
            (source,) = (module(path) / folder).glob(f"*_{resource}.yaml")
            _add(found, of_definition(yaml.load(source.read_text(), yaml.CSafeLoader)))
    text = json.dumps(found, sort_keys=True, separators=(",", ":"))
    FILE.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{FILE.name}: {len(found['kinds'])} kinds, {len(text)} bytes, {FILE.stat().st_size} compressed")


if __name__ == "__main__":
    main()
