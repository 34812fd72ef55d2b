"""The `traefik.ingress.kubernetes.io/*` annotations of Traefik 3 on Ingresses and Services, all in one table.

Traefik reads their names whatever the case of letters, and so are they read here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.common.resources import JsonObject
from headgate.translator.annotations.annotation import Annotation, AnnotationTable
from headgate.translator.annotations.reading import Reading
from headgate.translator.manifests.reading import as_object, metadata

TRAEFIK_PREFIX: Final = "traefik.ingress.kubernetes.io/"
_INDEX: Final = re.compile(r"\.domains\.[0-9]+\.|\.domains\[[0-9]+\]\.")
_LARGEST: Final = 9_223_372_036_854_774_807
_ON_INGRESS, _ON_SERVICE = ("Ingress",), ("Service",)


@dataclass(frozen=True, slots=True)
class TraefikAnnotation(Annotation):
    """One annotation of Traefik."""

    ignored: str = ""
    """Set if it has no effect here, and why."""


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0", "t", "f"):
        raise ValueError("must be true or false")
    return text.lower() in ("true", "1", "t")


def _number(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ValueError("must be a whole number") from None
    if not -_LARGEST - 1_001 <= value <= _LARGEST:
        raise ValueError(f"must be at most {_LARGEST}")
    return value


def _one_of(*values: str) -> Any:
    def read(text: str) -> str:
        if text not in values:
            raise ValueError(f"must be one of {', '.join(values)}")
        return text

    return read


def _text(text: str) -> str:
    return text


def _router(name: str, read: Any, sets: str, value: str, does: str, example: str, **more: Any) -> TraefikAnnotation:
    return TraefikAnnotation(
        name=f"router.{name}",
        read=read,
        sets=f"router.{sets}",
        value=value,
        does=does,
        example=example,
        kinds=_ON_INGRESS,
        **more,
    )


def _service(name: str, read: Any, sets: str, value: str, does: str, example: str, **more: Any) -> TraefikAnnotation:
    return TraefikAnnotation(
        name=f"service.{name}",
        read=read,
        sets=f"service.{sets}",
        value=value,
        does=does,
        example=example,
        kinds=_ON_SERVICE,
        **more,
    )


def _cookie(name: str, read: Any, value: str, does: str, example: str) -> TraefikAnnotation:
    return TraefikAnnotation(
        name=f"service.sticky.cookie.{name}",
        read=read,
        sets=f"cookie.{name}",
        value=value,
        does=does,
        example=example,
        kinds=_ON_SERVICE,
    )


TRAEFIK_ROWS: Final = (
    _router("entrypoints", _names, "entrypoints", "names", "[Entry points](traefik.md#entry-points).", "web,websecure"),
    _router(
        "middlewares",
        _names,
        "middlewares",
        "`NAMESPACE-NAME@kubernetescrd`",
        "Middlewares, in their order, of any namespace. One that is missing closes the routes with 503.",
        "default-auth@kubernetescrd",
        guards=True,
    ),
    _router("priority", _number, "priority", "number", "Instead of the length of the rule.", "10"),
    _router(
        "pathmatcher",
        _text,
        "pathmatcher",
        "`Path`, `PathPrefix`, `PathRegexp`",
        "How paths of type `ImplementationSpecific`, or of none, are compared. Other values: they are not served.",
        "PathRegexp",
    ),
    _router("rulesyntax", _one_of("v2", "v3", "default"), "rulesyntax", "`v2`, `v3`", "Syntax of the rules.", "v2"),
    _router("tls", _boolean, "tls", "boolean", "The routes are for TLS connections alone.", "true"),
    _router(
        "tls.options",
        _text,
        "options",
        "`NAMESPACE-NAME@kubernetescrd`",
        "TLSOption for the hosts. One that is missing lets no client in.",
        "default-modern@kubernetescrd",
        guards=True,
    ),
    _router(
        "tls.certresolver",
        _text,
        "resolver",
        "name",
        "[Resolver](acme.md) of which certificates are ordered: for the domains, else for the hosts of `spec.tls` "
        "or of the rules.",
        "le",
    ),
    _router("tls.domains.n.main", _text, "domain", "name", "First name of an ordered certificate.", "example.com"),
    _router("tls.domains.n.sans", _text, "sans", "names", "Its further names.", "a.com,b.com"),
    _router("observability.accesslogs", _boolean, "access_logs", "boolean", "Lines of the access log.", "false"),
    _router("observability.tracing", _boolean, "tracing", "boolean", "Traces.", "false"),
    _router(
        "observability.metrics",
        _boolean,
        "metrics",
        "boolean",
        "",
        "false",
        ignored="requests of all routes are counted",
    ),
    _router("observability.traceverbosity", _text, "verbosity", "text", "", "minimal", ignored="spans have one form"),
    _service(
        "serversscheme",
        _one_of("http", "https", "h2c"),
        "scheme",
        "`http`, `https`, `h2c`",
        "Spoken with servers.",
        "h2c",
    ),
    _service("passhostheader", _boolean, "pass_host", "boolean", "Whether servers get the client's `Host`.", "false"),
    _service("nativelb", _boolean, "native_lb", "boolean", "Requests go to the Service's own address.", "true"),
    _service("nodeportlb", _boolean, "node_port", "boolean", "", "true", ignored="requests go to the endpoints"),
    _service(
        "middlewares",
        _names,
        "middlewares",
        "`NAMESPACE-NAME@kubernetescrd`",
        "Middlewares for requests to it, behind those of the Ingress.",
        "default-auth@kubernetescrd",
        guards=True,
    ),
    _service(
        "serverstransport",
        _text,
        "transport",
        "`NAMESPACE-NAME@kubernetescrd`",
        "The ServersTransport that says how its servers are spoken to.",
        "default-own@kubernetescrd",
        guards=True,
    ),
    _service("sticky.cookie", _boolean, "sticky", "boolean", "A cookie keeps clients with a server.", "true"),
    _cookie("name", _text, "name", "Its name.", "server"),
    _cookie("secure", _boolean, "boolean", "With `Secure`.", "true"),
    _cookie("httponly", _boolean, "boolean", "With `HttpOnly`.", "true"),
    _cookie("samesite", _one_of("none", "lax", "strict"), "`none`, `lax`, `strict`", "Its `SameSite`.", "lax"),
    _cookie("maxage", _number, "seconds", "How long browsers keep it.", "3600"),
    _cookie("path", _text, "path", "Its path.", "/"),
    _cookie("domain", _text, "domain", "Its domain.", "example.com"),
)
TRAEFIK_TABLE: Final = AnnotationTable.of(TRAEFIK_PREFIX, TRAEFIK_ROWS)


def known_name(name: str) -> str:
    """Return the name of the row that a name is of, without the prefix."""
    return _INDEX.sub(".domains.n.", name.lower())


def traefik_annotations(manifest: JsonObject) -> JsonObject:
    """Return an object's annotations of Traefik by their full names, sorted."""
    return TRAEFIK_TABLE.written(manifest) if as_object(metadata(manifest).get("annotations")) else {}


def read_traefik_annotations(kind: str, annotations: Mapping[str, Any]) -> Reading:
    """Read annotations of Traefik on an object of a kind."""
    reading, rows = Reading(TRAEFIK_TABLE), TRAEFIK_TABLE.rows
    for key, written in annotations.items():
        name = known_name(key.removeprefix(TRAEFIK_PREFIX))
        row = rows.get(name)
        if row is None or kind not in row.kinds:
            reading.warn_unknown(key.removeprefix(TRAEFIK_PREFIX), written)
        elif isinstance(row, TraefikAnnotation) and not row.ignored:
            reading.take(name, written)
    return reading
