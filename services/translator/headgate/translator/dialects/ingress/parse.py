"""Ingress v1 manifests read into values, every mistake noted at its field.

What the API server would refuse is refused here too, because manifests on disk never met one: rules of
kubernetes/kubernetes pkg/apis/networking/validation/validation.go. A mistake costs the rule or path that it is in,
never the object.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject
from headgate.common.table import ANY_HOST, PathType
from headgate.translator.manifests.reading import Place
from headgate.translator.manifests.texts import regex

_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")
_ADDRESS = re.compile(r"[0-9]+(\.[0-9]+){3}")
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_FORBIDDEN = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_ENDS = ("/..", "/.")
PathTypes = Mapping[str, PathType]
MAX_PATH = 4096
"""Ours alone: about what clients and servers accept of a request line."""
IMPLEMENTATION_SPECIFIC = "ImplementationSpecific"
PATH_TYPES = {"Exact": PathType.EXACT, "Prefix": PathType.PREFIX, IMPLEMENTATION_SPECIFIC: PathType.PREFIX}


class ServiceBackend(NamedTuple):
    """A backend that is a port of a Service."""

    service: str
    port: int | str
    field: str


class ResourceBackend(NamedTuple):
    """A backend that is some other object."""

    api_group: str
    kind: str
    name: str
    field: str


Backend = ServiceBackend | ResourceBackend


class PathRule(NamedTuple):
    """One path of a rule."""

    type: PathType
    path: str
    backend: Backend
    field: str


class HostRule(NamedTuple):
    """One rule: a host and its paths."""

    host: str
    """`*` for a rule without a host."""
    paths: tuple[PathRule, ...]
    field: str


class TlsHost(NamedTuple):
    """One name of a TLS entry."""

    name: str
    field: str


class TlsRule(NamedTuple):
    """One TLS entry."""

    hosts: tuple[TlsHost, ...]
    secret: str | None
    field: str
    names_all: bool
    """Whether no hosts were written, so that the certificate's own names count."""


class IngressSpec(NamedTuple):
    """What an Ingress says, as far as it is well said."""

    default_backend: Backend | None
    rules: tuple[HostRule, ...]
    tls: tuple[TlsRule, ...]


def parse_ingress(
    manifest: JsonObject, problems: list[Problem], implementation_specific: PathType = PathType.PREFIX
) -> IngressSpec:
    """Read a v1 Ingress; mistakes go to `problems`.

    Args:
        manifest: in the shape of v1.
        problems: gets what is wrong.
        implementation_specific: what the path type `ImplementationSpecific` means.
    """
    path_types = PATH_TYPES | {IMPLEMENTATION_SPECIFIC: implementation_specific}
    spec = Place(manifest.get("spec"), "spec", problems)
    if not spec.is_object():
        if not spec.is_present:
            spec.refuse("Required", "an Ingress needs a spec with rules or a defaultBackend")
        return IngressSpec(None, (), ())
    if not spec["defaultBackend"].is_present and spec["rules"].value in (None, []):
        spec.refuse("Required", "either rules or a defaultBackend must be given")
    spec["ingressClassName"].text()
    rules = [_parse_rule(rule, path_types) for rule in spec["rules"].items()]
    tls = [_parse_tls(entry) for entry in spec["tls"].items()]
    return IngressSpec(
        _parse_backend(spec["defaultBackend"]) if spec["defaultBackend"].is_present else None,
        tuple(rule for rule in rules if rule is not None),
        tuple(entry for entry in tls if entry is not None),
    )


def _parse_rule(rule: Place, path_types: PathTypes) -> HostRule | None:
    if not rule.is_object():
        return None
    host = rule["host"].text()
    is_host = _is_host(rule["host"], host) if host else host is not None or not rule["host"].is_present
    paths = [_parse_path(path, path_types) for path in _paths(rule["http"])]  # a wrong host hides no mistake in them
    if not is_host:
        return None
    return HostRule(host or ANY_HOST, tuple(path for path in paths if path is not None), rule.field)


def _paths(http: Place) -> list[Place]:
    if not http.is_object():
        return []
    paths = list(http["paths"].items())
    if http["paths"].value in (None, []):
        http["paths"].refuse("Required", "at least one path must be given")
    return paths


def _is_host(place: Place, host: str) -> bool:
    """Check a host as the API server does: a DNS name in lower case, perhaps after `*.`; no address, no port."""
    if _ADDRESS.fullmatch(host) or ":" in host:
        place.refuse("InvalidHost", f"{host!r} must be a DNS name, without address or port")
    elif len(host) > 253 or not _HOST.fullmatch(host):
        message = "must be a DNS name in lower case such as shop.example.com, or a wildcard such as *.example.com"
        place.refuse("InvalidHost", message)
    else:
        return True
    return False


def _parse_path(rule: Place, path_types: PathTypes) -> PathRule | None:
    if not rule.is_object():
        return None
    written_type = rule["pathType"].required_text(f"must be one of {', '.join(PATH_TYPES)}")
    path = _parse_path_value(rule["path"], written_type)
    backend = _parse_backend(rule["backend"])
    if written_type is not None and written_type not in PATH_TYPES:
        rule["pathType"].refuse("InvalidPathType", f"must be one of {', '.join(PATH_TYPES)}")
        return None
    if written_type is None or path is None or backend is None:
        return None
    path_type = path_types[written_type]
    if path_type is PathType.REGEX and not _is_pattern(rule["path"], path):
        return None
    return PathRule(path_type, path, backend, rule.field)


def _is_pattern(place: Place, path: str) -> bool:
    try:
        regex(path)
    except ValueError as error:
        place.refuse("InvalidPath", str(error))
        return False
    return True


def _parse_path_value(place: Place, path_type: str | None) -> str | None:
    path = place.text()
    if path is None and place.is_present:
        return None
    if not path and path_type == "ImplementationSpecific":
        return "/"
    if not path or not path.startswith("/"):
        place.refuse("InvalidPath", f"must start with '/', such as '/{path or ''}'")
        return None
    if len(path) > MAX_PATH:
        place.refuse("InvalidPath", f"must not be longer than {MAX_PATH} characters")
        return None
    if path_type == "ImplementationSpecific":
        return path
    bad = [part for part in _FORBIDDEN if part in path] + [end for end in _FORBIDDEN_ENDS if path.endswith(end)]
    if bad:
        place.refuse("InvalidPath", f"must not contain {bad[0]!r}: such a request path is never matched")
        return None
    return path


def _parse_backend(backend: Place) -> Backend | None:
    if not backend.is_present:
        backend.refuse("Required", "a backend must be given: a service with its port")
    if not backend.is_object():
        return None
    service, resource = backend["service"], backend["resource"]
    if service.is_present and resource.is_present:
        backend.refuse("InvalidBackend", "must have either a service or a resource, not both; remove one")
        return None
    if resource.is_present:
        return _parse_resource(resource)
    if not service.is_present:
        backend.refuse("InvalidBackend", "must have a service with name and port")
        return None
    return _parse_service(service)


def _parse_resource(resource: Place) -> ResourceBackend | None:
    if not resource.is_object():
        return None
    kind = resource["kind"].required_text("the resource's kind must be given")
    name = resource["name"].required_text("the resource's name must be given")
    group = resource["apiGroup"].text()
    return ResourceBackend(group or "", kind, name, resource.field) if kind and name else None


def _parse_service(service: Place) -> ServiceBackend | None:
    if not service.is_object():
        return None
    name = service["name"].required_text("the Service's name must be given")
    port = _parse_port(service["port"])
    return ServiceBackend(name, port, service.field) if name and port is not None else None


def _parse_port(port: Place) -> int | str | None:
    if not port.is_present:
        port.refuse("Required", "the Service's port must be given, by number or by name")
    if not port.is_object():
        return None
    name, number = port["name"], port["number"]
    if name.value == "":
        name = Place(None, name.field, name.problems)
    if number.value == 0:
        number = Place(None, number.field, number.problems)
    if name.is_present and number.is_present:
        port.refuse("InvalidPort", "must have either a number or a name, not both; remove one")
        return None
    if not name.is_present and not number.is_present:
        port.refuse("Required", "must have a number from 1 to 65535 or the name of one of the Service's ports")
        return None
    return _port_name(name) if name.is_present else _port_number(number)


def _port_name(place: Place) -> str | None:
    name = place.text()
    if name is None:
        return None
    if len(name) > 15 or not _PORT_NAME.fullmatch(name):
        remedy = "write it under `number`" if name.isdigit() else "a port's name is at most 15 of a-z, 0-9 and '-'"
        place.refuse("InvalidPort", f"cannot be the name of a port; {remedy}")
        return None
    return name


def _port_number(place: Place) -> int | None:
    if type(place.value) is not int:
        place.refuse_type("a whole number from 1 to 65535")
        return None
    if not 0 < place.value < 65536:
        place.refuse("InvalidPort", "must be a number from 1 to 65535")
        return None
    return int(place.value)


def _parse_tls(entry: Place) -> TlsRule | None:
    if not entry.is_object():
        return None
    hosts = []
    for place in entry["hosts"].items():
        name = place.required_text("a host must not be empty")
        if name and _is_host(place, name):
            hosts.append(TlsHost(name, place.field))
    secret = entry["secretName"].text()
    return TlsRule(tuple(hosts), secret or None, entry.field, names_all=entry["hosts"].value in (None, []))
