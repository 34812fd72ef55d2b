"""What to write into `status.conditions` of an object, if anything.

What is ours is told by a prefix, or by our controller's name; others' is repeated as it is. A condition that says what
it said keeps its time.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC
from typing import Final

from headgate.common.resources import JsonObject
from headgate.common.status import ConditionType, StatusCondition, StatusUpdate

PREFIX = "headgate.dev/"
_INVALID = {"Invalid": "InvalidSpec"}
"""Reasons by the names that Apache APISIX has for them."""
_OF_CLASSES = (ConditionType.ACCEPTED, ConditionType.SUPPORTED_VERSION)
"""What is said of GatewayClasses."""
_OF_EXPORTS = (ConditionType.VALID, ConditionType.READY, ConditionType.CONFLICT)
"""What is said of ServiceExports."""


def prefixed_conditions_status(update: StatusUpdate, current: JsonObject) -> JsonObject | None:
    """Return the part of a Service's present status to write; None if there is nothing to write."""
    present: list[JsonObject] = (current.get("status") or {}).get("conditions") or []
    others = [condition for condition in present if not str(condition.get("type")).startswith(PREFIX)]
    ours = {condition.get("type"): condition for condition in present if condition not in others}
    wanted = [*others, *(write_condition(update, condition, ours) for condition in update.conditions)]
    return None if wanted == present else {"conditions": wanted or None}


def conditions_status(update: StatusUpdate, current: JsonObject) -> JsonObject | None:
    """Return the part of the status of a resource of Apache APISIX to write; None if there is nothing to write.

    Its types of conditions have no prefix there; those that somebody else made are repeated as they are. Of an object
    that is not ours any more nothing is taken away: another controller may have written it meanwhile.
    """
    if not update.conditions:
        return None
    present: list[JsonObject] = (current.get("status") or {}).get("conditions") or []
    said = (
        condition.model_copy(update={"reason": _INVALID.get(condition.reason, condition.reason)})
        for condition in update.conditions
    )
    wanted = merge_conditions(update, tuple(said), present)
    return None if wanted == present else {"conditions": wanted}


def acceptance_status(update: StatusUpdate, current: JsonObject) -> JsonObject | None:
    """Return the part of a GatewayClass' status to write; None if there is nothing to write."""
    said = tuple(one for one in update.conditions if one.type in _OF_CLASSES and one.part is None)
    if not said:
        return None
    present: JsonObject = current.get("status") or {}
    wanted: JsonObject = {"conditions": merge_conditions(update, said, present.get("conditions") or [])}
    if update.features:
        wanted["supportedFeatures"] = [{"name": name} for name in update.features]
    changed = {field: value for field, value in wanted.items() if value != (present.get(field) or [])}
    return changed or None


def export_status(update: StatusUpdate, current: JsonObject) -> JsonObject | None:
    """Return the part of a ServiceExport's status to write; None if there is nothing to write."""
    said = tuple(one for one in update.conditions if one.type in _OF_EXPORTS and one.part is None)
    if not said:
        return None
    present: list[JsonObject] = (current.get("status") or {}).get("conditions") or []
    wanted = merge_conditions(update, said, present)
    return None if wanted == present else {"conditions": wanted}


_PASSING: Final = (ConditionType.INSECURE_FRONTEND,)
"""Types that are ours alone, and not there at all while nothing is said of them."""


def merge_conditions(
    update: StatusUpdate, said: Sequence[StatusCondition], present: Sequence[JsonObject]
) -> list[JsonObject]:
    """Return conditions as they should stand there: ours, then those of other types that are there already."""
    before = {condition.get("type"): condition for condition in present}
    types = {str(condition.type) for condition in said} | set(_PASSING)
    others = [condition for condition in present if condition.get("type") not in types]
    return [*(write_condition(update, condition, before, "") for condition in said), *others]


def write_condition(
    update: StatusUpdate, condition: StatusCondition, present: dict[object, JsonObject], prefix: str = PREFIX
) -> JsonObject:
    """Return a condition as it should stand there: what stands there by its type already, if it says the same."""
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
