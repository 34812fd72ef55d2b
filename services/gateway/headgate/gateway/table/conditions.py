"""Conditions of routes, compiled to functions of a request.

A condition is a tree of comparisons; each becomes a closure over what it needs, sorted out once: the commonest ones, a
method or one header, are a look-up and a comparison. What cannot be told before the body was read is unknown, and
unknown goes through the tree as in Kleene's logic: a condition that fails for its method never asks for the body.

Values are compared as bytes. Case is ignored for ASCII letters only.
"""

import ipaddress
import operator
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache

from headgate.common.table import AllOf, AnyOf, Compare, Condition, Not, Operator, Subject
from headgate.gateway.errors import BadMatch
from headgate.gateway.model.patterns import compile_pattern
from headgate.gateway.proxy.heads.facts import RequestFacts
from headgate.gateway.proxy.heads.paths import decode_path

Decide = Callable[[RequestFacts], bool | None]
"""True, False, or None: unknown without the body."""
Get = Callable[[RequestFacts], bytes | None]
Test = Callable[[bytes], bool]

MAX_DEPTH = 32
"""Levels of a condition; deeper ones are refused."""
_SHARED_CONDITIONS = 256
"""Conditions that are remembered compiled: the routes of many objects often ask the same besides host and path."""
_NUMBER = re.compile(rb"[+-]?(?:[0-9]{1,64}(?:\.[0-9]{0,64})?|\.[0-9]{1,64})")
_FOLDED_SUBJECTS = {Subject.HOST, Subject.SCHEME}


class CompiledCondition:
    """A condition that can be asked.

    Attributes:
        decide: tells whether a request satisfies it; None: that depends on a body that was not read yet.
        needs_body: whether `decide` can give None.
    """

    __slots__ = ("decide", "needs_body")

    def __init__(self, decide: Decide, *, needs_body: bool) -> None:
        self.decide = decide
        self.needs_body = needs_body

    def takes(self, facts: RequestFacts) -> bool:
        """Tell whether a request satisfies the condition; one that cannot be told yet does not."""
        return self.decide(facts) is True


@lru_cache(_SHARED_CONDITIONS)
def compile_condition(condition: Condition, field: str = "when") -> CompiledCondition:
    """Compile a condition that stands at `field` of its route: once for all routes that ask the same.

    Raises:
        BadMatch: a pattern, number or network cannot be read, or the condition is nested too deep.
    """
    decide, needs_body = _compile(condition, field, MAX_DEPTH)
    return CompiledCondition(decide, needs_body=needs_body)


def and_body(condition: CompiledCondition | None) -> CompiledCondition:
    """Return a condition that is unknown, where it would be true, for as long as the body was not read."""

    def decide(facts: RequestFacts) -> bool | None:
        verdict = condition is None or condition.decide(facts)
        return None if verdict and facts.body is None else verdict

    return CompiledCondition(decide, needs_body=True)


def _compile(condition: Condition, field: str, depth: int) -> tuple[Decide, bool]:
    if depth == 0:
        raise BadMatch(field, f"more than {MAX_DEPTH} levels deep")
    match condition:
        case Compare():
            return _compile_compare(condition, field), condition.subject is Subject.BODY
        case Not():
            decide, needs_body = _compile(condition.negated, f"{field}.negated", depth - 1)
            return (_not_known(decide) if needs_body else _not(decide)), needs_body
        case AllOf():
            return _compile_parts(condition.all_of, f"{field}.all_of", depth, wanted=True)
        case AnyOf():
            return _compile_parts(condition.any_of, f"{field}.any_of", depth, wanted=False)


def _compile_parts(parts: Sequence[Condition], field: str, depth: int, *, wanted: bool) -> tuple[Decide, bool]:
    """Compile parts that are true if all are (`wanted`), or false if all are not."""
    compiled = [_compile(part, f"{field}[{index}]", depth - 1) for index, part in enumerate(parts)]
    needs_body = any(needs for _, needs in compiled)
    # Parts that need a body come last, for the others to decide without it.
    decides = tuple(decide for decide, _ in sorted(compiled, key=lambda part: part[1]))
    if len(decides) == 1:
        return decides[0], needs_body
    return (_all_known if needs_body else _all)(decides, wanted=wanted), needs_body


def _not(decide: Decide) -> Decide:
    return lambda facts: not decide(facts)


def _not_known(decide: Decide) -> Decide:
    def negated(facts: RequestFacts) -> bool | None:
        verdict = decide(facts)
        return None if verdict is None else not verdict

    return negated


def _all(decides: tuple[Decide, ...], *, wanted: bool) -> Decide:
    def all_of(facts: RequestFacts) -> bool:
        for decide in decides:
            if decide(facts) is not wanted:
                return not wanted
        return wanted

    return all_of


def _all_known(decides: tuple[Decide, ...], *, wanted: bool) -> Decide:
    def all_of(facts: RequestFacts) -> bool | None:
        result: bool | None = wanted
        for decide in decides:
            verdict = decide(facts)
            if verdict is None:
                result = None
            elif verdict is not wanted:
                return not wanted
        return result

    return all_of


# Comparisons


def _compile_compare(compare: Compare, field: str) -> Decide:
    if compare.subject is Subject.ALPN:
        raise BadMatch(field, "protocols of the ClientHello are for stream routes only")
    if compare.subject is Subject.BODY:
        return _compile_body(compare, field)
    if compare.any_value and compare.operator is not Operator.PRESENT:
        return _compile_any_value(compare, field)
    get = subject_getter(compare)
    if compare.operator is Operator.PRESENT:
        decide: Decide = lambda facts: get(facts) is not None  # noqa: E731 - one of a family of closures
    elif compare.operator is Operator.EQUALS and compare.subject in _DIRECT and not _is_special(compare):
        decide = _DIRECT[compare.subject](compare)
    else:
        test = _compile_test(compare, field)

        def decide(facts: RequestFacts) -> bool | None:
            value = get(facts)
            return value is not None and test(value)

    return decide


def _is_special(compare: Compare) -> bool:
    return compare.ignore_case or compare.semicolons


def _compile_any_value(compare: Compare, field: str) -> Decide:
    """Compile a comparison that one value of a header or a query parameter has to hold."""
    test = _compile_test(compare, field)
    name = compare.name.encode()
    if compare.semicolons:
        return lambda facts: any(map(test, facts.query_values(name, True)))
    if compare.subject is Subject.QUERY:
        return lambda facts: any(map(test, facts.query_values(name)))
    folded = name.lower()
    return lambda facts: any(map(test, facts.header_values(folded)))


def _compile_body(compare: Compare, field: str) -> Decide:
    """Compile a comparison that one of the fields has to hold which the name stands for."""
    name = compare.name
    test = None if compare.operator is Operator.PRESENT else _compile_test(compare, field)

    def decide(facts: RequestFacts) -> bool | None:
        fields = facts.body_fields()
        if fields is None:
            return None
        values = fields.all(name)
        return bool(values) if test is None else any(test(value.encode("utf-8", "replace")) for value in values)

    return decide


def _method_equals(compare: Compare) -> Decide:
    methods = frozenset(value.encode() for value in compare.values)
    return lambda facts: facts.method in methods


def _header_equals(compare: Compare) -> Decide:
    name = compare.name.lower().encode()
    if len(compare.values) == 1:
        wanted = compare.values[0].encode()
        return lambda facts: facts.header(name) == wanted
    values = frozenset(value.encode() for value in compare.values)
    return lambda facts: facts.header(name) in values


_DIRECT: dict[Subject, Callable[[Compare], Decide]] = {
    Subject.METHOD: _method_equals,
    Subject.HEADER: _header_equals,
}


def subject_getter(compare: Compare) -> Get:
    """Return what gets the value that a comparison looks at; None is absent."""
    name = compare.name.encode()
    match compare.subject:
        case Subject.HEADER:
            folded = name.lower()
            return lambda facts: facts.header(folded)
        case Subject.QUERY if compare.semicolons:
            return lambda facts: next(iter(facts.query_values(name, True)), None)
        case Subject.QUERY:
            return lambda facts: facts.query_value(name)
        case Subject.COOKIE:
            return lambda facts: facts.cookie(name)
        case Subject.BODY:
            return _body_getter(compare.name)
        case _:
            return _PLAIN_GETTERS[compare.subject]


_PLAIN_GETTERS: dict[Subject, Get] = {
    Subject.METHOD: lambda facts: facts.method,
    Subject.SCHEME: lambda facts: facts.scheme,
    Subject.TRANSPORT: lambda facts: facts.transport,
    Subject.HOST: lambda facts: facts.host or None,
    Subject.PATH: lambda facts: facts.path,
    Subject.DECODED_PATH: lambda facts: decode_path(facts.path),
    Subject.QUERY_STRING: lambda facts: facts.query or None,
    Subject.TARGET: lambda facts: facts.target,
    Subject.CLIENT: lambda facts: facts.client,
    Subject.PEER: lambda facts: facts.peer,
}


def _body_getter(name: str) -> Get:
    def get(facts: RequestFacts) -> bytes | None:
        fields = facts.body_fields()
        value = None if fields is None else fields.first(name)
        return None if value is None else value.encode("utf-8", "replace")

    return get


# Tests of a value that is there


def _compile_test(compare: Compare, field: str) -> Test:
    match compare.operator:
        case Operator.REGEX:
            return _any_pattern(compare, field)
        case Operator.LESS | Operator.GREATER | Operator.AT_MOST | Operator.AT_LEAST:
            return _number_test(compare, field)
        case Operator.NETWORK:
            return _network_test(compare.values, field)
        case _:
            return _text_test(compare)


def _text_test(compare: Compare) -> Test:
    fold = compare.ignore_case or compare.subject in _FOLDED_SUBJECTS
    values = tuple(value.encode().lower() if fold else value.encode() for value in compare.values)
    test = _TEXT_TESTS[compare.operator](values)
    return (lambda value: test(value.lower())) if fold else test


def _any_contained(values: tuple[bytes, ...]) -> Test:
    return lambda value: any(part in value for part in values)


_TEXT_TESTS: dict[Operator, Callable[[tuple[bytes, ...]], Test]] = {
    Operator.EQUALS: lambda values: frozenset(values).__contains__,
    Operator.PREFIX: lambda values: lambda value: value.startswith(values),
    Operator.SUFFIX: lambda values: lambda value: value.endswith(values),
    Operator.CONTAINS: _any_contained,
}


def _any_pattern(compare: Compare, field: str) -> Test:
    searches = [
        compile_pattern(value, f"{field}.values[{index}]", ignore_case=compare.ignore_case).search
        for index, value in enumerate(compare.values)
    ]
    if len(searches) == 1:
        search = searches[0]
        return lambda value: search(value) is not None
    return lambda value: any(search(value) is not None for search in searches)


def _number_test(compare: Compare, field: str) -> Test:
    bounds = [_number(value.encode()) for value in compare.values]
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        raise BadMatch(f"{field}.values[{bounds.index(None)}]", "expected a decimal number like -1.5")
    # Values are alternatives, so only the one that is easiest to satisfy counts.
    bound = max(known) if compare.operator in (Operator.LESS, Operator.AT_MOST) else min(known)
    holds = _COMPARISONS[compare.operator]
    return lambda value: (number := _number(value)) is not None and holds(number, bound)


_COMPARISONS: dict[Operator, Callable[[Decimal, Decimal], bool]] = {
    Operator.LESS: operator.lt,
    Operator.GREATER: operator.gt,
    Operator.AT_MOST: operator.le,
    Operator.AT_LEAST: operator.ge,
}


def _number(text: bytes) -> Decimal | None:
    """Read a plain decimal number; Decimal alone takes `nan`, `1_0`, exponents and digits of other scripts too."""
    return Decimal(text.decode()) if _NUMBER.fullmatch(text) else None


def _network_test(values: Sequence[str], field: str) -> Test:
    networks: dict[tuple[int, int], set[int]] = {}
    for index, value in enumerate(values):
        try:
            network = ipaddress.ip_network(value, strict=False)
        except ValueError as error:
            raise BadMatch(
                f"{field}.values[{index}]", f"{value!r} is no network: expected 10.0.0.0/8 or ::/0"
            ) from error
        shift = network.max_prefixlen - network.prefixlen
        networks.setdefault((network.version, shift), set()).add(int(network.network_address) >> shift)
    # One look-up for each length of prefix, however many networks there are.
    shifts = [(version, shift, frozenset(members)) for (version, shift), members in networks.items()]

    def test(value: bytes) -> bool:
        parsed = _address(value)
        if parsed is None:
            return False
        version, number = parsed
        return any(kind == version and number >> shift in members for kind, shift, members in shifts)

    return test


@lru_cache(4096)
def _address(text: bytes) -> tuple[int, int] | None:
    """Read an address as its version and number; IPv4 within IPv6 is IPv4."""
    try:
        address = ipaddress.ip_address(text.decode("ascii"))
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.version, int(address)
