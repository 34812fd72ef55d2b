"""Which Secrets and ConfigMaps an object names. The row of its kind declares the fields, each by its path.

The watcher reads of a cluster what is named; what a name means, and whether it may be used, is decided by dialects.
Rejected: a list in the watcher, as a kind is added by its row.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from headgate.common.resources.reference import JsonObject

NGINX_PREFIX: Final = "nginx.ingress.kubernetes.io"
"""Before the names of ingress-nginx' annotations, if a setting does not say otherwise."""
SECRETS: Final = "secrets"
CONFIG_MAPS: Final = "configmaps"
_EACH: Final = "*"
_ANNOTATIONS: Final = ("metadata", "annotations")
_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")
_LONGEST_NAME: Final = 253
_TAKEN: Final = ("headgate.dev", "k8s.apisix.apache.org", "kubernetes.io")
_NAMESPACE: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")


class Referent(NamedTuple):
    """An object that another one names."""

    resource: str
    """Plural of its kind, which is of the core group."""
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceField:
    """A field that names an object: `name` or `namespace/name`, or an object with these two."""

    resource: str
    path: tuple[str, ...]
    """Names of fields; `*` is each of a list or a map."""


class _Fields(NamedTuple):
    """Fields of one kind, as they are looked up."""

    annotations: dict[str, str]
    """Resources, by the annotations that name one."""
    paths: tuple[ReferenceField, ...]


def check_nginx_prefix(value: str) -> str:
    """Return a prefix of annotations.

    Raises:
        ValueError: it can be none, or is of others.
    """
    if not _NAME.fullmatch(value) or len(value) > _LONGEST_NAME:
        raise ValueError(f"must be a DNS name in lower case without a slash, such as {NGINX_PREFIX}")
    if value in _TAKEN:
        raise ValueError(f"must not be the prefix of other annotations; give one of your own, or {NGINX_PREFIX}")
    return value


def secret_field(path: str) -> ReferenceField:
    """Return the field of a path such as `spec.tls.*.secretName`, which names a Secret."""
    return ReferenceField(SECRETS, tuple(path.split(".")))


def nginx_annotation(resource: str, name: str) -> ReferenceField:
    """Return an annotation of ingress-nginx that names an object."""
    return annotation(resource, f"{NGINX_PREFIX}/{name}")


def annotation(resource: str, name: str) -> ReferenceField:
    """Return an annotation that names an object."""
    return ReferenceField(resource, (*_ANNOTATIONS, name))


def find_referents(
    fields: Iterable[ReferenceField], manifest: JsonObject, nginx_prefix: str = NGINX_PREFIX
) -> frozenset[Referent]:
    """Return what an object names. A value that cannot be a name is none."""
    known, metadata = _fields(tuple(fields), nginx_prefix), manifest["metadata"]
    annotations, own = metadata.get("annotations"), metadata.get("namespace", "")
    found: list[Referent | None] = []
    if annotations and isinstance(annotations, dict):
        found += (
            _referent(resource, annotations[name], own)
            for name, resource in known.annotations.items()
            if name in annotations
        )
    for field in known.paths:
        held: Iterable[Any] = (manifest,)
        for key in field.path:
            held = [inner for value in held for inner in _inside(value, key)]
            if not held:
                break
        found += (_referent(field.resource, value, own) for value in held)
    return frozenset(one for one in found if one is not None)


@lru_cache(maxsize=256)
def _fields(fields: tuple[ReferenceField, ...], nginx_prefix: str) -> _Fields:
    annotations: dict[str, str] = {}
    paths = []
    for field in fields:
        if field.path[:2] != _ANNOTATIONS:
            paths.append(field)
            continue
        name = field.path[2]
        is_nginx = name.startswith(f"{NGINX_PREFIX}/")
        annotations[nginx_prefix + name.removeprefix(NGINX_PREFIX) if is_nginx else name] = field.resource
    return _Fields(annotations, tuple(paths))


def _inside(value: Any, key: str) -> Iterable[Any]:
    if key == _EACH:
        return value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    return (value[key],) if isinstance(value, dict) and key in value else ()


def _referent(resource: str, value: Any, own_namespace: str) -> Referent | None:
    if isinstance(value, dict):
        namespace, name = value.get("namespace") or own_namespace, value.get("name")
    else:
        namespace, _, name = value.strip().rpartition("/") if isinstance(value, str) else ("", "", "")
        namespace = namespace or own_namespace
    if not (isinstance(namespace, str) and isinstance(name, str)):
        return None
    is_name = _NAMESPACE.fullmatch(namespace) and _NAME.fullmatch(name)
    return Referent(resource, namespace, name) if is_name else None
