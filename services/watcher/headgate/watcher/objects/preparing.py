"""What is published of an object: without bookkeeping, and without anything secret."""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from headgate.common.deltas import Author
from headgate.common.resources import JsonObject, ResourceKind, Sealing
from headgate.common.sealing import Sealer
from headgate.watcher.objects.hidden_fields import hide_fields
from headgate.watcher.objects.secrets import PUBLISHED_TYPES, seal_secret

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MAX_OBJECT_BYTES = 1024 * 1024 - 16 * 1024
"""An object in JSON: the bus takes messages of 1 MiB, and the rest of the delta needs some of that."""

MAX_AUTHOR = 128
"""Characters of a field manager's name that an API server takes."""

_BOOKKEEPING = ("managedFields", "selfLink")


def _seal_consumer(manifest: JsonObject, sealer: Sealer) -> JsonObject:
    # The configurations of all plugins come with it, which commands about other objects do without.
    from headgate.watcher.objects.consumers import seal_consumer

    return seal_consumer(manifest, sealer)


_SEAL: Mapping[Sealing, Callable[[JsonObject, Sealer], JsonObject]] = {
    Sealing.NOTHING: lambda manifest, _: manifest,
    Sealing.SECRET: seal_secret,
    Sealing.CREDENTIALS: _seal_consumer,
}
_NAMES = frozenset({"name", "namespace", "uid", "resourceVersion"})
_LABELS = _NAMES | {"labels"}

_ENCODER = msgspec.json.Encoder(order="deterministic")


def encode(value: Any) -> bytes:
    """Encode as JSON; equal values give equal bytes."""
    return _ENCODER.encode(value)


def strip(kind: ResourceKind, manifest: JsonObject) -> JsonObject:
    """Return the object without managedFields, the last-applied annotation and what the row of its kind drops.

    The status of Services stays (their load balancer's addresses are used), and of that of Gateways the addresses; that
    of Ingresses and the like is ours to write. Of Pods only names and labels stay, of definitions names and one
    annotation. The given manifest is not changed: the object that is returned and its metadata are new.
    """
    if kind.keeps_labels_only:
        return _keep_labels(kind, manifest)
    if kind.kept_annotations:
        return _keep_annotations(kind, manifest)
    kept = _keep_of_status(kind, manifest) if "status" in manifest and not kind.keeps_status else manifest
    return strip_bookkeeping(hide_fields(kind, kept))


def _keep_of_status(kind: ResourceKind, manifest: JsonObject) -> JsonObject:
    kept = {name: value for name, value in manifest.items() if name != "status"}
    status = manifest.get("status")
    said = {field: status[field] for field in kind.status_fields if field in status} if isinstance(status, dict) else {}
    return {**kept, "status": said} if said else kept


def _keep_labels(kind: ResourceKind, manifest: JsonObject) -> JsonObject:
    return _with_metadata(kind, manifest, _some_of(manifest.get("metadata"), _LABELS))


def _keep_annotations(kind: ResourceKind, manifest: JsonObject) -> JsonObject:
    metadata = _some_of(manifest.get("metadata"), _NAMES | {"annotations"})
    metadata["annotations"] = _some_of(metadata.get("annotations"), kind.kept_annotations)
    return _with_metadata(kind, manifest, metadata)


def _some_of(fields: Any, names: Collection[str]) -> JsonObject:
    return {name: value for name, value in fields.items() if name in names} if isinstance(fields, dict) else {}


def _with_metadata(kind: ResourceKind, manifest: JsonObject, metadata: JsonObject) -> JsonObject:
    return {"apiVersion": manifest.get("apiVersion"), "kind": kind.kind, "metadata": metadata}


def strip_bookkeeping(manifest: JsonObject) -> JsonObject:
    """Return the object without managedFields and the last-applied annotation."""
    metadata = manifest.get("metadata")
    return {**manifest, "metadata": _strip_metadata(metadata)} if isinstance(metadata, dict) else dict(manifest)


def _strip_metadata(metadata: JsonObject) -> JsonObject:
    kept = dict(metadata)
    for name in _BOOKKEEPING:
        kept.pop(name, None)
    annotations = kept.get("annotations")
    if isinstance(annotations, dict) and LAST_APPLIED in annotations:
        kept["annotations"] = {name: text for name, text in annotations.items() if name != LAST_APPLIED}
    if not kept.get("annotations", True):
        del kept["annotations"]
    return kept


def managing_author(manifest: JsonObject) -> Author | None:
    """Return who changed the object last, by its managedFields; None if they do not say.

    An entry for each manager, with the time of its last change; writers of the status are left out. See
    https://kubernetes.io/docs/reference/using-api/server-side-apply/#managers
    """
    return max(_managers(manifest), key=lambda author: author.at.timestamp() if author.at else 0.0, default=None)


def _managers(manifest: JsonObject) -> Iterator[Author]:
    entries = manifest["metadata"].get("managedFields")
    for entry in reversed(entries) if isinstance(entries, list) else ():
        if isinstance(entry, dict) and not entry.get("subresource") and (name := entry.get("manager")):
            yield Author(str(name)[:MAX_AUTHOR], _moment(entry.get("time")))


def _moment(text: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def is_published(kind: ResourceKind, manifest: JsonObject) -> bool:
    """Whether the object goes to the log at all.

    Of Secrets those do that hold a certificate or what people wrote, of definitions the one that is read. Which Secrets
    are read at all is the source's business: of a cluster, by default, those with certificates.
    """
    if kind.names and manifest["metadata"].get("name") not in kind.names:
        return False
    return kind.sealing is not Sealing.SECRET or manifest.get("type") in PUBLISHED_TYPES


def is_sealed(kind: ResourceKind) -> bool:
    """Whether objects of a kind hold values that are sealed."""
    return kind.sealing is not Sealing.NOTHING


def prepare(kind: ResourceKind, manifest: JsonObject, sealer: Sealer) -> JsonObject | None:
    """Return the object as it stands in a delta: stripped, a Secret's `data` replaced by `sealed`.

    Args:
        kind: its row.
        manifest: complete object, from an API server or a file.
        sealer: seals for the gateways; offline, for `headgate.watcher.objects.secrets.throwaway_recipients()`.

    Returns:
        None if objects like this one are not published (see `is_published`).

    Raises:
        SealingError: there is a Secret to seal and no recipient.
    """
    return prepare_stripped(kind, strip(kind, manifest), sealer) if is_published(kind, manifest) else None


def prepare_stripped(kind: ResourceKind, stripped: JsonObject, sealer: Sealer) -> JsonObject:
    """Return a stripped object that is published as it stands in a delta; see `prepare`."""
    return _SEAL[kind.sealing](stripped, sealer)
