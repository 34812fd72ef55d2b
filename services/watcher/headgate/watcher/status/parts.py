"""What to write into those entries of a status that have conditions of their own, if anything.

These are `status.ancestors` of policies, `status.parents` of routes and `status.listeners` of Gateways, in the shapes
of Gateway API. Entries of ancestors and parents belong to the controller that they name: others' are repeated as they
are.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from headgate.common.resources import JsonObject
from headgate.common.status import (
    CONTROLLER_NAME,
    GATEWAY_CONTROLLER_NAME,
    AncestorRef,
    ListenerRef,
    LoadBalancerAddress,
    ParentRef,
    PartRef,
    StatusCondition,
    StatusUpdate,
)
from headgate.watcher.status.conditions import merge_conditions, write_condition

_REF_FIELDS = ("group", "kind", "namespace", "name", "sectionName", "port")


class _Entries(NamedTuple):
    """A list of entries that controllers share."""

    field: str
    ref_field: str
    limit: int
    """Entries of all controllers, by the API."""
    controller: str
    """Which of them are ours."""


_MAX_ADDRESSES = 16
"""Of a Gateway, by the API, which takes no status with more."""
_ANCESTORS = _Entries("ancestors", "ancestorRef", 16, CONTROLLER_NAME)
_GATEWAY_ANCESTORS = _ANCESTORS._replace(controller=GATEWAY_CONTROLLER_NAME)
_PARENTS = _Entries("parents", "parentRef", 32, GATEWAY_CONTROLLER_NAME)


def ancestors_status(update: StatusUpdate, current: JsonObject) -> JsonObject | None:
    """Return the part of a policy's status to write (GEP-713); None if there is nothing to write."""
    return _shared(_ANCESTORS, update, current)


def gateway_ancestors_status(update: StatusUpdate, current: JsonObject) -> JsonObject | None:
    """Return the same of a policy of Gateway API's own."""
    return _shared(_GATEWAY_ANCESTORS, update, current)


def parents_status(update: StatusUpdate, current: JsonObject) -> JsonObject | None:
    """Return the part of a route's status to write; None if there is nothing to write."""
    return _shared(_PARENTS, update, current)


def _shared(entries: _Entries, update: StatusUpdate, current: JsonObject) -> JsonObject | None:
    present: list[JsonObject] = (current.get("status") or {}).get(entries.field) or []
    others = [entry for entry in present if entry.get("controllerName") != entries.controller]
    before = {_key(entry.get(entries.ref_field) or {}): entry for entry in present if entry not in others}
    ours = []
    for part, said in _by_part(update).items():
        if isinstance(part, AncestorRef | ParentRef):
            ref = _written(part)
            conditions = _conditions(update, said, before.get(_key(ref), {}))
            ours.append({entries.ref_field: ref, "controllerName": entries.controller, "conditions": conditions})
    wanted = [*others, *ours][: entries.limit]
    return None if wanted == present else {entries.field: wanted}


def listeners_status(update: StatusUpdate, current: JsonObject) -> JsonObject | None:
    """Return the part of the status of a Gateway or a ListenerSet to write; None if there is nothing to write.

    All of it is ours, as one controller alone serves a Gateway, but for conditions of types that we do not write. From
    one that is not ours any more nothing is taken away.
    """
    if not update.conditions:
        return None
    present: JsonObject = current.get("status") or {}
    by_part = _by_part(update)
    before = {entry.get("name"): entry for entry in present.get("listeners") or ()}
    wanted: JsonObject = {
        "listeners": [
            {
                "name": report.name,
                "supportedKinds": [kind._asdict() for kind in report.supported_kinds],
                "attachedRoutes": report.attached_routes,
                "conditions": merge_conditions(
                    update,
                    by_part.get(ListenerRef(report.name), ()),
                    before.get(report.name, {}).get("conditions") or (),
                ),
            }
            for report in update.listeners
        ]
    }
    if update.addresses is not None:
        wanted["addresses"] = [_address(address) for address in update.addresses[:_MAX_ADDRESSES]]
    # A server whose Gateways lack the field has no ListenerSets either: nothing is written there.
    wanted["attachedListenerSets"] = update.attached_listener_sets or None
    wanted["conditions"] = merge_conditions(update, by_part.get(None, ()), present.get("conditions") or [])
    changed = {field: value for field, value in wanted.items() if (value or None) != (present.get(field) or None)}
    return changed or None


def _by_part(update: StatusUpdate) -> Mapping[PartRef | None, Sequence[StatusCondition]]:
    found: dict[PartRef | None, list[StatusCondition]] = {}
    for condition in update.conditions:
        found.setdefault(condition.part, []).append(condition)
    return found


def _conditions(update: StatusUpdate, said: Iterable[StatusCondition], entry: JsonObject) -> list[JsonObject]:
    before = {condition.get("type"): condition for condition in entry.get("conditions") or []}
    return [write_condition(update, condition, before, "") for condition in said]


def _written(part: AncestorRef | ParentRef) -> JsonObject:
    # The core group is the empty text; left out it would be Gateway API's.
    return {name: value for name, value in zip(_REF_FIELDS, part, strict=False) if value or name == "group"}


def _key(ref: JsonObject) -> tuple[str, ...]:
    return tuple(str(ref.get(name) or "") for name in _REF_FIELDS)


def _address(address: LoadBalancerAddress) -> JsonObject:
    if address.ip is not None:
        return {"type": "IPAddress", "value": address.ip}
    return {"type": "Hostname", "value": address.hostname}
