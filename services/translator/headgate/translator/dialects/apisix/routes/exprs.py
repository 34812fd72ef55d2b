"""`match.exprs` as conditions of the table.

What each operator does with an absent value follows lua-resty-expr: the negated ones hold, all others do not.
"""

import re
from collections.abc import Callable

from headgate.common.plugins.expressions import body_path
from headgate.common.problems import Problem
from headgate.common.table import AllOf, Compare, Condition, Not, Operator, Subject
from headgate.translator.dialects.apisix.models.route import Expr
from headgate.translator.dialects.apisix.models.route import Subject as ExprSubject
from headgate.translator.manifests.specs import refuse
from headgate.translator.manifests.texts import regex

_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,64}(?:\.[0-9]{0,64})?|\.[0-9]{1,64})")
_OPERATORS: dict[str, tuple[Operator, bool, bool]] = {
    "Equal": (Operator.EQUALS, False, False),
    "NotEqual": (Operator.EQUALS, True, False),
    "GreaterThan": (Operator.GREATER, False, False),
    "GreaterThanEqual": (Operator.AT_LEAST, False, False),
    "LessThan": (Operator.LESS, False, False),
    "LessThanEqual": (Operator.AT_MOST, False, False),
    "In": (Operator.EQUALS, False, False),
    "NotIn": (Operator.EQUALS, True, False),
    "RegexMatch": (Operator.REGEX, False, False),
    "RegexNotMatch": (Operator.REGEX, True, False),
    "RegexMatchCaseInsensitive": (Operator.REGEX, False, True),
    "RegexNotMatchCaseInsensitive": (Operator.REGEX, True, True),
}
"""The table's operator, whether the result is negated, and whether case is ignored."""
_SETS = ("In", "NotIn")
_NUMERIC = (Operator.LESS, Operator.GREATER, Operator.AT_LEAST, Operator.AT_MOST)
_SCOPES = {"Query": Subject.QUERY, "Header": Subject.HEADER, "Cookie": Subject.COOKIE, "Body": Subject.BODY}
_VARIABLES = {
    "args": (Subject.QUERY_STRING, ""),
    "content_length": (Subject.HEADER, "content-length"),
    "content_type": (Subject.HEADER, "content-type"),
    "host": (Subject.HOST, ""),
    "query_string": (Subject.QUERY_STRING, ""),
    "remote_addr": (Subject.CLIENT, ""),
    "request_method": (Subject.METHOD, ""),
    "request_uri": (Subject.TARGET, ""),
    "scheme": (Subject.SCHEME, ""),
    "server_name": (Subject.HOST, ""),
    "uri": (Subject.PATH, ""),
}
_FAMILIES: dict[str, tuple[Subject, Callable[[str], str]]] = {
    "arg_": (Subject.QUERY, str),
    "cookie_": (Subject.COOKIE, str),
    "http_": (Subject.HEADER, lambda name: name.replace("_", "-")),
    "post_arg.": (Subject.BODY, body_path),
    "post_arg_": (Subject.BODY, body_path),
}


def read_expr(expr: Expr, field: str, problems: list[Problem]) -> Condition | None:
    """Return an expression as a condition; None where it cannot be read, which goes to `problems`."""
    try:
        subject, name = read_subject(expr.subject)
    except ValueError as error:
        problems.append(refuse("InvalidSpec", f"{field}.subject.name", str(error), expr.subject.name))
        return None
    operator, is_negated, ignore_case = _OPERATORS[expr.op]
    try:
        values = _values(expr, operator)
    except ValueError as error:
        place, written = ("set", list(expr.set)) if expr.op in _SETS else ("value", expr.value)
        problems.append(refuse("InvalidSpec", f"{field}.{place}", str(error), written))
        return None
    compare = Compare(subject=subject, name=name, operator=operator, values=values, ignore_case=ignore_case)
    return Not(negated=compare) if is_negated else compare


def _values(expr: Expr, operator: Operator) -> tuple[str, ...]:
    if expr.op in _SETS:
        if not expr.set:
            raise ValueError(f"must be a list of texts, as the op is {expr.op}")
        return expr.set
    if expr.value is None:
        raise ValueError(f"must be given, as the op is {expr.op}")
    if operator in _NUMERIC and not _NUMBER.fullmatch(expr.value):
        raise ValueError("must be a number such as 18 or -1.5: this op compares numbers")
    if operator is Operator.REGEX:
        return (regex(expr.value),)
    return (expr.value,)


def read_subject(subject: ExprSubject) -> tuple[Subject, str]:
    """Return what an expression looks at, and its name there. Raises ValueError."""
    if subject.scope == "Path":
        return Subject.PATH, ""
    if not subject.name:
        raise ValueError(f"must be given, as the scope is {subject.scope}")
    if subject.scope == "Variable":
        return read_variable(subject.name)
    name = body_path(subject.name) if subject.scope == "Body" else subject.name
    return _SCOPES[subject.scope], name


def read_variable(variable: str) -> tuple[Subject, str]:
    """Return what a variable of nginx stands for. Raises ValueError."""
    if variable in _VARIABLES:
        return _VARIABLES[variable]
    for prefix, (subject, read) in _FAMILIES.items():
        name = variable.removeprefix(prefix)
        if name and name != variable:
            return subject, read(name)
    known = ", ".join((*_VARIABLES, "arg_NAME", "cookie_NAME", "http_NAME", "post_arg.NAME"))
    raise ValueError(f"there is no variable of this name for routing; there are {known}")


def all_of(conditions: list[Condition]) -> Condition | None:
    """Return one condition of several; None of none."""
    return AllOf(all_of=tuple(conditions)) if len(conditions) > 1 else next(iter(conditions), None)
