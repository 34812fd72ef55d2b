"""Custom resource definitions from the models of specs.

All versions of a kind keep what the others have: an API server converts by changing the version alone, and drops fields
that the schema of the version which it is asked for does not know.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from headgate.common.resources import ResourceKind, StatusShape
from headgate.translator.manifests.models import MAX_TARGETS, Model

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
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    }
)
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


class Definition(NamedTuple):
    """What the definition of a kind says beside its row."""

    spec: type[Model]
    columns: tuple[Column, ...] = ()
    older: Mapping[str, "Definition"] = {}
    """Versions in which objects are written otherwise."""


_STATUSES: Mapping[StatusShape, tuple[Schema, Column]] = {
    StatusShape.CONDITIONS: (_STATUS, _ACCEPTED),
    StatusShape.ANCESTORS: (_ANCESTORS, _ACCEPTED_THERE),
}
"""Schema of the status and the column that shows it, by its shape."""


def make_definition(kind: ResourceKind, definition: Definition) -> dict[str, Any]:
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
            "versions": [
                _make_version(kind, version, definition.older.get(version, definition)) for version in kind.versions
            ],
        },
    }


def _make_version(kind: ResourceKind, version: str, definition: Definition) -> dict[str, Any]:
    status, accepted = _STATUSES[kind.status]
    spec = make_schema(definition.spec) | _PRESERVED
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": status}}
    return {
        "name": version,
        "served": True,
        "storage": version == kind.versions[0],
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            *({"name": name, "type": "string", "jsonPath": path} for name, path in (*definition.columns, accepted)),
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
    elif made.get("type") == "object":
        members = schema.get("additionalProperties")
        made |= {"additionalProperties": members} if isinstance(members, dict) and members else _PRESERVED
    if "items" in made:
        made["items"] = _structural(made["items"], definitions)
    return made
