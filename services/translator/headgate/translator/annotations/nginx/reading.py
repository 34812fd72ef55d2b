"""The annotations of ingress-nginx on one Ingress, read by the table."""

from collections.abc import Mapping
from typing import Any

from headgate.common.resources import JsonObject
from headgate.translator.annotations.nginx import NGINX_PREFIX, NGINX_TABLE, NginxAnnotation
from headgate.translator.annotations.reading import NO_DEFAULTS, Reading


def nginx_annotations(manifest: JsonObject) -> JsonObject:
    """Return an Ingress' annotations of ingress-nginx by their full names, sorted."""
    return NGINX_TABLE.written(manifest)


def read_nginx_annotations(annotations: JsonObject, defaults: Mapping[str, Mapping[str, Any]] = NO_DEFAULTS) -> Reading:
    """Read annotations of ingress-nginx, over what its ConfigMap says. One that is empty says nothing, as there."""
    reading, rows = Reading(NGINX_TABLE, defaults), NGINX_TABLE.rows
    written = {key.removeprefix(NGINX_PREFIX): value for key, value in annotations.items()}
    _check_security(reading, written)
    for name, row in rows.items():
        if name not in written:
            continue
        assert isinstance(row, NginxAnnotation)
        value = written[name]
        if row.refused and says_something(value):
            reading.note(name, value)
            reading.refuse(name, row.refused)
        elif not row.ignored and not row.refused and (not isinstance(value, str) or value.strip()):
            reading.take(name, value)
    for name in sorted(written.keys() - rows.keys()):
        reading.warn_unknown(name, written[name])
    return reading


def says_something(value: Any) -> bool:
    """Whether what is refused is asked for at all: a value that is empty or false asks for nothing."""
    return not isinstance(value, str) or value.strip().lower() not in ("", "0", "f", "false")


def _check_security(reading: Reading, written: Mapping[str, Any]) -> None:
    """Drop the Ingress for annotations of a higher risk than the operator takes, and for words in them."""
    security = reading.group("security")
    risk, words = security.get("risk"), security.get("words", ())
    for name, value in written.items() if risk is not None or words else ():
        row = NGINX_TABLE.rows.get(name)
        if risk is not None and isinstance(row, NginxAnnotation) and row.risk > risk:
            reading.drop(name, f"is of risk {row.risk.name.capitalize()}, and annotations-risk-level allows less")
        if found := [word for word in words if isinstance(value, str) and word in value]:
            reading.drop(name, f"has {found[0]!r} in it, which annotation-value-word-blocklist names")
