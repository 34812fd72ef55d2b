"""Directives of the rewrite phase: `set`, `if`, `rewrite`, `return`, `break`."""

import re
from collections.abc import Iterator
from typing import Final, Literal

from headgate.common.perl_patterns import compile_perl_pattern
from headgate.common.plugins.traffic.nginx_rewrite import (
    BreakStep,
    IfStep,
    ReturnStep,
    RewriteStep,
    SetStep,
    Step,
    Test,
)
from headgate.translator.snippets.errors import SnippetError
from headgate.translator.snippets.grammar import Directive
from headgate.translator.snippets.level import ErrorAnswer, Program, Said
from headgate.translator.snippets.scope import Scope, definable

_URLS: Final = ("http://", "https://", "$scheme")
_FILE_TESTS: Final = re.compile(r"!?-[fdex]$")
_VARIABLE: Final = re.compile(r"\$(\w+)", re.ASCII)
_OPERATOR: Final = re.compile(r"(!?)(=|~\*?)")
_STATUSES: Final = range(200, 600)
_Flag = Literal["", "last", "break", "redirect", "permanent"]
_FLAGS: Final[dict[str, _Flag]] = {
    "": "",
    "last": "last",
    "break": "break",
    "redirect": "redirect",
    "permanent": "permanent",
}


def read_set(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`set $variable value`."""
    found = _VARIABLE.fullmatch(directive.args[0])
    if found is None:
        raise directive.error(f"{directive.args[0][:40]!r} is not the name of a variable")
    name = definable(directive, found[1])
    yield Program(SetStep(do="set", variable=name, value=scope.template(directive, directive.args[1], is_program=True)))


def read_break(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`break`."""
    yield Program(BreakStep(do="break"))


def read_return(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`return status [text]`, or `return url`."""
    first, rest = directive.args[0], directive.args[1:]
    if first.isascii() and first.isdecimal() and len(first) <= 3:
        if int(first) not in _STATUSES:
            raise directive.error(f"status {first} is not from 200 to 599")
        text = scope.template(directive, rest[0], is_program=True) if rest else None
        yield Program(ReturnStep(do="return", status=int(first), **({} if text is None else {"text": text})))
    elif not rest and first.startswith(_URLS):
        yield Program(ReturnStep(do="return", status=302, text=scope.template(directive, first, is_program=True)))
    else:
        raise directive.error(f"{first[:40]!r} is neither a status nor a URL")


def read_error_page(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`error_page status... [=[status]] address | @name`."""
    *words, target = directive.args
    status: int | None = None
    if words and words[-1].startswith("="):
        written = words.pop()[1:]
        if written and not (written.isascii() and written.isdecimal() and int(written) in _STATUSES):
            raise directive.error(f"status {written[:40]!r} is not from 200 to 599")
        status = int(written or 0)
    if not words or not all(word.isascii() and word.isdecimal() and 400 <= int(word) <= 599 for word in words):
        raise directive.error("needs statuses from 400 to 599")
    if target.startswith("/"):
        raise directive.error("a path is asked for as another request, which is not done here; give a URL or @name")
    template = target if target.startswith("@") else scope.template(directive, target, is_program=True)
    yield ErrorAnswer(tuple(map(int, words)), status, template, directive)


def read_rewrite(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`rewrite pattern replacement [flag]`."""
    pattern, replacement = directive.args[:2]
    flag = directive.args[2] if len(directive.args) > 2 else ""
    if flag not in _FLAGS:
        raise directive.error(f"the flag {flag[:40]!r} is none of last, break, redirect and permanent")
    check_pattern(directive, pattern)
    if replacement.startswith(_URLS) and flag != "permanent":
        flag = "redirect"
    template = scope.template(directive, replacement, is_program=True)
    yield Program(RewriteStep(do="rewrite", pattern=pattern, replacement=template, flag=_FLAGS[flag]))


def read_test(directive: Directive, scope: Scope) -> Test:
    """Read the condition of an `if`."""
    words = list(directive.args)
    if not words or not words[0].startswith("(") or not words[-1].endswith(")"):
        raise directive.error("a condition stands in parentheses")
    words[0] = words[0][1:]
    words[-1] = words[-1][:-1]
    words = words[1:] if not words[0] else words
    words = words[:-1] if directive.args[-1] == ")" else words
    if words and _FILE_TESTS.match(words[0]):
        raise directive.error(f"{words[0]} looks for a file, and there are none here")
    found = _VARIABLE.fullmatch(words[0]) if words else None
    if found is None:
        raise directive.error("a condition begins with a variable")
    name = found[1] if re.fullmatch("[1-9]", found[1]) else _name_of(directive, scope, found[1])
    if len(words) == 1:
        return Test(variable=name)
    operator = _OPERATOR.fullmatch(words[1])
    if operator is None or len(words) != 3:
        raise directive.error("a condition is a variable, or a variable, one of = != ~ ~* !~ !~*, and a text")
    is_pattern = operator[2] != "="
    if is_pattern:
        check_pattern(directive, words[2])
    value = words[2] if is_pattern else scope.template(directive, words[2], is_program=True)
    kind: Literal["=", "~", "~*"] = "=" if not is_pattern else "~*" if operator[2] == "~*" else "~"
    return Test(variable=name, operator=kind, value=value, **({"negated": True} if operator[1] else {}))


def if_step(directive: Directive, scope: Scope, steps: tuple[Step, ...], branch: int) -> IfStep:
    """Return the step of an `if` with those in its block."""
    test = read_test(directive, scope)
    return IfStep.model_validate({"do": "if", "test": test, "steps": steps, **({"branch": branch} if branch else {})})


def path_step(pattern: str, *, ignore_case: bool) -> IfStep:
    """Return the step that looks for the pattern of a location, so that what it catches is known."""
    return IfStep(do="if", test=Test(variable="uri", operator="~*" if ignore_case else "~", value=pattern))


def check_pattern(directive: Directive, pattern: str) -> None:
    """Raise SnippetError unless a text is a pattern."""
    try:
        names = compile_perl_pattern(pattern).names
    except ValueError as error:
        raise SnippetError(f"{directive.name}: {error}", directive.line, directive.column) from error
    for name in filter(None, names):
        if definable(directive, name) == "args":
            raise directive.error("$args is set by set alone, not by a group of a pattern")


def _name_of(directive: Directive, scope: Scope, name: str) -> str:
    if name in scope.constants:
        raise directive.error(f"${name} is the same for all requests of a path: leave the condition out")
    return scope.variable(directive, name)
