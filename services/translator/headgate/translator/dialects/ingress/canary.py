"""Canaries: which requests an Ingress takes from another one, by the order of ingress-nginx.

The header decides first, then the cookie, then the weight (ingress-nginx `route_to_alternative_balancer`). A header
with a value or a pattern of its own decides for the canary only. Unlike there, a route may have several canaries.
"""

from collections.abc import Mapping
from typing import Any

from headgate.common.table import AllOf, AnyOf, Canary, Compare, Condition, Not, Operator, Subject
from headgate.translator.annotations import Reading

_ALWAYS, _NEVER = "always", "never"


def read_canary(reading: Reading) -> Canary | None:
    """Return the canary that an Ingress is, its upstream left empty; None where it is none."""
    written = reading.group("canary")
    if not written.get("is_canary"):
        for name in reading.written("canary"):
            if name != "canary" and "canary" not in reading.unreadable:
                reading.refuse(name, 'must be together with canary: "true"')
        return None
    if "header" not in written:
        for further in ("canary-by-header-value", "canary-by-header-regex"):
            if further in reading.written("canary"):
                reading.refuse(further, "must be together with canary-by-header")
    return make_canary(written, written.get("weight", 0) / 100)


def make_canary(written: Mapping[str, Any], share: float) -> Canary:
    """Return a canary by what is written of header and cookie; `share` of the requests for which these do not decide.

    Fields are `header`, `header_value`, `header_regex` and `cookie`. A `header_regex` that is None could not be
    compiled: requests with the header stay where they are.
    """
    when, unless = _by_header(written)
    if "cookie" in written:
        when, unless = _then_by_cookie(written["cookie"], when, unless)
    return Canary(upstream="", when=when, unless=unless, share=share)


def _by_header(written: Mapping[str, Any]) -> tuple[Condition | None, Condition | None]:
    name = written.get("header")
    if name is None:
        return None, None
    if "header_value" in written:
        return Compare(subject=Subject.HEADER, name=name, values=(written["header_value"],)), None
    if "header_regex" in written:
        if written["header_regex"] is None:
            return None, Compare(subject=Subject.HEADER, name=name, operator=Operator.PRESENT)
        pattern = (written["header_regex"],)
        return Compare(subject=Subject.HEADER, name=name, operator=Operator.REGEX, values=pattern), None
    return _is(Subject.HEADER, name, _ALWAYS), _is(Subject.HEADER, name, _NEVER)


def _then_by_cookie(
    name: str, when: Condition | None, unless: Condition | None
) -> tuple[Condition | None, Condition | None]:
    """A canary's `when` is asked before its `unless`, so a header's refusal has to be said in the cookie's `when`."""
    always: Condition = _is(Subject.COOKIE, name, _ALWAYS)
    if unless is not None:
        always = AllOf(all_of=(Not(negated=unless), always))
    never = _is(Subject.COOKIE, name, _NEVER)
    return (AnyOf(any_of=(when, always)) if when else always), (AnyOf(any_of=(unless, never)) if unless else never)


def _is(subject: Subject, name: str, value: str) -> Compare:
    return Compare(subject=subject, name=name, values=(value,))


def narrow(canary: Canary, condition: Condition | None) -> Canary:
    """Return a canary that takes only requests with a condition."""
    if condition is None:
        return canary
    outside: Condition = Not(negated=condition)
    when = None if canary.when is None else AllOf(all_of=(condition, canary.when))
    unless = outside if canary.unless is None else AnyOf(any_of=(outside, canary.unless))
    return canary.model_copy(update={"when": when, "unless": unless})
