"""What several tables say of one object, as the one status that it has.

Addresses are those of all tables. Of each condition the worst counts, with the words of every table that says so: who
waits for a condition waits for all tables, and an object has as many conditions whatever the number of tables. A table
that no longer has the object takes back nothing but its own part.
"""

from collections.abc import Iterable, Iterator, Sequence

from headgate.common.resources import ObjectRef
from headgate.common.status import (
    CONDITION_CHARACTERS,
    ListenerReport,
    StatusCondition,
    StatusUpdate,
    in_table,
    shorten,
)
from headgate.common.table import DEFAULT_TABLE

_RANKS = {"False": 0, "Unknown": 1, "True": 2}
_NOT_KEPT = {"problems": True, "events": True, "last_error": True, "stand_in": True}


class Parts:
    """The last word of every table on each object."""

    def __init__(self) -> None:
        self._parts: dict[ObjectRef, dict[str, bytes]] = {}
        """Encoded: decoded ones take ten times the memory."""

    def take(self, update: StatusUpdate) -> StatusUpdate:
        """Take a table's word; return what all of them want together."""
        parts = self._parts.setdefault(update.ref, {})
        others = [StatusUpdate.model_validate_json(said) for table, said in parts.items() if table != update.table]
        if update.addresses is None and not update.conditions:
            parts.pop(update.table, None)  # the object is gone
        else:
            parts[update.table] = update.model_dump_json(exclude=_NOT_KEPT).encode()
        if not parts:
            del self._parts[update.ref]
        return merge([update, *others])

    def of(self, ref: ObjectRef) -> StatusUpdate | None:
        """Return what all tables want of an object; None if none speaks of it."""
        said = self._parts.get(ref)
        return merge(map(StatusUpdate.model_validate_json, said.values())) if said else None


def merge(parts: Iterable[StatusUpdate]) -> StatusUpdate:
    """Return what one or more tables want of one object; its Events are not merged."""
    ordered = sorted(parts, key=lambda part: (part.table != DEFAULT_TABLE, part.table))
    # Of an object that was made again, a table that was away may still speak of the old one.
    newest = max([part for part in ordered if part.conditions] or ordered, key=lambda part: part.at)
    present = [part for part in ordered if part.uid == newest.uid]
    speaking = [part for part in present if part.conditions]
    addresses = dict.fromkeys(address for part in present for address in part.addresses or ())
    withdrawn = dict.fromkeys(address for part in present for address in part.withdrawn if address not in addresses)
    changes = {
        "generation": min((part.generation for part in speaking), default=newest.generation),
        "is_accepted": any(part.is_accepted for part in present),
        "addresses": None if all(part.addresses is None for part in present) else tuple(addresses),
        "withdrawn": tuple(withdrawn),
        "conditions": tuple(_conditions(speaking)),
        "listeners": tuple(_listeners(speaking)),
        "features": tuple(_features(speaking)),
        "attached_listener_sets": max((part.attached_listener_sets for part in speaking), default=0),
    }
    return newest.model_copy(update=changes)


def _listeners(parts: Sequence[StatusUpdate]) -> Iterator[ListenerReport]:
    """Yield each listener once, with the routes of the table that has most of them: tables may share routes."""
    reports = [report for part in parts for report in part.listeners]
    for name in dict.fromkeys(report.name for report in reports):
        yield max((each for each in reports if each.name == name), key=lambda report: report.attached_routes)


def _features(parts: Sequence[StatusUpdate]) -> list[str]:
    """Return what all tables serve."""
    return sorted(set(parts[0].features).intersection(*(part.features for part in parts))) if parts else []


def _conditions(parts: Sequence[StatusUpdate]) -> Iterator[StatusCondition]:
    for key in dict.fromkeys((one.part, one.type) for part in parts for one in part.conditions):
        yield _worst([(part.table, one) for part in parts for one in part.conditions if (one.part, one.type) == key])


def _worst(said: Sequence[tuple[str, StatusCondition]]) -> StatusCondition:
    status = min((one.status for _, one in said), key=_RANKS.__getitem__)
    worst = [(table, one) for table, one in said if one.status == status]
    message = "; ".join(in_table(table, one.message) for table, one in worst if one.message)
    times = [one.since for _, one in worst]
    since = max(times) if status == "True" else min(times)
    return worst[0][1].model_copy(update={"message": shorten(message, CONDITION_CHARACTERS), "since": since})
