"""Ingress v1 manifests read into values, every mistake noted at its field.

What the API server would refuse is refused here too, because manifests on disk never met one: rules of
kubernetes/kubernetes pkg/apis/networking/validation/validation.go. A mistake costs the rule or path that it is in,
never the object.
"""

import re
from collections.abc import Callable, Mapping, Set
from typing import Any, NamedTuple, TypeVar

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
_MAX_PORT_NAME = 15
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_FORBIDDEN = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_ENDS = ("/..", "/.")
PathTypes = Mapping[str, PathType]
MAX_PATH = 4096
"""Ours alone: about what clients and servers accept of a request line."""
IMPLEMENTATION_SPECIFIC = "ImplementationSpecific"
PATH_TYPES = {"Exact": PathType.EXACT, "Prefix": PathType.PREFIX, IMPLEMENTATION_SPECIFIC: PathType.PREFIX}
_PLAIN_FIELDS, _TLS_FIELDS = frozenset({"ingressClassName", "rules", "tls"}), frozenset({"hosts", "secretName"})
_RULE_FIELDS, _HTTP_FIELDS = frozenset({"host", "http"}), frozenset({"paths"})
_PATH_FIELDS, _BACKEND_FIELDS = frozenset({"path", "pathType", "backend"}), frozenset({"service"})
_SERVICE_FIELDS = frozenset({"name", "port"})
_NOTHING: list[Any] = []
_PLAIN_PATH = re.compile(r"(?:/[-A-Za-z0-9_~][-A-Za-z0-9_~.]*)+/?")
"""Paths in which nothing needs to be looked for."""
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
    path_types = PATH_TYPES | {IMPLEMENTATION_SPECIFIC: implementation_specific}
    plain = _read_plainly(written, path_types)
    if plain is not None:
        return plain
    reader = ShapeReader(written, "spec", problems)
    spec = reader.read(models.Spec)
    return _Parser(reader, path_types).spec(spec)._replace(is_clean=reader.is_clean)


def _read_plainly(spec: JsonObject, path_types: PathTypes) -> IngressSpec | None:
    """Return a spec of the usual sort, read in a fifth of the time; None if it has anything else, or a mistake."""
    rules = spec.get("rules")
    tls = spec.get("tls", _NOTHING)
    if not _has_only(spec, _PLAIN_FIELDS) or not rules or type(rules) is not list or type(tls) is not list:
        return None
    if type(spec.get("ingressClassName", "")) is not str:
        return None
    found = []
    for position, rule in enumerate(rules):
        read = _plain_rule(rule, f"spec.rules[{position}]", path_types)
        if read is None:
            return None
        found.append(read)
    secured = []
    for position, entry in enumerate(tls):
        rule_of_tls = _plain_tls(entry, f"spec.tls[{position}]")
        if rule_of_tls is None:
            return None
        secured.append(rule_of_tls)
    return IngressSpec(None, tuple(found), tuple(secured))


def _has_only(value: Any, fields: Set[str]) -> bool:
    return type(value) is dict and value.keys() <= fields


def _plain_rule(rule: Any, field: str, path_types: PathTypes) -> HostRule | None:
    if not _has_only(rule, _RULE_FIELDS) or not _has_only(rule.get("http"), _HTTP_FIELDS):
        return None
    host, paths = rule.get("host", ANY_HOST), rule["http"].get("paths")
    if "host" in rule and (type(host) is not str or not _is_host(host)):
        return None
    if not paths or type(paths) is not list:
        return None
    found = []
    for position, path in enumerate(paths):
        read = _plain_path(path, f"{field}.http.paths[{position}]", path_types)
        if read is None:
            return None
        found.append(read)
    return HostRule(host, tuple(found), field)


def _plain_path(path: Any, field: str, path_types: PathTypes) -> PathRule | None:
    if not _has_only(path, _PATH_FIELDS) or not _has_only(path.get("backend"), _BACKEND_FIELDS):
        return None
    service = path["backend"].get("service")
    port = _plain_port(service.get("port")) if _has_only(service, _SERVICE_FIELDS) else None
    if port is None:
        return None
    value, written_type, name = path.get("path"), path.get("pathType"), service.get("name")
    if type(value) is not str or type(written_type) is not str or type(name) is not str:
        return None
    path_type = path_types.get(written_type)
    if path_type is None or path_type is PathType.REGEX or not name:
        return None
    if value == "/":
        path_type = PathType.PREFIX if path_type is PathType.STRING_PREFIX else path_type
    elif len(value) > MAX_PATH or not _PLAIN_PATH.fullmatch(value):
        return None
    return PathRule(path_type, value, ServiceBackend(name, port, f"{field}.backend.service"), field)


def _plain_port(port: Any) -> int | str | None:
    if type(port) is not dict or len(port) != 1:
        return None
    number, name = port.get("number"), port.get("name")
    if type(number) is int and 0 < number < 65536:
        return number
    return name if type(name) is str and len(name) <= _MAX_PORT_NAME and _PORT_NAME.fullmatch(name) else None


def _plain_tls(entry: Any, field: str) -> TlsRule | None:
    if not _has_only(entry, _TLS_FIELDS):
        return None
    hosts, secret = entry.get("hosts"), entry.get("secretName")
    if type(hosts) is not list or not hosts or type(secret) is not str or not secret:
        return None
    if any(type(host) is not str or not _is_host(host) for host in hosts):
        return None
    named = tuple(TlsHost(host, f"{field}.hosts[{position}]") for position, host in enumerate(hosts))
    return TlsRule(named, secret, field, names_all=False)


def _is_host(host: str) -> bool:
    """Whether a host is a DNS name in lower case, perhaps after `*.`, and no address."""
    return len(host) <= 253 and _HOST.fullmatch(host) is not None and not _ADDRESS.fullmatch(host)


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
        if len(name) > _MAX_PORT_NAME or not _PORT_NAME.fullmatch(name):
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
