"""Kubernetes Events about objects, each once.

An Event's name is a hash of what it says and of the update that says it: a second watcher, or this one after a
restart, gets a conflict instead of making a second Event.
"""

import hashlib
from datetime import datetime, timedelta

from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.status import EventNote, StatusUpdate

REPORTER = "headgate.dev/ingress-controller"
NOTE_BYTES = 1024
"""The API's limit; it counts bytes."""
REPEAT_S = 600.0
"""The same note on the same object is not written again before."""
STALE = timedelta(hours=1)
"""API servers keep Events for an hour; what is older than that would only come up again."""
_REMEMBERED = 50_000


def event_path(ref: ObjectRef) -> str:
    """Return where Events about an object are created; those about cluster-scoped objects belong in `default`."""
    return f"/apis/events.k8s.io/v1/namespaces/{ref.namespace or 'default'}/events"


def event_object(update: StatusUpdate, note: EventNote, instance: str, now: datetime) -> JsonObject:
    """Return the `events.k8s.io/v1` Event."""
    ref = update.ref
    said = f"{update.uid}/{update.at.isoformat()}/{note.type}/{note.reason}/{note.note}"
    digest = hashlib.sha256(said.encode()).hexdigest()[:16]
    regarding = {"apiVersion": update.api_version, "kind": update.kind, "name": ref.name, "uid": update.uid}
    if ref.namespace:
        regarding["namespace"] = ref.namespace
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{ref.name[:200].rstrip('.-')}.{digest}", "namespace": ref.namespace or "default"},
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": REPORTER,
        "reportingInstance": instance[:128],
        "action": "Translate",
        "reason": note.reason[:128],
        "type": note.type,
        "note": note.note.encode()[:NOTE_BYTES].decode(errors="ignore"),
        "regarding": regarding,
    }


class RecentNotes:
    """Which notes were written to which objects lately."""

    def __init__(self) -> None:
        self._written_at: dict[tuple[str, EventNote], float] = {}

    def is_repeated(self, update: StatusUpdate, note: EventNote, now: float) -> bool:
        """Whether an Event says what another one said less than ten minutes ago."""
        written_at = self._written_at.get(_key(update, note))
        return written_at is not None and now - written_at < REPEAT_S

    def remember(self, update: StatusUpdate, note: EventNote, now: float) -> None:
        """Note that an Event was written at `now`, in seconds of the loop's clock."""
        if len(self._written_at) >= _REMEMBERED:
            self._written_at = {key: at for key, at in self._written_at.items() if now - at < REPEAT_S}
        self._written_at[_key(update, note)] = now


def _key(update: StatusUpdate, note: EventNote) -> tuple[str, EventNote]:
    return f"{update.ref}/{update.uid}", note
