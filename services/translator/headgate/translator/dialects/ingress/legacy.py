"""The Ingress before v1 (`networking.k8s.io/v1beta1`, `extensions/v1beta1`), upgraded to the shape of v1.

The API server's own conversion (kubernetes/kubernetes, pkg/apis/networking/v1beta1/conversion.go) is the model, with
one kindness: a servicePort of digits in quotes is a number. Problems are said at the fields as they were written.
"""

from collections.abc import Iterable
from typing import Any

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject

_FIELDS = (
    ("spec.defaultBackend", "spec.backend"),
    (".service.name", ".serviceName"),
    (".service.port.number", ".servicePort"),
    (".service.port.name", ".servicePort"),
    (".service.port", ".servicePort"),
)


def is_legacy(manifest: JsonObject) -> bool:
    """Whether an Ingress is of a version before v1."""
    return str(manifest.get("apiVersion")).endswith("/v1beta1")


def upgrade(manifest: JsonObject) -> JsonObject:
    """Return a v1beta1 object in the shape of v1. What is malformed stays as it is, to be refused there."""
    spec = manifest.get("spec")
    if not isinstance(spec, dict):
        return manifest
    upgraded = {key: value for key, value in spec.items() if key != "backend"}
    upgraded["defaultBackend"] = _upgrade_backend(spec.get("backend"))
    upgraded["rules"] = _map(spec.get("rules"), _upgrade_rule)
    return {**manifest, "spec": upgraded}


def _map(value: Any, upgrade_one: Any) -> Any:
    return [upgrade_one(element) for element in value] if isinstance(value, list) else value


def _upgrade_rule(rule: Any) -> Any:
    if not isinstance(rule, dict) or not isinstance(rule.get("http"), dict):
        return rule
    http = rule["http"]
    return {**rule, "http": {**http, "paths": _map(http.get("paths"), _upgrade_path)}}


def _upgrade_path(path: Any) -> Any:
    if not isinstance(path, dict):
        return path
    defaults = {"pathType": "ImplementationSpecific"} if path.get("pathType") is None else {}
    return {**path, **defaults, "backend": _upgrade_backend(path.get("backend"))}


def _upgrade_backend(backend: Any) -> Any:
    if not isinstance(backend, dict) or not backend.keys() & {"serviceName", "servicePort"}:
        return backend
    others = {key: value for key, value in backend.items() if key not in ("serviceName", "servicePort")}
    return {**others, "service": {"name": backend.get("serviceName"), "port": _upgrade_port(backend)}}


def _upgrade_port(backend: JsonObject) -> Any:
    port = backend.get("servicePort")
    if isinstance(port, str):
        return {"number": int(port)} if port.isascii() and port.isdigit() else {"name": port}
    return None if port is None else {"number": port}


def restore_field(field: str) -> str:
    """Return the path that a field of the v1 shape has in v1beta1."""
    for upgraded, original in _FIELDS:
        field = field.replace(upgraded, original)
    return field


def restore_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Say problems at the fields as they were written."""
    return [problem.model_copy(update={"field": restore_field(problem.field)}) for problem in problems]
