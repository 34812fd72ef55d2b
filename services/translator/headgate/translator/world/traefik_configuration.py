"""Traefik's static configuration, each part with the setting that says the same here.

It is a file in YAML or TOML, the arguments and variables of a workload, or values of its chart. All become parts by
their names in lower case, with dots: `entrypoints.web.address`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from headgate.common.resources import JsonObject
from headgate.translator.manifests.reading import as_list, as_object, as_text
from headgate.translator.manifests.verdicts import Verdict
from headgate.translator.world.entry_point_settings import EntryPointSettings, read_entry_points
from headgate.translator.world.resolver_settings import DIRECTORIES

_POINTS: Final = "entrypoints."
_RESOLVERS: Final = "certificatesresolvers."
_CHALLENGES: Final = {"httpchallenge": "http-01", "tlschallenge": "tls-alpn-01", "dnschallenge": "dns-01"}
_RESOLVER_NOTES: Final = {
    "acme.storage": "certificates are kept in the log",
    "acme.httpchallenge.entrypoint": "every gateway answers on its own port for plain HTTP",
    "acme.dnschallenge.provider": "providers are a command of yours that sets and removes TXT records (docs/acme.md)",
    "acme.eab.hmacencoded": "eab_key_file names a file that holds the key",
    "acme.keytype": "keys are of P-256",
    "acme.cacertificates": "ca_file names one file with all of them",
    "tailscale": "certificates come by ACME alone",
}
_OWN: Final = {"web": "http", "websecure": "https"}
_STANDARD: Final = {"80": "http", "443": "https"}
_INTERNAL: Final = "traefik"
_SECTIONS: Final = frozenset(("entryPoints", "providers", "certificatesResolvers", "api"))
_CRD, _INGRESS = "providers.kubernetescrd", "providers.kubernetesingress"
_SETTINGS: Final = {
    f"{_CRD}.allowcrossnamespace": "traefik_allow_cross_namespace",
    f"{_CRD}.crossprovidernamespaces": "traefik_cross_provider_namespaces",
    f"{_CRD}.allowexternalnameservices": "traefik_allow_external_name_services",
    f"{_CRD}.allowemptyservices": "traefik_allow_empty_services",
    f"{_CRD}.nativelbbydefault": "traefik_native_lb_by_default",
    f"{_CRD}.namespaces": "traefik_namespaces",
    f"{_CRD}.labelselector": "traefik_label_selector",
    f"{_CRD}.ingressclass": "traefik_ingress_class",
    f"{_INGRESS}.allowexternalnameservices": "traefik_allow_external_name_services",
    f"{_INGRESS}.allowemptyservices": "",
    f"{_INGRESS}.nativelbbydefault": "traefik_native_lb_by_default",
    f"{_INGRESS}.namespaces": "namespaces",
    f"{_INGRESS}.ingressclass": "class_names",
    f"{_INGRESS}.crossprovidernamespaces": "traefik_cross_provider_namespaces",
    f"{_INGRESS}.strictprefixmatching": "traefik_strict_prefix_matching",
    f"{_INGRESS}.defaultrulesyntax": "traefik_default_rule_syntax",
    "core.defaultrulesyntax": "traefik_default_rule_syntax",
}
"""Settings of the translator; empty: nothing is needed."""
_NOTES: Final = {
    f"{_INGRESS}.labelselector": "Ingresses are not chosen by labels",
    f"{_INGRESS}.ingressendpoint": "addresses of the status: HEADGATE_PUBLISH_ADDRESSES for the translator",
    _CRD: "its kinds are read",
    _INGRESS: "Ingresses are served: HEADGATE_CONTROLLER_NAMES=traefik.io/ingress-controller for the translator adopts "
    "its classes",
    "providers.kubernetesgateway": "Gateway API is not served",
    "providers": "objects of this provider are not read: make them resources of the cluster",
    "api": "gateways have an admin site",
    "ping": "gateways answer /readyz and /healthz at their admin site",
    "metrics": "gateways have /metrics at their admin site",
    "accesslog": "HEADGATE_ACCESS_LOG and HEADGATE_ACCESS_LOG_FORMAT for the gateways",
    "log": "HEADGATE_LOG_LEVEL and HEADGATE_LOG_FORMAT",
    "tracing": "HEADGATE_OTLP_ENDPOINT for the gateways",
    "serverstransport": "servers' certificates are checked, and connections are kept as gateways' settings say",
    "experimental": "plugins of Traefik are not run",
}


class StaticPart(NamedTuple):
    """A part of the configuration, and what becomes of it."""

    name: str
    field: str
    verdict: Verdict
    note: str


class _Part(NamedTuple):
    name: str
    value: Any
    field: str


def is_static_configuration(document: Any) -> bool:
    """Tell whether a document is Traefik's static configuration, or values of its chart."""
    if not isinstance(document, Mapping) or "kind" in document:
        return False
    has_ports = any("exposedPort" in as_object(port) for port in as_object(document.get("ports")).values())
    return not _SECTIONS.isdisjoint(document) or has_ports or "additionalArguments" in document


def of_document(document: JsonObject) -> Iterator[StaticPart]:
    """Say what becomes of a file, or of values of the chart."""
    if "ports" in document or "additionalArguments" in document:
        arguments = list(map(as_text, as_list(document.get("additionalArguments"))))
        parts = [*_flattened(_of_values(document)), *_of_arguments(arguments, "additionalArguments")]
    else:
        parts = list(_flattened(document))
    yield from _judged(parts)


def of_workload(manifest: JsonObject) -> Iterator[StaticPart]:
    """Say what becomes of the arguments and variables of a workload of Traefik; nothing for others."""
    pod = as_object(as_object(as_object(manifest.get("spec")).get("template")).get("spec"))
    for position, container in enumerate(map(as_object, as_list(pod.get("containers")))):
        words = [*map(as_text, as_list(container.get("command"))), *map(as_text, as_list(container.get("args")))]
        image = as_text(container.get("image")).rpartition("/")[2].partition(":")[0].partition("@")[0]
        if image != "traefik" and "traefik" not in {word.rpartition("/")[2] for word in words[:1]}:
            continue
        at = f"spec.template.spec.containers[{position}]"
        arguments = list(map(as_text, as_list(container.get("args"))))
        yield from _judged([*_of_arguments(arguments, f"{at}.args"), *_of_variables(container, f"{at}.env")])


# Where parts are written


def _of_arguments(words: Sequence[str], at: str) -> Iterator[_Part]:
    for position, word in enumerate(words):
        if word.startswith("--"):
            name, has_value, value = word.removeprefix("--").partition("=")
            yield _Part(name.lower(), value if has_value else "true", f"{at}[{position}]")


def _of_variables(container: JsonObject, at: str) -> Iterator[_Part]:
    for position, variable in enumerate(map(as_object, as_list(container.get("env")))):
        name = as_text(variable.get("name"))
        if name.startswith("TRAEFIK_"):
            dotted = name.removeprefix("TRAEFIK_").lower().replace("_", ".")
            yield _Part(dotted, as_text(variable.get("value")), f"{at}[{position}]")


def _of_values(values: JsonObject) -> JsonObject:
    """Return values of the chart in the form of the file."""
    points: JsonObject = {}
    for name, port in ((name, as_object(port)) for name, port in as_object(values.get("ports")).items()):
        http: JsonObject = {key: port[key] for key in ("redirections", "middlewares", "tls") if key in port}
        http |= as_object(port.get("http"))
        tls = as_object(http.pop("tls", None))
        if tls.pop("enabled", bool(tls)):
            http["tls"] = {key: value for key, value in tls.items() if value}
        said = {key: value for key, value in port.items() if key in _POINT_FIELDS and value}
        protocol = as_text(port.get("protocol")).lower() or "tcp"
        points[name] = {"address": f":{port.get('port')}/{protocol}", **said, **({"http": http} if http else {})}
    kept: JsonObject = {key: values[key] for key in ("providers", "core", "certificatesResolvers") if key in values}
    return {"entryPoints": points, **kept}


_POINT_FIELDS: Final = ("asDefault", "forwardedHeaders", "proxyProtocol", "transport", "http2", "udp", "observability")


def _flattened(document: JsonObject, names: tuple[str, ...] = ()) -> Iterator[_Part]:
    for key, value in document.items():
        path = (*names, str(key))
        if isinstance(value, Mapping) and value:
            yield from _flattened(dict(value), path)
        else:
            yield _Part(".".join(path).lower(), value, ".".join(path))


# What becomes of them


def _judged(parts: Iterable[_Part]) -> Iterator[StaticPart]:
    points: dict[str, JsonObject] = {}
    resolvers: dict[str, JsonObject] = {}
    first: dict[str, str] = {}
    for part in parts:
        if part.name.startswith(_RESOLVERS):
            first.setdefault(_RESOLVERS, part.field)
            yield from _judge_resolver(part, resolvers)
            continue
        if not part.name.startswith(_POINTS):
            yield _judge(part)
            continue
        name, _, rest = part.name.removeprefix(_POINTS).partition(".")
        if name == _INTERNAL:
            yield StaticPart(part.name, part.field, Verdict.IGNORED, "gateways have an admin site of their own")
            continue
        first.setdefault(name, part.field)
        fault = _put(points.setdefault(name, {}), rest, part.value)
        if fault:
            yield StaticPart(part.name, part.field, Verdict.IGNORED, fault)
    if resolvers:
        note = f"HEADGATE_ACME={json.dumps(resolvers, separators=(',', ':'))} for the translator"
        yield StaticPart("certificatesresolvers", first.pop(_RESOLVERS), Verdict.HONOURED, note)
    if points:
        yield _judge_points(points, next(field for name, field in first.items() if name != _RESOLVERS))


def _judge(part: _Part) -> StaticPart:
    if part.name in _SETTINGS:
        setting = _SETTINGS[part.name]
        note = f"HEADGATE_{setting.upper()}={_shown(part.value)} for the translator" if setting else ""
        return StaticPart(part.name, part.field, Verdict.HONOURED, note)
    steps = part.name.split(".")
    known = (".".join(steps[:count]) for count in range(len(steps), 0, -1))
    section = next((name for name in known if name in _NOTES), "")
    is_served = part.name in (_CRD, f"{_CRD}.enabled", _INGRESS, f"{_INGRESS}.enabled")
    note = _NOTES.get(section, "nothing here corresponds to it")
    return StaticPart(part.name, part.field, Verdict.HONOURED if is_served else Verdict.IGNORED, note)


def _judge_resolver(part: _Part, resolvers: dict[str, JsonObject]) -> Iterator[StaticPart]:
    """Put what a part says of a resolver into its settings; yield what has no effect."""
    # Objects name resolvers as files write them; arguments and variables are read in lower case, as Traefik does.
    written = part.field.split(".")
    name = (written if written[0].lower() == "certificatesresolvers" else part.name.split("."))[1]
    path = part.name.removeprefix(_RESOLVERS).partition(".")[2]
    settings = resolvers.setdefault(name, {}) if path.startswith("acme") else {}
    section = path.removeprefix("acme.").partition(".")[0]
    if section in _CHALLENGES and str(part.value).lower() != "false":
        settings["challenge"] = _CHALLENGES[section]
        if section == "dnschallenge":
            settings["dns_command"] = ["COMMAND"]
    if path == "acme.email":
        settings["email"] = str(part.value)
    elif path == "acme.caserver":
        known = {url: name for name, url in DIRECTORIES.items()}
        settings["directory"] = known.get(str(part.value), str(part.value))
    elif path == "acme.eab.kid":
        settings["eab_key_id"] = str(part.value)
        settings.setdefault("eab_key_file", "FILE")
    elif path not in ("acme", "acme.httpchallenge", "acme.tlschallenge", "acme.dnschallenge"):
        note = _RESOLVER_NOTES.get(path, _RESOLVER_NOTES.get(section, "it has no effect here"))
        yield StaticPart(part.name, part.field, Verdict.IGNORED, note)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_shown, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _put(point: JsonObject, path: str, value: Any) -> str:
    """Put a field into an entry point by its name in lower case; return why it has no effect, empty if it has one."""
    steps: list[str] = path.split(".")
    way: list[str] = []
    model: type[BaseModel] = EntryPointSettings
    for index, step in enumerate(steps):
        found = next((each for each in _fields(model) if each[0].lower() == step), None)
        if found is None:
            return "there is no such field of entry points here"
        name, field = found
        if (field.description or "").startswith("Without effect"):
            return "it has no effect here"
        inner = _inner(field)
        if inner is None or index == len(steps) - 1:
            for each in way:
                point = point.setdefault(each, {})
            point[name] = _read(field, value, is_group=inner is not None)
            return ""
        way.append(name)
        model = inner
    return ""


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        yield field.alias or name, field


def _inner(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of a field that is a group of fields."""
    candidates = (field.annotation, *getattr(field.annotation, "__args__", ()))
    return next((each for each in candidates if isinstance(each, type) and issubclass(each, BaseModel)), None)


def _read(field: FieldInfo, value: Any, *, is_group: bool) -> Any:
    if is_group:
        return {}  # `http.tls=true` and `http.tls: {}` say that it is there
    if "tuple" in str(field.annotation) and isinstance(value, str):
        return [each.strip() for each in value.split(",") if each.strip()]
    return value


def _judge_points(points: Mapping[str, JsonObject], field: str) -> StaticPart:
    """Say all entry points by one setting."""
    said: dict[str, JsonObject] = {}
    for name, point in points.items():
        address = str(point.pop("address", ""))
        number = address.partition("/")[0].removeprefix(":")
        if name not in _OWN:
            point = {"address": _STANDARD.get(number, address), **point}
        if point:
            said[name] = point
    try:
        read_entry_points({name: EntryPointSettings.model_validate(point) for name, point in said.items()})
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        at = ".".join(map(str, found["loc"]))
        return StaticPart("entrypoints", field, Verdict.REFUSED, f"{at}: {found['msg'].removeprefix('Value error, ')}")
    except ValueError as error:
        return StaticPart("entrypoints", field, Verdict.REFUSED, str(error))
    if not said:
        return StaticPart("entrypoints", field, Verdict.HONOURED, "web and websecure are the gateways' own ports")
    if all(point.keys() == {"address"} for point in said.values()):
        written = ",".join(f"{name}={str(point['address']).removeprefix(':')}" for name, point in said.items())
    else:
        written = json.dumps(said, separators=(",", ":"))
    note = f"HEADGATE_ENTRYPOINTS={written} for the translator"
    return StaticPart("entrypoints", field, Verdict.HONOURED, note)
