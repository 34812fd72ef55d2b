"""Configuration of `nginx-rewrite`: the directives of nginx's rewrite phase, as a small program.

Texts are templates; in them `${1}` is what the last pattern caught and `${name}` a variable, one that a step has set
too. Patterns are nginx's: RE2, or PCRE2 with bounds where they need it (`headgate.common.perl_patterns`).
"""

from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from headgate.common.perl_patterns import compile_perl_pattern
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.variables import phase_of

MAX_STEPS: Final = 200
"""Of one program."""
BRANCH: Final = "nginx_branch"
"""The variable that says which `if` held last; `0` for none."""
OF_SERVER: Final = "server"
"""Stands in it where the steps of the host have answered."""
CAUGHT: Final = "nginx_"
"""What variables begin with that keep what the last pattern caught, for other plugins: `nginx_1`."""

ProgramText = Annotated[str, Field(max_length=8192)]


def _check_name(name: str) -> str:
    if name != "args" and phase_of(name) is not None:
        raise ValueError(f"${name} is a variable of the request, which cannot be set")
    return name


def _check_pattern(text: str, *, ignore_case: bool = False) -> str:
    for name in filter(None, compile_perl_pattern(text, ignore_case=ignore_case).names):
        if phase_of(name) is not None:
            raise ValueError(f"${name} is a variable of the request, which a group cannot set")
    return text


VariableName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$"), AfterValidator(_check_name)]
PerlPatternText = Annotated[str, AfterValidator(_check_pattern)]
"""A pattern of RE2 or PCRE2."""


class SetStep(PluginConfig):
    """Give a variable a value. `args` is the request's query."""

    do: Literal["set"] = "set"
    variable: VariableName
    value: ProgramText


class RewriteStep(PluginConfig):
    """Replace the path as a whole where a pattern matches it, decoded; or redirect."""

    do: Literal["rewrite"] = "rewrite"
    pattern: PerlPatternText
    replacement: ProgramText
    """With a query: the request's own is appended to it, unless the text ends with `?`."""
    flag: Literal["", "last", "break", "redirect", "permanent"] = ""
    """`last` ends the program, and the route is chosen again for the new path; without a flag that happens at the end
    of the program. `break` ends it, and the request stays with its route. Steps of the host choose the route again with
    each of the three."""


class ReturnStep(PluginConfig):
    """Answer."""

    do: Literal["return"] = "return"
    status: int = Field(ge=200, le=599)
    """444 closes the connection without an answer."""
    text: ProgramText | None = None
    """The body, or for 301, 302, 303, 307 and 308 the address."""


class BreakStep(PluginConfig):
    """End the program."""

    do: Literal["break"] = "break"


class Test(PluginConfig):
    """A condition on a variable."""

    variable: str
    operator: Literal["is-set", "=", "~", "~*"] = "is-set"
    """`is-set`: neither empty nor `0`; `~` a pattern, `~*` one that ignores case."""
    value: ProgramText = ""
    negated: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.operator in ("~", "~*"):
            _check_pattern(self.value, ignore_case=self.operator == "~*")
        return self


SimpleStep = Annotated[SetStep | RewriteStep | ReturnStep | BreakStep, Field(discriminator="do")]


class IfStep(PluginConfig):
    """Run steps if a condition holds."""

    do: Literal["if"] = "if"
    test: Test
    steps: tuple[SimpleStep, ...] = ()
    branch: int = Field(default=0, ge=0)
    """Is noted in the variable `nginx_branch` if the condition holds; 0 notes nothing."""


Step = Annotated[SetStep | RewriteStep | ReturnStep | BreakStep | IfStep, Field(discriminator="do")]


class ErrorPage(PluginConfig):
    """What is answered instead of an error that is not the upstream's: an address, or what steps return."""

    statuses: tuple[Annotated[int, Field(ge=400, le=599)], ...] = Field(min_length=1)
    status: int | None = None
    """Of the answer; 0 is that of the steps, and None that of the error."""
    url: ProgramText | None = None
    """Where the client is sent to, with 302 unless `status` is another redirect."""
    steps: tuple[Step, ...] = ()
    default_type: str = Field(default="text/html", max_length=200)


class NginxRewriteConfig(PluginConfig, plugin="nginx-rewrite"):
    """Fields of `nginx-rewrite`."""

    server: tuple[Step, ...] = ()
    """Steps of the host, before those of the route."""
    steps: tuple[Step, ...] = ()
    errors: tuple[ErrorPage, ...] = Field(default=(), max_length=MAX_STEPS)
    """The first that has a status counts."""
    default_type: str = Field(default="text/html", max_length=200)
    """Content-Type of bodies that `return` gives."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        every = (*self.server, *self.steps, *(step for page in self.errors for step in page.steps))
        count = sum(1 + len(step.steps) if isinstance(step, IfStep) else 1 for step in every)
        if not 0 < count + len(self.errors) <= MAX_STEPS:
            raise ValueError(f"needs from 1 to {MAX_STEPS} steps, those within if counted")
        return self
