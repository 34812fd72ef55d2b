"""Conditions in words: what they ask for, and which part of one a request fails."""

from headgate.common.table import AllOf, AnyOf, Compare, Condition, Not, Operator, Subject
from headgate.gateway.proxy.heads.facts import RequestFacts
from headgate.gateway.table.conditions import compile_condition, subject_getter

_SHOWN = 64
"""Characters of a request's value that are shown."""

_VERBS = {
    Operator.PRESENT: "is present",
    Operator.EQUALS: "is",
    Operator.PREFIX: "begins with",
    Operator.SUFFIX: "ends with",
    Operator.CONTAINS: "contains",
    Operator.REGEX: "matches",
    Operator.LESS: "is less than",
    Operator.GREATER: "is greater than",
    Operator.AT_MOST: "is at most",
    Operator.AT_LEAST: "is at least",
    Operator.NETWORK: "is within",
}
_NOUNS = {
    Subject.HEADER: "header",
    Subject.QUERY: "query parameter",
    Subject.QUERY_STRING: "query",
    Subject.TARGET: "path with query",
    Subject.COOKIE: "cookie",
    Subject.CLIENT: "client address",
    Subject.PEER: "address of who is connected",
    Subject.ALPN: "protocol that the client offers",
    Subject.DECODED_PATH: "path with its escapes decoded",
    Subject.BODY: "body field",
}


def describe(condition: Condition) -> str:
    """Say what a condition asks for: `method is GET and (header x-a is 1 or header x-a is absent)`."""
    match condition:
        case Compare():
            return f"{_name(condition)} {_predicate(condition)}"
        case Not():
            return f"not ({describe(condition.negated)})"
        case AllOf():
            return _joined(condition.all_of, " and ") or "always"
        case AnyOf():
            return _joined(condition.any_of, " or ") or "never"


def why_not(condition: Condition, facts: RequestFacts) -> str:
    """Say which part of a condition a request fails; empty if it fails none."""
    if compile_condition(condition).takes(facts):
        return ""
    match condition:
        case Compare():
            return _failed_comparison(condition, facts)
        case Not():
            return f"it must not be that {describe(condition.negated)}"
        case AllOf():
            return next(filter(None, (why_not(part, facts) for part in condition.all_of)))
        case AnyOf():
            return "; and ".join(why_not(part, facts) for part in condition.any_of) or "it is never satisfied"


def _failed_comparison(compare: Compare, facts: RequestFacts) -> str:
    value = subject_getter(compare)(facts)
    if value is None:
        return f"the request has no {_name(compare)}"
    text = value.decode(errors="replace")
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f"{_name(compare)} is {shown!r}, asked for is one that {_predicate(compare)}"


def _joined(parts: tuple[Condition, ...], word: str) -> str:
    texts = (f"({describe(part)})" if isinstance(part, AllOf | AnyOf) else describe(part) for part in parts)
    return word.join(texts)


def _name(compare: Compare) -> str:
    noun = _NOUNS.get(compare.subject, compare.subject.value)
    noun = f"a {noun}" if compare.any_value else noun
    return f"{noun} {compare.name}" if compare.name else noun


def _predicate(compare: Compare) -> str:
    values = " or ".join(repr(value) for value in compare.values)
    folded = " in any case" if compare.ignore_case else ""
    return f"{_VERBS[compare.operator]} {values}{folded}".strip()
