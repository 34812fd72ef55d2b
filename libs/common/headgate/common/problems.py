"""What a user is told when something that they wrote is wrong.

One value feeds `headgate check`, the conditions and Events on the object, the webhook and the console, so that
the same mistake reads the same everywhere.
"""

from collections.abc import Iterable
from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Severity(StrEnum):
    """How much of the object still works."""

    ERROR = "error"
    """The named part of the object is not served."""
    WARNING = "warning"
    """Served, but perhaps not as its author expects."""
    INFO = "info"
    """Nothing is wrong: shown to users who ask about the object, and counted, logged and reported nowhere else."""


LETS_IN = "GuardIgnored"
"""Reason of a warning: requests come in that this part of the object keeps out where it comes from."""


class Problem(BaseModel):
    """Something wrong with one object, said so that its author can mend it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    severity: Severity = Severity.ERROR
    reason: str
    """CamelCase word for machines, as in Kubernetes conditions: `ServiceNotFound`."""
    field: str = ""
    """Path of the field, as kubectl prints it: `spec.rules[0].http.paths[1].backend.service.port.name`."""
    value: str | None = None
    """What stands there; cut to 120 characters, `***` for secrets."""
    message: str
    """One sentence: what is wrong and what would be right."""

    def __str__(self) -> str:
        at = f"{self.field}: " if self.field else ""
        return f"{at}{self.message}"


def worst(problems: Iterable[Problem]) -> Severity:
    """Return the severity of the worst of some problems."""
    return min((problem.severity for problem in problems), key=[*Severity].index)
