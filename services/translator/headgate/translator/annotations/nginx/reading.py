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
    for name, row in rows.items():
        if name not in written:
            continue
        assert isinstance(row, NginxAnnotation)
        value = written[name]
        if row.refused:
            reading.note(name, value)
            reading.refuse(name, row.refused)
        elif not row.ignored and (not isinstance(value, str) or value.strip()):
            reading.take(name, value)
    for name in sorted(written.keys() - rows.keys()):
        reading.warn_unknown(name, written[name])
    return reading
