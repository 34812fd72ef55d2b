"""Kubernetes Events about objects, each once.

An Event's name is a hash of what it says and of when there was reason to: a second watcher, or this one after a
restart, gets a conflict instead of making a second Event.
"""

import hashlib
from datetime import datetime, timedelta

from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.status import NOTE_BYTES, EventNote, StatusUpdate, shorten

REPORTER = "headgate.dev/ingress-controller"
REPEAT = timedelta(minutes=10)
"""The same note on the same object is not written again before."""
STALE = timedelta(hours=1)
"""API servers keep Events for an hour; what is older than that would only come up again."""
_REMEMBERED = 50_000


def event_path(ref: ObjectRef) -> str:
    """Return where Events about an object are created; those about cluster-scoped objects belong in `default`."""
    return f"/apis/events.k8s.io/v1/namespaces/{ref.namespace or 'default'}/events"


def event_object(update: StatusUpdate, note: EventNote, instance: str, now: datetime) -> JsonObject:
    """Return the `events.k8s.io/v1` Event. No field of it is longer than API servers take."""
    ref = update.ref
    said = f"{update.uid}/{note.at.isoformat()}/{note.type}/{note.reason}/{note.note}"
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
        "note": shorten(note.note, NOTE_BYTES),
        "regarding": regarding,
    }


class RecentNotes:
    """Which notes were written about which objects lately."""

    def __init__(self) -> None:
        self._written: dict[tuple[str, str, str, str], datetime] = {}

    def is_repeated(self, update: StatusUpdate, note: EventNote) -> bool:
        """Whether an Event was written that says the same, with reason less than ten minutes earlier or later."""
        written = self._written.get(_key(update, note))
        return written is not None and abs(note.at - written) < REPEAT

    def remember(self, update: StatusUpdate, note: EventNote) -> None:
        """Note that an Event was written, or never will be."""
        if len(self._written) >= _REMEMBERED:
            self._written = {key: at for key, at in self._written.items() if note.at - at < STALE}
        self._written[_key(update, note)] = note.at


def _key(update: StatusUpdate, note: EventNote) -> tuple[str, str, str, str]:
    return f"{update.ref}/{update.uid}", note.type, note.reason, note.note
