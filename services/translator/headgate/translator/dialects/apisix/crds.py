"""Manifests of the custom resource definitions, made from the models: `make crds`.

All versions of a kind keep what the others have: an API server converts by changing the version alone, and drops fields
that the schema of the version which it is asked for does not know.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from headgate.common.resources import (
    ALL_KINDS,
    APISIX_CLUSTER_CONFIG,
    APISIX_CONSUMER,
    APISIX_GLOBAL_RULE,
    APISIX_PLUGIN_CONFIG,
    APISIX_ROUTE,
    APISIX_TLS,
    APISIX_UPSTREAM,
    BACKEND_TRAFFIC_POLICY,
    GATEWAY_CONSUMER,
    GATEWAY_PROXY,
    HTTP_ROUTE_POLICY,
    L4_ROUTE_POLICY,
    ROUTE_PLUGIN_CONFIG,
    Kinds,
    ResourceKind,
    StatusShape,
)
from headgate.translator.dialects.apisix.models import (
    BackendTrafficPolicySpec,
    ClusterConfigSpec,
    ConsumerSpec,
    GlobalRuleSpec,
    HttpRoutePolicySpec,
    PluginConfigSpec,
    RouteSpec,
    TlsSpec,
    UpstreamSpec,
)
from headgate.translator.dialects.apisix.models.fields import Model
from headgate.translator.dialects.apisix.models.gateway_consumer import GatewayConsumerSpec
from headgate.translator.dialects.apisix.models.gateway_proxy import GatewayProxySpec
from headgate.translator.dialects.apisix.models.legacy import LegacyRouteSpec
from headgate.translator.dialects.apisix.models.plugin import RoutePluginConfigSpec
from headgate.translator.dialects.apisix.models.policy import MAX_TARGETS, L4RoutePolicySpec

Schema = dict[str, Any]
Column = tuple[str, str]
"""Heading, and where its value is."""

_ACCEPTED: Column = ("Accepted", '.status.conditions[?(@.type=="Accepted")].status')
_ACCEPTED_THERE: Column = ("Accepted", '.status.ancestors[*].conditions[?(@.type=="Accepted")].status')
_KEPT = frozenset(
    {
        "description",
        "enum",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "pattern",
        "properties",
        "required",
        "type",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-validations",
    }
)
_RESPELLED = (frozenset({"keyAuth", "type"}), frozenset({"backends"}), frozenset({"wolfRBAC"}))
"""Fields that mark what older versions spell otherwise: `keyauth`, a single `backend`, `wolfRbac`."""
_PRESERVED = {"x-kubernetes-preserve-unknown-fields": True}
_CONDITION: Schema = {
    "type": "object",
    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
    "properties": {
        "type": {"type": "string", "maxLength": 316},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
        "message": {"type": "string", "maxLength": 32768},
    },
}
_STATUS: Schema = {
    "type": "object",
    "description": "How the object stands.",
    "properties": {
        "conditions": {
            "type": "array",
            "description": "Accepted: served, at least in part. ResolvedRefs: what it refers to is there. Programmed: "
            "all gateways serve it.",
            "items": _CONDITION,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        }
    },
}
_ANCESTORS: Schema = {
    "type": "object",
    "description": "How the policy stands.",
    "required": ["ancestors"],
    "properties": {
        "ancestors": {
            "type": "array",
            "description": "How it stands with respect to each of its targets, in the eyes of each controller.",
            "maxItems": MAX_TARGETS,
            "items": {
                "type": "object",
                "required": ["ancestorRef", "conditions", "controllerName"],
                "properties": {
                    "ancestorRef": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "group": {"type": "string", "default": "gateway.networking.k8s.io", "maxLength": 253},
                            "kind": {"type": "string", "default": "Gateway", "minLength": 1, "maxLength": 63},
                            "namespace": {"type": "string", "minLength": 1, "maxLength": 63},
                            "name": {"type": "string", "minLength": 1, "maxLength": 253},
                            "sectionName": {"type": "string", "minLength": 1, "maxLength": 253},
                            "port": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535},
                        },
                    },
                    "controllerName": {"type": "string", "minLength": 1, "maxLength": 253},
                    "conditions": {
                        "type": "array",
                        "description": "Accepted: it holds there. Programmed: all gateways serve it.",
                        "minItems": 1,
                        "maxItems": 8,
                        "items": _CONDITION,
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["type"],
                    },
                },
            },
        }
    },
}
_TARGETS: tuple[Column, ...] = (("Targets", ".spec.targetRefs[*].name"),)


class Definition(NamedTuple):
    """What the definition of a kind says beside its row."""

    spec: type[Model]
    columns: tuple[Column, ...] = ()


DEFINITIONS: Mapping[ResourceKind, Definition] = {
    APISIX_ROUTE: Definition(
        RouteSpec,
        (
            ("Hosts", ".spec.http[*].match.hosts"),
            ("URIs", ".spec.http[*].match.paths"),
            ("Services", ".spec.http[*].backends[*].serviceName"),
        ),
    ),
    APISIX_UPSTREAM: Definition(UpstreamSpec, (("Scheme", ".spec.scheme"),)),
    APISIX_TLS: Definition(
        TlsSpec,
        (
            ("SNIs", ".spec.hosts"),
            ("Secret", ".spec.secret.name"),
            ("Secret Namespace", ".spec.secret.namespace"),
            ("Client CA", ".spec.client.caSecret.name"),
        ),
    ),
    APISIX_CONSUMER: Definition(ConsumerSpec),
    APISIX_PLUGIN_CONFIG: Definition(PluginConfigSpec, (("Plugins", ".spec.plugins[*].name"),)),
    APISIX_CLUSTER_CONFIG: Definition(ClusterConfigSpec),
    GATEWAY_PROXY: Definition(GatewayProxySpec, (("Plugins", ".spec.plugins[*].name"),)),
    GATEWAY_CONSUMER: Definition(GatewayConsumerSpec, (("Gateway", ".spec.gatewayRef.name"),)),
    ROUTE_PLUGIN_CONFIG: Definition(RoutePluginConfigSpec, (("Plugins", ".spec.plugins[*].name"),)),
    APISIX_GLOBAL_RULE: Definition(GlobalRuleSpec, (("Plugins", ".spec.plugins[*].name"),)),
    BACKEND_TRAFFIC_POLICY: Definition(BackendTrafficPolicySpec, _TARGETS),
    HTTP_ROUTE_POLICY: Definition(HttpRoutePolicySpec, _TARGETS),
    L4_ROUTE_POLICY: Definition(L4RoutePolicySpec, _TARGETS),
}
_STATUSES: Mapping[StatusShape, tuple[Schema, Column]] = {
    StatusShape.CONDITIONS: (_STATUS, _ACCEPTED),
    StatusShape.ANCESTORS: (_ANCESTORS, _ACCEPTED_THERE),
}
"""Schema of the status and the column that shows it, by its shape."""


def make_definition(kind: ResourceKind) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.resource}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.resource,
                "singular": kind.kind.lower(),
                **({"shortNames": [*kind.short_names]} if kind.short_names else {}),
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_make_version(kind, version) for version in kind.versions],
        },
    }


def _make_version(kind: ResourceKind, version: str) -> dict[str, Any]:
    definition, (status, accepted) = DEFINITIONS[kind], _STATUSES[kind.status]
    is_legacy = kind is APISIX_ROUTE and version == "v1"
    spec = make_schema(LegacyRouteSpec if is_legacy else definition.spec) | _PRESERVED
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": status}}
    columns = (("Hosts", ".spec.rules[*].host"),) if is_legacy else definition.columns
    return {
        "name": version,
        "served": True,
        "storage": version == kind.versions[0],
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            *({"name": name, "type": "string", "jsonPath": path} for name, path in (*columns, accepted)),
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    }


def make_schema(model: type[Model]) -> Schema:
    """Return a model as a structural schema, in which nothing is referred to."""
    whole = model.model_json_schema(by_alias=True)
    return _structural(whole, whole.get("$defs", {}))


def _structural(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    if "$ref" in schema:
        referred = definitions[schema["$ref"].rpartition("/")[2]]
        schema = {**referred, **{name: value for name, value in schema.items() if name != "$ref"}}
    if "anyOf" in schema and "x-kubernetes-int-or-string" not in schema:
        (only,) = (one for one in schema["anyOf"] if one != {"type": "null"})
        return _structural({**only, **{name: value for name, value in schema.items() if name != "anyOf"}}, definitions)
    made = {name: value for name, value in schema.items() if name in _KEPT} or dict[str, Any](_PRESERVED)
    if "const" in schema:
        made["enum"] = [schema["const"]]
    if "x-kubernetes-int-or-string" in made:
        made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if "properties" in made:
        made["properties"] = {name: _structural(one, definitions) for name, one in made["properties"].items()}
        if any(names <= made["properties"].keys() for names in _RESPELLED):
            made |= _PRESERVED
    elif made.get("type") == "object":
        members = schema.get("additionalProperties")
        made |= {"additionalProperties": members} if isinstance(members, dict) and members else _PRESERVED
    if "items" in made:
        made["items"] = _structural(made["items"], definitions)
    return made


class _PlainDumper(yaml.SafeDumper):
    """Writes everything out, however often it occurs."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def make_files(kinds: Kinds = ALL_KINDS) -> Iterator[tuple[str, str]]:
    """Yield the names of the files and what is in them, of the kinds whose row says that they have a definition."""
    for kind in kinds:
        if kind.has_definition:
            text = yaml.dump(make_definition(kind), Dumper=_PlainDumper, sort_keys=False, width=120)
            yield f"{kind.group}_{kind.resource}.yaml", text


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the manifests into a folder, or say which of them are not as the models have them."""
    parser = argparse.ArgumentParser(prog="crds", description="Write the custom resource definitions.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is not as it should be")
    options = parser.parse_args(arguments)
    stale = []
    for name, text in make_files():
        path = options.folder / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(path)
        if not options.check:
            path.write_text(text)
    for path in stale:
        print(f"{path}: {'not as the models have it; run make crds' if options.check else 'written'}")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
