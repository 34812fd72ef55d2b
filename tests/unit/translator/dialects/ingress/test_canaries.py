"""Canaries decide as ingress-nginx does: the header first, then the cookie, then the weight."""

import re
from collections.abc import Mapping

import pytest

from headgate.common.table import AllOf, AnyOf, Canary, Compare, Condition, Not, Operator, Subject
from headgate.translator.annotations import read_annotations
from headgate.translator.dialects.ingress.canary import narrow, read_canary

Request = Mapping[Subject, Mapping[str, str]]


def canary(**annotations: str) -> Canary:
    written = {f"headgate.dev/{name.replace('_', '-')}": text for name, text in annotations.items()}
    found = read_canary(read_annotations("Ingress", {"headgate.dev/canary": "true", **written}))
    assert found is not None
    return found


def holds(condition: Condition | None, request: Request) -> bool:
    match condition:
        case None:
            return False
        case AllOf():
            return all(holds(part, request) for part in condition.all_of)
        case AnyOf():
            return any(holds(part, request) for part in condition.any_of)
        case Not():
            return not holds(condition.negated, request)
    value = request.get(condition.subject, {}).get(condition.name)
    return value is not None and _compares(condition, value)


def _compares(compare: Compare, value: str) -> bool:
    if compare.operator is Operator.REGEX:
        return any(re.search(pattern, value) for pattern in compare.values)
    return value in compare.values


def decision(of: Canary, header: str | None = None, cookie: str | None = None, method: str = "GET") -> str:
    request = {
        Subject.HEADER: {} if header is None else {"x-canary": header},
        Subject.COOKIE: {} if cookie is None else {"canary": cookie},
        Subject.METHOD: {"": method},
    }
    return "canary" if holds(of.when, request) else "main" if holds(of.unless, request) else "weight"


@pytest.mark.parametrize(
    ("header", "cookie", "decided"),
    [
        (None, None, "weight"),
        ("always", None, "canary"),
        ("never", None, "main"),
        ("other", None, "weight"),
        (None, "always", "canary"),
        (None, "never", "main"),
        ("other", "never", "main"),
        ("always", "never", "canary"),
        ("never", "always", "main"),
    ],
)
def test_the_header_goes_before_the_cookie(header: str | None, cookie: str | None, decided: str) -> None:
    both = canary(canary_by_header="x-canary", canary_by_cookie="canary")
    assert decision(both, header, cookie) == decided


@pytest.mark.parametrize(("header", "decided"), [("beta", "canary"), ("always", "weight"), ("never", "weight")])
def test_a_value_of_its_own_takes_the_place_of_always_and_never(header: str, decided: str) -> None:
    assert decision(canary(canary_by_header="x-canary", canary_by_header_value="beta"), header) == decided


def test_a_value_goes_before_a_pattern() -> None:
    either = {"canary_by_header": "x-canary", "canary_by_header_regex": "^b"}
    assert decision(canary(**either), "beta") == "canary"
    assert decision(canary(**either, canary_by_header_value="other"), "beta") == "weight"


def test_the_cookie_decides_what_a_value_of_the_header_does_not() -> None:
    both = canary(canary_by_header="x-canary", canary_by_header_value="beta", canary_by_cookie="canary")
    assert decision(both, "other", "never") == "main"
    assert decision(both, "beta", "never") == "canary"


def test_the_weight_is_a_percentage() -> None:
    assert canary(canary_weight="5").share == 0.05


def test_a_narrowed_canary_takes_nothing_else_whatever_the_weight() -> None:
    narrowed = narrow(canary(canary_by_header="x-canary"), Compare(subject=Subject.METHOD, values=("GET",)))
    assert decision(narrowed, "always") == "canary"
    assert decision(narrowed, "always", method="POST") == "main"
    assert decision(narrowed) == "weight"
    assert decision(narrowed, method="POST") == "main"
