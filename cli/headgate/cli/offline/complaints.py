"""What `explain` says of objects with problems that ask for the host and the path of a request."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from headgate.cli.offline.claims import ALL, Claim, concerned, find_claims
from headgate.common.problems import Problem, Severity
from headgate.common.resources import JsonObject
from headgate.operations.status.suspects import Suspect

if TYPE_CHECKING:
    from headgate.gateway.table.explaining.explanation import Explanation


class Complaint(NamedTuple):
    """What is wrong with an object that asks for the host and the path."""

    suspect: Suspect
    problem: Problem
    lost: str = ""
    """The route that is not served: `a.example/api`; empty if the object has one that takes the path."""

    def __str__(self) -> str:
        where = f"{self.suspect.file}:{self.suspect.line}: " if self.suspect.file else ""
        fate = f"its route {self.lost} is not served: " if self.lost else ""
        return f"{where}{self.problem.severity}: {self.suspect}: {fate}{self.problem} [{self.problem.reason}]"

    def as_json(self) -> JsonObject:
        """Return it as JSON data."""
        place = {"file": self.suspect.file, "line": self.suspect.line} if self.suspect.file else {}
        return {**place, "object": str(self.suspect), **self.problem.model_dump(mode="json"), "lost_route": self.lost}


def complaints(explanation: "Explanation", suspects: Iterable[Suspect]) -> list[Complaint]:
    """Return what is wrong with the parts of objects that ask for what was asked: lost routes first, then errors."""
    found = (complaint for suspect in suspects for complaint in _of_object(explanation, suspect))
    return sorted(found, key=lambda one: (not one.lost, one.problem.severity is not Severity.ERROR))


def _of_object(explanation: "Explanation", suspect: Suspect) -> Iterator[Complaint]:
    claims = find_claims(suspect.manifest, explanation.host, explanation.read_path or explanation.path)
    for problem in suspect.problems:
        if (claim := concerned(claims, problem)) is not None:
            is_lost = problem.severity is Severity.ERROR and _is_lost(explanation, suspect, claim)
            yield Complaint(suspect, problem, str(claim) if is_lost else "")


def _is_lost(explanation: "Explanation", suspect: Suspect, claim: Claim) -> bool:
    """Whether the object has no route that takes the path, as far as the explanation looked."""
    if not claim.is_route or (_passed_over(explanation) and (claim.host == ALL or claim.host.startswith("*."))):
        return False
    served = (one.provenance for one in explanation.candidates if one.takes_path and one.provenance)
    name = (suspect.kind, suspect.namespace, suspect.name)
    return all((one.kind, one.namespace, one.name) != name for one in served)


def _passed_over(explanation: "Explanation") -> bool:
    """Whether less specific hosts were not looked at, as a better one takes the request."""
    return any(not one.route for one in explanation.candidates)
