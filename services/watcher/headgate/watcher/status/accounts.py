"""A ServiceAccount for each Gateway, which carries the labels and annotations of its `spec.infrastructure`.

It does nothing else: no pod runs as it, and a Gateway is served without it. Tools find by it what belongs to a Gateway,
and the Gateway's owner takes it away by deleting the Gateway.

An account is created and never taken over: one of that name that somebody else made is left alone, and an Event says
so. An annotation lists the labels and annotations that we set, so that those of others stay. Decision 0059 says why it
is no Service.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from headgate.common.resources import GATEWAY, JsonObject, ObjectRef
from headgate.common.status import EventNote, StatusUpdate
from headgate.watcher.errors import Absent, WriteConflict
from headgate.watcher.status.requests import StatusRequests

GATEWAY_NAME: Final = "gateway.networking.k8s.io/gateway-name"
GATEWAY_CLASS_NAME: Final = "gateway.networking.k8s.io/gateway-class-name"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
SET_BY_US: Final = "headgate.dev/infrastructure"
"""Annotation with the names of the labels and annotations that we set, as JSON."""
_MANAGER = "headgate"
_NAME_LENGTH, _LABEL_LENGTH = 253, 63


class GatewayAccounts:
    """Makes accounts and keeps them as their Gateways want them."""

    def __init__(self, requests: StatusRequests) -> None:
        """Begin with nothing known of any account."""
        self._requests = requests
        self._kept: dict[ObjectRef, JsonObject] = {}
        """What was last made sure of, so that a status alone is no reason to ask again."""

    def forget(self, ref: ObjectRef) -> None:
        """Forget a Gateway that is gone; its account goes with it."""
        self._kept.pop(ref, None)

    async def keep(self, update: StatusUpdate, gateway: JsonObject) -> EventNote | None:
        """Make the account of a Gateway, or bring it up to date; return what to tell of one that is not ours.

        Args:
            update: the Gateway's status. Without conditions it is another controller's.
            gateway: as it is now.

        Raises:
            WriteConflict: somebody changes the account at the same time.
            WatcherError: the server does not take it, or does not answer.
        """
        if not is_for(update.ref) or not update.conditions or "deletionTimestamp" in gateway["metadata"]:
            return None
        wanted = account_of(gateway)
        if self._kept.get(update.ref) == wanted:
            return None
        clash = await self._write(update, wanted)
        self._kept[update.ref] = wanted
        return clash

    async def _write(self, update: StatusUpdate, wanted: JsonObject) -> EventNote | None:
        accounts = f"/api/v1/namespaces/{update.ref.namespace}/serviceaccounts"
        name = wanted["metadata"]["name"]
        try:
            present = await self._requests.read(f"{accounts}/{name}")
        except Absent:
            await self._requests.create(accounts, wanted)
            return None
        if not _is_ours(present["metadata"], wanted["metadata"]):
            text = f"ServiceAccount {name} is not made by headgate for this Gateway, and is left as it is"
            return EventNote(type="Warning", reason="InfrastructureNotMade", note=text, at=update.at)
        changes = changes_of(present["metadata"], wanted["metadata"])
        if changes:
            await self._requests.patch_metadata(f"{accounts}/{name}", present, changes)
        return None


def is_for(ref: ObjectRef) -> bool:
    """Whether an object is a Gateway."""
    return (ref.group, ref.resource) == (GATEWAY.group, GATEWAY.resource)


def account_of(gateway: JsonObject) -> JsonObject:
    """Return the ServiceAccount of a Gateway, named and labelled as GEP-1762 says.

    The labels of the Gateway's `spec.infrastructure` do not replace these.
    """
    metadata, spec = gateway["metadata"], gateway.get("spec") or {}
    written = spec.get("infrastructure") or {}
    class_name = str(spec.get("gatewayClassName", ""))
    labels = _texts(written.get("labels"))
    annotations = _texts(written.get("annotations"))
    ours = {
        GATEWAY_NAME: _short(metadata["name"], _LABEL_LENGTH),
        GATEWAY_CLASS_NAME: _short(class_name, _LABEL_LENGTH),
        MANAGED_BY: _MANAGER,
    }
    said = json.dumps({"labels": sorted({*labels, *ours}), "annotations": sorted(annotations)})
    owner = {
        "apiVersion": gateway["apiVersion"],
        "kind": GATEWAY.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {
            "name": _short(f"{metadata['name']}-{class_name}", _NAME_LENGTH),
            "namespace": metadata["namespace"],
            "labels": {**labels, **ours},
            "annotations": {**annotations, SET_BY_US: said},
            "ownerReferences": [owner],
        },
        "automountServiceAccountToken": False,
    }


def changes_of(present: JsonObject, wanted: JsonObject) -> JsonObject:
    """Return the labels and annotations to change, as a merge patch of `metadata`; those of others are not in it."""
    before = _set_before(present)
    changes: JsonObject = {}
    for field in ("labels", "annotations"):
        there, meant = present.get(field) or {}, wanted[field]
        gone = {name: None for name in before.get(field, ()) if name in there and name not in meant}
        changed = {name: text for name, text in meant.items() if there.get(name) != text}
        if gone or changed:
            changes[field] = {**gone, **changed}
    return changes


def _is_ours(present: JsonObject, wanted: JsonObject) -> bool:
    owners = {owner.get("uid") for owner in present.get("ownerReferences") or ()}
    is_managed = (present.get("labels") or {}).get(MANAGED_BY) == _MANAGER
    if is_managed and SET_BY_US in (present.get("annotations") or {}):
        if wanted["ownerReferences"][0]["uid"] in owners:
            return True
        # Of a Gateway of this name that was deleted: the cluster takes the account away in a moment.
        raise WriteConflict(
            409, "Conflict", f"ServiceAccount {wanted['name']} belongs to an earlier Gateway of that name"
        )
    return False


def _set_before(present: JsonObject) -> Mapping[str, list[str]]:
    try:
        said = json.loads((present.get("annotations") or {}).get(SET_BY_US, ""))
    except ValueError:
        return {}  # edited by hand: nothing is taken away then
    return {field: names for field, names in said.items() if isinstance(names, list)} if isinstance(said, dict) else {}


def _texts(written: Any) -> dict[str, str]:
    return {name: str(text) for name, text in written.items()} if isinstance(written, dict) else {}


def _short(name: str, limit: int) -> str:
    """Return a name as it is if it is short enough, else its beginning and a digest."""
    if len(name) <= limit:
        return name
    return f"{name[: limit - 9].rstrip('-.')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
