"""Fields of an Ingress that no version of it has: almost always a slip, such as `servicename` or `pathtype`.

API servers drop them, some with a warning; manifests on disk are read as they are.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject
from headgate.translator.dialects.ingress.legacy import is_legacy
from headgate.translator.manifests.reading import unknown_field

Shape = Mapping[str, "Shape"]
"""Fields of an object, and of those in it; for a list, of its elements. An empty one says nothing of what is inside."""

_VALUE: Shape = {}
_RESOURCE: Shape = {"apiGroup": _VALUE, "kind": _VALUE, "name": _VALUE}
_SERVICE: Shape = {"name": _VALUE, "port": {"name": _VALUE, "number": _VALUE}}
_TLS: Shape = {"hosts": _VALUE, "secretName": _VALUE}


def _spec(default_backend: str, backend: Shape) -> Shape:
    path = {"path": _VALUE, "pathType": _VALUE, "backend": backend}
    rules = {"host": _VALUE, "http": {"paths": path}}
    return {"ingressClassName": _VALUE, default_backend: backend, "rules": rules, "tls": _TLS}


_SPEC = _spec("defaultBackend", {"service": _SERVICE, "resource": _RESOURCE})
_LEGACY_SPEC = _spec("backend", {"serviceName": _VALUE, "servicePort": _VALUE, "resource": _RESOURCE})


def find_unknown_fields(manifest: JsonObject) -> Iterator[Problem]:
    """Yield the fields of an Ingress' spec that do not exist, each with the one that was probably meant."""
    return _find(manifest.get("spec"), _LEGACY_SPEC if is_legacy(manifest) else _SPEC, "spec")


def _find(value: Any, shape: Shape, at: str) -> Iterator[Problem]:
    if not shape:
        return
    if isinstance(value, list):
        for position, element in enumerate(value):
            yield from _find(element, shape, f"{at}[{position}]")
    elif isinstance(value, dict):
        for name, member in value.items():
            if name in shape:
                yield from _find(member, shape[name], f"{at}.{name}")
            else:
                yield unknown_field(name, member, shape, at)
