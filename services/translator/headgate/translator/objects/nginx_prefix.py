"""Annotations of ingress-nginx under another prefix, as its flag `--annotations-prefix` says it.

They are renamed where an Ingress is taken in, and problems name them as they are written: between the two only one
prefix is known. Rejected: the prefix as an argument of all that reads annotations, indexes of stored objects among it.
"""

from dataclasses import replace
from typing import Any

from headgate.common.problems import Problem
from headgate.common.resources import INGRESS, LEGACY_INGRESS, JsonObject
from headgate.common.resources import references as common
from headgate.translator.annotations.nginx.row import NGINX_PREFIX
from headgate.translator.manifests.reading import as_object, metadata
from headgate.translator.world.world import StoredKind


def with_prefix(stored: StoredKind[Any], prefix: str) -> StoredKind[Any]:
    """Return how objects of a kind are kept if their annotations have a prefix; it has no slash."""
    if prefix == common.NGINX_PREFIX or stored.kind not in (INGRESS, LEGACY_INGRESS):
        return stored
    read, restore = stored.read, stored.restore
    return replace(
        stored,
        read=lambda manifest: read(as_known(manifest, prefix)),
        restore=restore and (lambda form: _renamed(restore(form), NGINX_PREFIX, f"{prefix}/")),
    )


def as_known(manifest: JsonObject, prefix: str) -> JsonObject:
    """Return a manifest with the annotations that have a prefix as those of ingress-nginx, and none of these else."""
    return manifest if prefix == common.NGINX_PREFIX else _renamed(manifest, f"{prefix}/", NGINX_PREFIX)


def as_written(text: str, prefix: str) -> str:
    """Return a text that names annotations, with the prefix that they are written with."""
    return text.replace(NGINX_PREFIX, f"{prefix}/")


def problem_as_written(problem: Problem, prefix: str) -> Problem:
    """Return a problem that names annotations as they are written."""
    if prefix == common.NGINX_PREFIX:
        return problem
    texts = {"field": as_written(problem.field, prefix), "message": as_written(problem.message, prefix)}
    return problem.model_copy(update=texts)


def _renamed(manifest: JsonObject, before: str, after: str) -> JsonObject:
    annotations = as_object(metadata(manifest).get("annotations"))
    if not annotations:
        return manifest
    kept = {key: value for key, value in annotations.items() if not key.startswith((before, after))}
    renamed = {after + key.removeprefix(before): value for key, value in annotations.items() if key.startswith(before)}
    return {**manifest, "metadata": {**metadata(manifest), "annotations": kept | renamed}}
