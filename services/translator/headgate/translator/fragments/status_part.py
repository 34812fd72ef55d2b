"""Parts of an object's status that have conditions of their own.

These are the objects that a policy is about, the parents that a route is attached to, and the listeners of a Gateway.
What is wrong at the field where the object names a part is wrong for this part alone. What is wrong elsewhere in the
object is wrong for all of its parts.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.status import ConditionType, PartRef


class SaidCondition(NamedTuple):
    """A condition as its dialect says it."""

    type: ConditionType
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""


class StatusPart(NamedTuple):
    """One part of an object's status."""

    ref: PartRef
    field: str
    """Where the object names it, such as `spec.targetRefs[0]` or `spec.listeners[1]`. Empty for an object that cannot
    be followed at all."""
    said: tuple[SaidCondition, ...] = ()
    """Conditions that go in the place of those that follow from the object's problems, and beside them."""

    def stands(self, problems: Iterable[Problem]) -> bool:
        """Whether this part is in force, as its dialect says or else by the object's problems."""
        for one in self.said:
            if one.type is ConditionType.ACCEPTED:
                return one.status == "True"
        return not self.errors_in(problems)

    def errors_in(self, problems: Iterable[Problem]) -> list[Problem]:
        """Return which of an object's problems keep this part from being served."""
        errors = (problem for problem in problems if problem.severity is Severity.ERROR)
        return [one for one in errors if self._has(one.field) or not self._is_of_sibling(one.field)]

    def own_errors_in(self, problems: Iterable[Problem]) -> list[Problem]:
        """Return those of them that are at the field of this part, and so wrong for it alone."""
        return [one for one in self.errors_in(problems) if self._has(one.field)]

    def _has(self, field: str) -> bool:
        return bool(self.field) and _is_within(field, self.field)

    def _is_of_sibling(self, field: str) -> bool:
        siblings, bracket, _ = self.field.partition("[")
        return bool(bracket) and field.startswith(siblings + bracket)


def _is_within(field: str, whole: str) -> bool:
    """Whether a field is another one or stands in it; `spec.a[10]` does not stand in `spec.a[1]`."""
    return field.startswith(whole) and field[len(whole) : len(whole) + 1] in ("", ".", "[")
