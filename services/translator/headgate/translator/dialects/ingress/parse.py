"""Ingress v1 manifests read into values, every mistake noted at its field.

What the API server would refuse is refused here too, because manifests on disk never met one: rules of
kubernetes/kubernetes pkg/apis/networking/validation/validation.go. A mistake costs the rule or path that it is in,
never the object.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject
from headgate.common.table import ANY_HOST, PathType
from headgate.translator.dialects.ingress import models
from headgate.translator.manifests.shapes import ShapeReader
from headgate.translator.manifests.specs import refuse, wrong_type
from headgate.translator.manifests.texts import regex

_LABEL = "(?!-)[-a-z0-9]{1,63}(?<!-)"
_HOST = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
_ADDRESS = re.compile(r"[0-9]+(\.[0-9]+){3}")
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_FORBIDDEN = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_ENDS = ("/..", "/.")
PathTypes = Mapping[str, PathType]
MAX_PATH = 4096
"""Ours alone: about what clients and servers accept of a request line."""
IMPLEMENTATION_SPECIFIC = "ImplementationSpecific"
PATH_TYPES = {"Exact": PathType.EXACT, "Prefix": PathType.PREFIX, IMPLEMENTATION_SPECIFIC: PathType.PREFIX}
_ONE_OF_TYPES = f"must be one of {', '.join(PATH_TYPES)}"


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

    default_backend: Backend | None = None
    rules: tuple[HostRule, ...] = ()
    tls: tuple[TlsRule, ...] = ()
    is_clean: bool = True
    """Whether each field is one that an Ingress has, and of the right type."""


T = TypeVar("T")
P = TypeVar("P")


def parse_ingress(
    manifest: JsonObject, problems: list[Problem], implementation_specific: PathType = PathType.PREFIX
) -> IngressSpec:
    """Read a v1 Ingress; mistakes go to `problems`.

    Args:
        manifest: in the shape of v1.
        problems: gets what is wrong.
        implementation_specific: what the path type `ImplementationSpecific` means.
    """
    written = manifest.get("spec")
    if written is None:
        problems.append(refuse("Required", "spec", "an Ingress needs a spec with rules or a defaultBackend"))
        return IngressSpec()
    if not isinstance(written, dict):
        problems.append(wrong_type("spec", written, "an object"))
        return IngressSpec()
    reader = ShapeReader(written, "spec", problems)
    spec = reader.read(models.Spec)
    parser = _Parser(reader, PATH_TYPES | {IMPLEMENTATION_SPECIFIC: implementation_specific})
    return parser.spec(spec)._replace(is_clean=reader.is_clean)


class _Parser:
    """Checks the parts of one Ingress; what cannot be used is noted and None."""

    def __init__(self, reader: ShapeReader, path_types: PathTypes) -> None:
        self._path_types = path_types
        self._refuse = reader.refuse
        self._is_wrong = reader.is_wrong
        self._refuse_wrong = reader.refuse_wrong

    def spec(self, spec: models.Spec) -> IngressSpec:
        """Return what can be used of a spec."""
        has_default = spec.default_backend is not None or self._is_wrong("spec.defaultBackend")
        if not has_default and not spec.rules and not self._is_wrong("spec.rules"):
            self._refuse("Required", "spec", "either rules or a defaultBackend must be given")
        if spec.ingress_class_name is None:
            self._refuse_wrong("spec.ingressClassName", "a string")
        rules = self._each(spec.rules, "spec.rules", self._rule)
        tls = self._each(spec.tls, "spec.tls", self._tls)
        backend = self._backend(spec.default_backend, "spec.defaultBackend") if has_default else None
        return IngressSpec(backend, rules, tls)

    def _each(
        self, values: tuple[T | None, ...] | None, field: str, parse: Callable[[T, str], P | None]
    ) -> tuple[P, ...]:
        """Return the objects of a list that can be used."""
        if values is None:
            self._refuse_wrong(field, "a list")
            return ()
        found = []
        for position, value in enumerate(values):
            at = f"{field}[{position}]"
            if value is None:
                if not self._refuse_wrong(at, "an object"):
                    self._refuse("Required", at, "must be an object, but is null")
            elif (part := parse(value, at)) is not None:
                found.append(part)
        return tuple(found)

    def _rule(self, rule: models.Rule, field: str) -> HostRule | None:
        at = f"{field}.host"
        is_host = self._is_host(rule.host, at) if rule.host else not self._refuse_wrong(at, "a string")
        paths = self._paths(rule.http, f"{field}.http")  # a wrong host hides no mistake in them
        return HostRule(rule.host or ANY_HOST, paths, field) if is_host else None

    def _paths(self, http: models.Http | None, field: str) -> tuple[PathRule, ...]:
        if http is None:
            self._refuse_wrong(field, "an object")
            return ()
        at = f"{field}.paths"
        if not http.paths and not self._is_wrong(at):
            self._refuse("Required", at, "at least one path must be given")
        return self._each(http.paths, at, self._path)

    def _is_host(self, host: str, field: str) -> bool:
        """Check a host as the API server does: a DNS name in lower case, perhaps after `*.`; no address, no port."""
        if _ADDRESS.fullmatch(host) or ":" in host:
            self._refuse("InvalidHost", field, f"{host!r} must be a DNS name, without address or port")
        elif len(host) > 253 or not _HOST.fullmatch(host):
            message = "must be a DNS name in lower case such as shop.example.com, or a wildcard such as *.example.com"
            self._refuse("InvalidHost", field, message)
        else:
            return True
        return False

    def _text(self, value: str | None, field: str, remedy: str) -> str | None:
        """Return text that must be there; `remedy` says what to write where it is absent or empty."""
        if not value and not self._refuse_wrong(field, "a string"):
            self._refuse("Required", field, remedy)
        return value or None

    def _path(self, rule: models.Path, field: str) -> PathRule | None:
        written_type = self._text(rule.path_type, f"{field}.pathType", _ONE_OF_TYPES)
        path = self._path_value(rule.path, f"{field}.path", written_type)
        backend = self._backend(rule.backend, f"{field}.backend")
        if written_type is not None and written_type not in PATH_TYPES:
            self._refuse("InvalidPathType", f"{field}.pathType", _ONE_OF_TYPES)
            return None
        if written_type is None or path is None or backend is None:
            return None
        path_type = self._path_types[written_type]
        if path_type is PathType.REGEX and not self._is_pattern(path, f"{field}.path"):
            return None
        if path == "/" and path_type is PathType.STRING_PREFIX:
            path_type = PathType.PREFIX  # they take the same
        return PathRule(path_type, path, backend, field)

    def _is_pattern(self, path: str, field: str) -> bool:
        try:
            regex(path)
        except ValueError as error:
            self._refuse("InvalidPath", field, str(error))
            return False
        return True

    def _path_value(self, path: str | None, field: str, path_type: str | None) -> str | None:
        if path is None and self._refuse_wrong(field, "a string"):
            return None
        if not path and path_type == IMPLEMENTATION_SPECIFIC:
            return "/"
        if not path or not path.startswith("/"):
            self._refuse("InvalidPath", field, f"must start with '/', such as '/{path or ''}'")
            return None
        if len(path) > MAX_PATH:
            self._refuse("InvalidPath", field, f"must not be longer than {MAX_PATH} characters")
            return None
        if path_type == IMPLEMENTATION_SPECIFIC:
            return path
        bad = [part for part in _FORBIDDEN if part in path] + [end for end in _FORBIDDEN_ENDS if path.endswith(end)]
        if bad:
            self._refuse("InvalidPath", field, f"must not contain {bad[0]!r}: such a request path is never matched")
            return None
        return path

    def _backend(self, backend: models.Backend | None, field: str) -> Backend | None:
        if backend is None:
            if not self._refuse_wrong(field, "an object"):
                self._refuse("Required", field, "a backend must be given: a service with its port")
            return None
        service, resource = f"{field}.service", f"{field}.resource"
        has_service = backend.service is not None or self._is_wrong(service)
        has_resource = backend.resource is not None or self._is_wrong(resource)
        if has_service and has_resource:
            self._refuse("InvalidBackend", field, "must have either a service or a resource, not both; remove one")
            return None
        if has_resource:
            return self._resource(backend.resource, resource)
        if not has_service:
            self._refuse("InvalidBackend", field, "must have a service with name and port")
            return None
        return self._service(backend.service, service)

    def _resource(self, resource: models.Resource | None, field: str) -> ResourceBackend | None:
        if resource is None:
            self._refuse_wrong(field, "an object")
            return None
        kind = self._text(resource.kind, f"{field}.kind", "the resource's kind must be given")
        name = self._text(resource.name, f"{field}.name", "the resource's name must be given")
        if resource.api_group is None:
            self._refuse_wrong(f"{field}.apiGroup", "a string")
        return ResourceBackend(resource.api_group or "", kind, name, field) if kind and name else None

    def _service(self, service: models.Service | None, field: str) -> ServiceBackend | None:
        if service is None:
            self._refuse_wrong(field, "an object")
            return None
        name = self._text(service.name, f"{field}.name", "the Service's name must be given")
        port = self._port(service.port, f"{field}.port")
        return ServiceBackend(name, port, field) if name and port is not None else None

    def _port(self, port: models.Port | None, field: str) -> int | str | None:
        if port is None:
            if not self._refuse_wrong(field, "an object"):
                self._refuse("Required", field, "the Service's port must be given, by number or by name")
            return None
        has_name = bool(port.name) or self._is_wrong(f"{field}.name")
        has_number = bool(port.number) or self._is_wrong(f"{field}.number")
        if has_name and has_number:
            self._refuse("InvalidPort", field, "must have either a number or a name, not both; remove one")
            return None
        if has_name:
            return self._port_name(port.name, f"{field}.name")
        if has_number:
            return self._port_number(port.number, f"{field}.number")
        message = "must have a number from 1 to 65535 or the name of one of the Service's ports"
        self._refuse("Required", field, message)
        return None

    def _port_name(self, name: str | None, field: str) -> str | None:
        if name is None:
            self._refuse_wrong(field, "a string")
            return None
        if len(name) > 15 or not _PORT_NAME.fullmatch(name):
            remedy = "write it under `number`" if name.isdigit() else "a port's name is at most 15 of a-z, 0-9 and '-'"
            self._refuse("InvalidPort", field, f"cannot be the name of a port; {remedy}")
            return None
        return name

    def _port_number(self, number: int | None, field: str) -> int | None:
        if number is None:
            self._refuse_wrong(field, "a whole number from 1 to 65535")
            return None
        if not 0 < number < 65536:
            self._refuse("InvalidPort", field, "must be a number from 1 to 65535")
            return None
        return number

    def _tls(self, entry: models.Tls, field: str) -> TlsRule:
        at = f"{field}.hosts"
        names_all = not entry.hosts and not self._refuse_wrong(at, "a list")
        hosts = []
        for position, host in enumerate(entry.hosts or ()):
            there = f"{at}[{position}]"
            name = self._text(host, there, "a host must not be empty")
            if name and self._is_host(name, there):
                hosts.append(TlsHost(name, there))
        if entry.secret_name is None:
            self._refuse_wrong(f"{field}.secretName", "a string")
        return TlsRule(tuple(hosts), entry.secret_name or None, field, names_all)
