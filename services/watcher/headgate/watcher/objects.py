"""What is published of an object: without bookkeeping, and without anything secret."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from headgate.common.deltas import Author
from headgate.common.resources import (
    APISIX_CONSUMER,
    APISIX_KINDS,
    GATEWAY_CONSUMER,
    GATEWAY_KINDS,
    GATEWAY_PROXY,
    INGRESS,
    INGRESS_CLASS,
    NAMESPACE,
    POD,
    SECRET,
    JsonObject,
)
from headgate.common.sealing import Sealer
from headgate.watcher.admin_keys import hide_admin_key
from headgate.watcher.consumers import seal_consumer
from headgate.watcher.secrets import PUBLISHED_TYPES, seal_secret

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MAX_OBJECT_BYTES = 1024 * 1024 - 16 * 1024
"""An object in JSON: the bus takes messages of 1 MiB, and the rest of the delta needs some of that."""

MAX_AUTHOR = 128
"""Characters of a field manager's name that an API server takes."""

_BOOKKEEPING = frozenset({"managedFields", "selfLink"})
SEALED_KINDS = (SECRET, APISIX_CONSUMER, GATEWAY_CONSUMER)
_SEALED: Mapping[str, Callable[[JsonObject, Sealer], JsonObject]] = {
    SECRET.kind: seal_secret,
    APISIX_CONSUMER.kind: seal_consumer,
    GATEWAY_CONSUMER.kind: seal_consumer,
}
"""What takes the secrets of an object, by its kind."""
_OF_PODS = frozenset({"name", "namespace", "uid", "resourceVersion", "labels"})
_STATUS_UNREAD = frozenset(kind.kind for kind in (INGRESS, INGRESS_CLASS, NAMESPACE, *GATEWAY_KINDS, *APISIX_KINDS))

_ENCODER = msgspec.json.Encoder(order="deterministic")


def encode(value: Any) -> bytes:
    """Encode as JSON; equal values give equal bytes."""
    return _ENCODER.encode(value)


def strip(manifest: JsonObject) -> JsonObject:
    """Return the object without managedFields, the last-applied annotation and a status that nobody reads.

    The status of Services stays (their load balancer's addresses are used); that of Ingresses and the like is ours to
    write. Of Pods nothing stays but their names and labels. What is handed in is not changed.
    """
    if manifest.get("kind") == POD.kind:
        return _strip_pod(manifest)
    dropped = {"status"} if manifest.get("kind") in _STATUS_UNREAD else set()
    stripped = {name: value for name, value in manifest.items() if name not in dropped}
    if manifest.get("kind") == GATEWAY_PROXY.kind:
        stripped = hide_admin_key(stripped)
    metadata = stripped.get("metadata")
    if isinstance(metadata, dict):
        stripped["metadata"] = _strip_metadata(metadata)
    return stripped


def _strip_pod(manifest: JsonObject) -> JsonObject:
    metadata = manifest.get("metadata")
    kept = {name: value for name, value in metadata.items() if name in _OF_PODS} if isinstance(metadata, dict) else {}
    return {"apiVersion": manifest.get("apiVersion"), "kind": POD.kind, "metadata": kept}


def _strip_metadata(metadata: JsonObject) -> JsonObject:
    kept = {name: value for name, value in metadata.items() if name not in _BOOKKEEPING}
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


def is_published(manifest: JsonObject) -> bool:
    """Whether the object goes to the log at all: of Secrets only those that hold a certificate or what people wrote.

    Which of these are read at all is the source's business: of a cluster, by default, those with certificates.
    """
    return manifest.get("kind") != "Secret" or manifest.get("type") in PUBLISHED_TYPES


def prepare(manifest: JsonObject, sealer: Sealer) -> JsonObject | None:
    """Return the object as it stands in a delta: stripped, a Secret's `data` replaced by `sealed`.

    Args:
        manifest: complete object, from an API server or a file.
        sealer: seals for the gateways; offline, for `headgate.watcher.secrets.throwaway_recipients()`.

    Returns:
        None if objects like this one are not published (see `is_published`).

    Raises:
        SealingError: there is a Secret to seal and no recipient.
    """
    return prepare_stripped(strip(manifest), sealer) if is_published(manifest) else None


def prepare_stripped(stripped: JsonObject, sealer: Sealer) -> JsonObject:
    """Return a stripped object that is published as it stands in a delta; see `prepare`."""
    seal = _SEALED.get(str(stripped.get("kind")))
    return seal(stripped, sealer) if seal is not None else stripped
