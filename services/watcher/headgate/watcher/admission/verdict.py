"""From what a translator says of an object to what the API server is told.

Limits of the API (https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#response):
warnings are cut at 256 characters and dropped when all of a request exceed 4096, and one with a control character is
dropped as a whole; a refusal's message has no limit but that of patience.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from headgate.common.admission import Basis, Finding, Opinion, Outcome
from headgate.common.problems import Severity
from headgate.common.status import in_table
from headgate.watcher.admission.review import Refusal

MAX_WARNING = 256
MAX_WARNINGS = 15
"""With one line for those that are left out, 4096 characters."""
MAX_FAULTS = 20
MAX_LINE = 1024
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\s]+")


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """What the settings say."""

    on_failure: Literal["ignore", "fail"]
    """What becomes of objects that could not be judged."""
    missing_references: Literal["warn", "deny"]
    """What becomes of objects that refer to what is not there, or cannot be used."""


class TableOpinion(NamedTuple):
    """What a table's translator says."""

    table: str
    opinion: Opinion


class AdmissionVerdict(NamedTuple):
    """What the API server is told."""

    refusal: Refusal | None = None
    warnings: tuple[str, ...] = ()


LET_PASS = AdmissionVerdict()


def join(answers: Iterable[TableOpinion]) -> Opinion:
    """Return what all tables that judged an object say of it; what is wrong in several is said once.

    What an object lacks by itself it lacks everywhere; of other findings it is said in which table, by its name.
    """
    judged = [one for one in answers if one.opinion.outcome is Outcome.JUDGED]
    found = dict.fromkeys(_in_table(table, finding) for table, opinion in judged for finding in opinion.findings)
    ranked = sorted(found, key=lambda finding: (finding.problem.severity is not Severity.ERROR, not finding.is_new))
    omitted = sum(one.opinion.omitted for one in judged)
    return Opinion(outcome=Outcome.JUDGED, findings=tuple(ranked), omitted=omitted)


def _in_table(table: str, finding: Finding) -> Finding:
    message = finding.problem.message
    if finding.basis is Basis.OWN or in_table(table, message) == message:
        return finding
    problem = finding.problem.model_copy(update={"message": in_table(table, message)})
    return finding.model_copy(update={"problem": problem})


def give_verdict(what: str, opinion: Opinion, policy: AdmissionPolicy) -> AdmissionVerdict:
    """Return what is made of an opinion.

    Args:
        what: the object, as messages name it: `Ingress shop/web`.
        opinion: of an object that was judged.
        policy: of the settings.
    """
    faults = [finding for finding in opinion.findings if _is_held_against(finding, policy)]
    if faults:
        lines = [_line(what, finding) for finding in faults[:MAX_FAULTS]]
        return AdmissionVerdict(Refusal(code=422, reason="Invalid", message=_join(lines, len(faults), opinion.omitted)))
    return AdmissionVerdict(warnings=tuple(_warnings(what, opinion)))


def give_up(what: str, reason: str, policy: AdmissionPolicy) -> AdmissionVerdict:
    """Return what becomes of an object that could not be judged."""
    text = _plain(f"{what} was not checked by Headgate: {reason}")
    if policy.on_failure == "ignore":
        return AdmissionVerdict(warnings=(_cut(text, MAX_WARNING),))
    return AdmissionVerdict(
        Refusal(code=503, reason="ServiceUnavailable", message=f"{_cut(text, MAX_LINE)}; try again later")
    )


def _is_held_against(finding: Finding, policy: AdmissionPolicy) -> bool:
    if finding.problem.severity is not Severity.ERROR or not finding.is_new:
        return False
    return finding.basis is not Basis.REFERENCE or policy.missing_references == "deny"


def _line(what: str, finding: Finding) -> str:
    return _cut(_plain(f"{what}: {finding.problem} [{finding.problem.reason}]"), MAX_LINE)


def _join(lines: Sequence[str], found: int, omitted: int) -> str:
    left_out = found - len(lines) + omitted
    more = [f"and {left_out} more"] if left_out else []
    return lines[0] if found == 1 and not more else "\n".join([f"{found} faults", *lines, *more])


def _warnings(what: str, opinion: Opinion) -> Iterator[str]:
    for finding in opinion.findings[:MAX_WARNINGS]:
        before = "" if finding.is_new else "as before: "
        yield _cut(_plain(f"{what}: {before}{finding.problem} [{finding.problem.reason}]"), MAX_WARNING)
    left_out = len(opinion.findings[MAX_WARNINGS:]) + opinion.omitted
    if left_out:
        yield f"{what}: and {left_out} more"


def _plain(text: str) -> str:
    return _UNPRINTABLE.sub(" ", text).strip()


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
