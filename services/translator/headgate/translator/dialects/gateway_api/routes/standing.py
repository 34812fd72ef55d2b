"""How a route stands with each parent: conditions beside those that follow from its problems."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from headgate.common.problems import Problem
from headgate.common.status import ConditionType
from headgate.translator.dialects.gateway_api.routes.extensions import FILTER_NOT_FOUND, INVALID_FILTER
from headgate.translator.dialects.gateway_api.stored import RouteFacts
from headgate.translator.fragments.status_part import SaidCondition, StatusPart

_REFERENCES: Final = (
    "RefNotPermitted",
    "InvalidKind",
    "BackendNotFound",
    "UnsupportedProtocol",
    FILTER_NOT_FOUND,
    INVALID_FILTER,
)
"""Reasons of what is wrong with references to Services, and to objects that filters name."""


def is_about_references(problems: Sequence[Problem]) -> bool:
    """Whether some of what is wrong is about references."""
    return any(problem.reason in _REFERENCES for problem in problems)


def status_parts(
    facts: RouteFacts, refused: Mapping[str, SaidCondition | None], problems: Sequence[Problem]
) -> Iterator[StatusPart]:
    """Yield how a route stands with each parent that is ours.

    Args:
        facts: which parents it has.
        refused: by the field of each that is ours, why the route is not accepted there; None if it is.
        problems: all that is wrong with the route.
    """
    unresolved = [problem for problem in problems if problem.reason in _REFERENCES]
    if unresolved:
        texts = "; ".join(map(str, unresolved))
        resolved = SaidCondition(ConditionType.RESOLVED_REFS, "False", unresolved[0].reason, texts)
    else:
        resolved = SaidCondition(ConditionType.RESOLVED_REFS, "True", "ResolvedRefs")
    for parent in facts.parents:
        if parent.field in refused:
            why = refused[parent.field]
            yield StatusPart(parent.ref, parent.field, (resolved,) if why is None else (why, resolved))
