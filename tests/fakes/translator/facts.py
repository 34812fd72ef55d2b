"""What is known of an object, and what its status says then."""

from datetime import UTC, datetime
from typing import Any

from fakes.translator.deltas import ref_of, service
from headgate.common.problems import Problem
from headgate.common.snapshot import Version
from headgate.common.status import (
    ConditionType,
)
from headgate.translator.assembly.conditions import ObjectStatus
from headgate.translator.fragments.fragment import Identity
from headgate.translator.serving.fleet import Fleet, Replica
from headgate.translator.status.conditions import DesiredCondition, Facts
from headgate.translator.status.desired import (
    DesiredStatus,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

IDENTITY = Identity(ref_of(service()), "v1", "Service", "u", generation=4)

BAD = Problem(reason="InvalidPort", field="spec.ports[0].port", message="must be a number")

R1, R2, R3 = Version(7, 1), Version(7, 2), Version(7, 3)

TWO = Fleet((Replica("g1", R2), Replica("g2", R2)))


def facts(*problems: Problem, is_accepted: bool = True, **changes: Any) -> Facts:
    condition = ObjectStatus(is_accepted, problems, changes.pop("errors", ()), changes.pop("unresolved", ()))
    values = {
        "stand_in": None,
        "content": "c1",
        "version": R2,
        "pinned": None,
        "rollout": None,
        "addresses": None,
        **changes,
    }
    return Facts(
        changes.pop("identity", IDENTITY), condition, **{key: values[key] for key in values if key != "identity"}
    )


def told(wanted: DesiredStatus, which: ConditionType) -> DesiredCondition:
    return next(said for said in wanted.conditions if said.type is which)


def programmed(wanted: DesiredStatus) -> tuple[str, str]:
    said = told(wanted, ConditionType.PROGRAMMED)
    return said.status, said.reason
