"""Who asked the API server for a change, as the webhook hears it.

An AdmissionReview names the user before the object is stored, and the object that a watch brings later does not: field
managers name tools. Both are brought together by the object's name and what it says. A change that is not found has its
field manager as author: the webhook is not asked about its kind, or that of another watcher answered.

Rejected: `resourceVersion` and `uid`, which a review of a creation does not have or has of the version before.
"""

import time
from collections import OrderedDict
from collections.abc import Callable

from headgate.common.deltas import Author
from headgate.common.resources import JsonObject, ObjectRef
from headgate.watcher.objects.preparing import MAX_AUTHOR, managing_author, strip_bookkeeping
from headgate.watcher.publishing.ledger import content_digest

KEPT = 4096
"""Changes that are remembered; the oldest are forgotten first."""
KEPT_S = 120.0
"""A watch brings a change within moments; a source that was interrupted lists it again a little later."""

_Change = tuple[tuple[str, str, str, str], bytes]
"""Group, resource, namespace and name; digest of what the object says."""
_SAID = ("name", "namespace", "labels", "annotations")


class Requesters:
    """The users of recent changes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Remember nothing yet; `clock` gives monotonic seconds."""
        self._clock = clock
        self._users: OrderedDict[_Change, tuple[str, float]] = OrderedDict()

    def note(self, group: str, resource: str, manifest: JsonObject, user: str) -> None:
        """Remember who asked for an object as it is to be stored."""
        change = _change(group, resource, manifest)
        self._users[change] = user[:MAX_AUTHOR], self._clock() + KEPT_S
        self._users.move_to_end(change)
        while len(self._users) > KEPT:
            self._users.popitem(last=False)

    def author_of(self, ref: ObjectRef, manifest: JsonObject) -> Author | None:
        """Return who changed an object: the user, or else the field manager."""
        manager = managing_author(manifest)
        if not self._users:
            return manager  # before a digest is made of each object of a list
        known = self._users.get(_change(ref.group, ref.resource, manifest))
        if known is None or known[1] < self._clock():
            return manager
        return Author(known[0], manager.at if manager else None)


def _change(group: str, resource: str, manifest: JsonObject) -> _Change:
    stripped = strip_bookkeeping(manifest)
    metadata = {name: value for name in _SAID if (value := stripped["metadata"].get(name))}
    said = {name: value for name, value in stripped.items() if name not in ("apiVersion", "kind", "status")}
    place = group, resource, str(metadata.get("namespace", "")), str(metadata.get("name", ""))
    return place, content_digest({**said, "metadata": metadata})
