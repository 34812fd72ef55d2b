"""What to write into `status.conditions` of an object, or `status.ancestors` of a policy, if anything.

What is ours is told by a prefix, or by our controller's name; others' is repeated as it is. A condition that says what
it said keeps its time.
"""

from collections.abc import Iterable
from datetime import UTC

from headgate.common.resources import JsonObject
from headgate.common.status import CONTROLLER_NAME, AncestorRef, StatusCondition, StatusUpdate

PREFIX = "headgate.dev/"
MAX_ANCESTORS = 16
"""Of all controllers, by the limit of the API."""
_ANCESTOR_FIELDS = ("group", "kind", "namespace", "name", "sectionName")
_INVALID = {"Invalid": "InvalidSpec"}
"""Reasons by the names that Apache APISIX has for them."""


def prefixed_conditions_status(update: StatusUpdate, current: JsonObject) -> JsonObject | None:
    """Return the part of a Service's present status to write; None if there is nothing to write."""
    present: list[JsonObject] = (current.get("status") or {}).get("conditions") or []
    others = [condition for condition in present if not str(condition.get("type")).startswith(PREFIX)]
    ours = {condition.get("type"): condition for condition in present if condition not in others}
    wanted = [*others, *(_wanted(update, condition, ours) for condition in update.conditions)]
    return None if wanted == present else {"conditions": wanted or None}


def conditions_status(update: StatusUpdate, current: JsonObject) -> JsonObject | None:
    """Return the part of the status of a resource of Apache APISIX to write; None if there is nothing to write.

    Its types of conditions have no prefix there; those that somebody else made are repeated as they are. Of an object
    that is not ours any more nothing is taken away: another controller may have written it meanwhile.
    """
    if not update.conditions:
        return None
    present: list[JsonObject] = (current.get("status") or {}).get("conditions") or []
    types = {str(condition.type) for condition in update.conditions}
    others = [condition for condition in present if condition.get("type") not in types]
    before = {condition.get("type"): condition for condition in present}
    said = (
        condition.model_copy(update={"reason": _INVALID.get(condition.reason, condition.reason)})
        for condition in update.conditions
    )
    wanted = [*(_wanted(update, condition, before, "") for condition in said), *others]
    return None if wanted == present else {"conditions": wanted}


def ancestors_status(update: StatusUpdate, current: JsonObject) -> JsonObject | None:
    """Return the part of a policy's status to write; None if there is nothing to write.

    In the shape of Gateway API's policies (GEP-713): an entry for each ancestor and controller, 16 at most. Those of
    other controllers are repeated as they are.
    """
    present: list[JsonObject] = (current.get("status") or {}).get("ancestors") or []
    others = [entry for entry in present if entry.get("controllerName") != CONTROLLER_NAME]
    before = {_ancestor_of(entry): entry for entry in present if entry not in others}
    by_ancestor: dict[AncestorRef, list[StatusCondition]] = {}
    for condition in update.conditions:
        if condition.ancestor is not None:
            by_ancestor.setdefault(condition.ancestor, []).append(condition)
    ours = [_entry(update, ancestor, said, before.get(ancestor, {})) for ancestor, said in by_ancestor.items()]
    wanted = [*others, *ours][:MAX_ANCESTORS]
    return None if wanted == present else {"ancestors": wanted}


def _entry(
    update: StatusUpdate, ancestor: AncestorRef, said: Iterable[StatusCondition], entry: JsonObject
) -> JsonObject:
    before = {condition.get("type"): condition for condition in entry.get("conditions") or []}
    names = {name: value for name, value in zip(_ANCESTOR_FIELDS, ancestor, strict=True) if value or name == "group"}
    conditions = [_wanted(update, condition, before, "") for condition in said]
    return {"ancestorRef": names, "controllerName": CONTROLLER_NAME, "conditions": conditions}


def _ancestor_of(entry: JsonObject) -> AncestorRef:
    names = entry.get("ancestorRef") or {}
    return AncestorRef(*(str(names.get(name) or "") for name in _ANCESTOR_FIELDS))


def _wanted(
    update: StatusUpdate, condition: StatusCondition, present: dict[object, JsonObject], prefix: str = PREFIX
) -> JsonObject:
    said = {
        "type": f"{prefix}{condition.type}",
        "status": condition.status,
        **({"observedGeneration": update.generation} if update.generation else {}),
        "lastTransitionTime": condition.since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "reason": condition.reason,
        "message": condition.message,
    }
    before = present.get(said["type"], {})
    if before.get("status") == said["status"]:
        said["lastTransitionTime"] = before.get("lastTransitionTime") or said["lastTransitionTime"]
    return before if _same(before, said.items()) else said


def _same(before: JsonObject, said: Iterable[tuple[str, object]]) -> bool:
    return all(before.get(name) == value for name, value in said)
