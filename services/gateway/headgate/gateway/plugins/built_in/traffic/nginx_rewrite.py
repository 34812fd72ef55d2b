"""`nginx-rewrite`: run what nginx's rewrite phase would: `set`, `if`, `rewrite`, `return` and `break`, in their order.

Where a path is rewritten without `break`, the route is chosen again, as nginx looks for another location.

Paths are compared as nginx does, decoded and without empty and dot segments, and encoded again where they are replaced.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote

from headgate.common.perl_patterns import PerlPattern, compile_perl_pattern
from headgate.common.plugins.traffic.nginx_rewrite import (
    BRANCH,
    CAUGHT,
    OF_SERVER,
    BreakStep,
    IfStep,
    NginxRewriteConfig,
    ReturnStep,
    RewriteStep,
    SetStep,
    Test,
)
from headgate.common.plugins.variables import REFERENCE
from headgate.gateway.plugins.interface import Foreseen, Headers, Passes, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.interface.variables import variable
from headgate.gateway.plugins.kit.decoded_paths import decoded
from headgate.gateway.plugins.kit.patterns import SearchTime, Template, sendable, texts_caught

_LOCATED: Final = frozenset((301, 302, 303, 307, 308))
_IN_PATH: Final = "!$&'()*+,-./:;=@[]_~"
"""Characters of a changed path that nginx sends as they are, besides letters and digits."""
_PATH_NAMES: Final = ("uri", "document_uri")
_RETURNED: Final = "return"
"""Reason of answers by `return`."""
_FOLLOWS: Final = object()
"""The program goes on."""
_ENDS: Final = object()
"""The program ends, and the request goes on."""


@dataclass(slots=True)
class _Run:
    """The program on one request."""

    request: Request
    path: str
    """Decoded."""
    time_left: SearchTime
    caught: tuple[str, ...] = ()
    is_path_changed: bool = False
    chooses_again: bool = False
    """The route is chosen again for the changed path."""

    def fill_in(self, template: Template) -> str:
        """Return a text with what it refers to."""
        return template.render(self.request, self.caught)

    def finds(self, pattern: PerlPattern, text: str) -> bool:
        """Look for a pattern, and keep what it caught."""
        self.time_left.check()
        found = pattern.search(text.encode("latin-1"))
        if found is None:
            return False
        self.caught = texts_caught(found)
        for name, value in zip(pattern.names, self.caught, strict=True):
            if name:
                self.request.variables[name] = value
        return True

    def move_to(self, path: str) -> None:
        """Take another path."""
        self.path = path
        self.is_path_changed = True
        for name in _PATH_NAMES:
            self.request.variables[name] = path


_Outcome = Response | object
_Do = Callable[[_Run], _Outcome]


class _Page(NamedTuple):
    """What is answered instead of an error."""

    status: int | None
    url: Template | None
    steps: Sequence[_Do]


class NginxRewrite(Plugin[NginxRewriteConfig]):
    """Runs programs of nginx's rewrite phase."""

    name = "nginx-rewrite"
    order = 21000
    answer_order = 440
    Config = NginxRewriteConfig
    preview = "yes"
    is_shareable = True

    def __init__(self, config: NginxRewriteConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._server = [self._compile(step) for step in config.server]
        self._steps = [self._compile(step) for step in config.steps]
        self._claims = tuple(_claims_named(config))
        self._errors: dict[int, _Page] = {}
        for page in config.errors:
            steps = [self._compile(step, page.default_type) for step in page.steps]
            made = _Page(page.status, Template(page.url) if page.url is not None else None, steps)
            for status in page.statuses:
                self._errors.setdefault(status, made)

    def on_request(self, request: Request) -> Response | None:
        """Run the program."""
        path = decoded(request.path).decode("latin-1")
        variables = request.variables
        variables[BRANCH] = "0"
        mine = dict.fromkeys(_PATH_NAMES, path)
        for name, header in self._claims:
            mine[name] = request.claims.get(header, b"").decode("latin-1")
        variables.update(mine)
        run = _Run(request, path, SearchTime(request.target))
        try:
            # As in nginx the server's part runs once, before a location is looked for.
            outcome = _run(self._server, run) if not request.routings else _FOLLOWS
            if isinstance(outcome, Response):
                variables[BRANCH] = OF_SERVER
                return outcome
            run.chooses_again = run.is_path_changed
            outcome = _FOLLOWS if run.chooses_again else _run(self._steps, run)
            if isinstance(outcome, Response):
                return outcome
        finally:
            for at, text in enumerate(run.caught, 1):
                variables[f"{CAUGHT}{at}"] = text
            for name in mine:
                variables.pop(name, None)
        if run.is_path_changed:
            request.path = quote(run.path.encode("latin-1"), safe=_IN_PATH)
        return request.choose_again() if run.chooses_again else None

    def foresee(self, request: Request) -> Foreseen | Awaitable[Foreseen]:
        """Say where a request goes on whose route is chosen again; what becomes of it there is not asked."""
        answer = self.on_request(request)
        return Passes(f"the route is chosen again for {request.target}") if request.chooses_again else answer

    def on_response(self, request: Request, response: Response) -> None:
        """Put a page in the place of an error of the gateway or of a plugin, but not of a text that `return` gives."""
        page = self._errors.get(response.status)
        is_text = response.reason == _RETURNED and not response.is_refusal
        if page is None or response.from_upstream or is_text:
            return
        run = _Run(request, decoded(request.original_path).decode("latin-1"), SearchTime(request.target))
        if page.url is not None:
            status = page.status if page.status in _LOCATED else 302
            response.replace(_redirection(request, status, run.fill_in(page.url)))
            return
        outcome = _run(page.steps, run)
        if isinstance(outcome, Response):
            outcome.status = response.status if page.status is None else page.status or outcome.status
            response.replace(outcome)

    def _compile(
        self, step: SetStep | RewriteStep | ReturnStep | BreakStep | IfStep, content_type: str | None = None
    ) -> _Do:
        if isinstance(step, SetStep):
            return _setting(step)
        if isinstance(step, RewriteStep):
            return _rewriting(step)
        if isinstance(step, ReturnStep):
            return _returning(step, content_type or self.config.default_type)
        if isinstance(step, BreakStep):
            return _breaking
        holds, steps, branch = (
            _testing(step.test),
            [self._compile(each, content_type) for each in step.steps],
            str(step.branch),
        )

        def choose(run: _Run) -> _Outcome:
            if not holds(run):
                return _FOLLOWS
            if step.branch:
                run.request.variables[BRANCH] = branch
            return _run(steps, run)

        return choose


def _run(steps: Sequence[_Do], run: _Run) -> _Outcome:
    for step in steps:
        outcome = step(run)
        if outcome is not _FOLLOWS:
            return outcome
    return _FOLLOWS


def _breaking(run: _Run) -> _Outcome:
    run.chooses_again = False
    return _ENDS


def _setting(step: SetStep) -> _Do:
    value, name = Template(step.value), step.variable

    def do(run: _Run) -> _Outcome:
        text = run.fill_in(value)
        if name == "args":
            run.request.query = sendable(text)
        else:
            run.request.variables[name] = text
        return _FOLLOWS

    return do


def _rewriting(step: RewriteStep) -> _Do:
    pattern = compile_perl_pattern(step.pattern)
    keeps_query = not step.replacement.endswith("?")
    before, mark, after = step.replacement.removesuffix("?").partition("?")
    path, query = Template(before), Template(after)
    status = {"redirect": 302, "permanent": 301}.get(step.flag)
    end = _ENDS if step.flag in ("break", "last") else _FOLLOWS

    def do(run: _Run) -> _Outcome:
        if not run.finds(pattern, run.path):
            return _FOLLOWS
        request = run.request
        target, given = run.fill_in(path), run.fill_in(query)
        own = request.query if keeps_query else ""
        given = f"{given}&{own}" if mark and own else given or own
        if status is not None:
            begin = "?" if given or mark else ""
            return _redirection(request, status, f"{target}{begin}{given}")
        if not target:
            return Response.refusal(500, "a rewrite left an empty path")
        run.move_to(target)
        request.query = sendable(given)
        run.chooses_again = step.flag != "break"
        return end

    return do


def _returning(step: ReturnStep, content_type: str) -> _Do:
    template = Template(step.text) if step.text is not None else None
    status = step.status

    def do(run: _Run) -> _Outcome:
        text = run.fill_in(template) if template is not None else None
        if status in _LOCATED:
            return _redirection(run.request, status, text or "")
        if text is None and status >= 400:
            return Response.refusal(status, _RETURNED)
        headers = Headers([("Content-Type", content_type)] if status != 204 else [])
        return Response(status, headers, (text or "").encode("latin-1"), reason=_RETURNED)

    return do


def _redirection(request: Request, status: int, location: str) -> Response:
    """Make a redirect; an address without a host is one of the request's, as with nginx's `absolute_redirect`."""
    if location.startswith("/") and request.host:
        location = f"{request.scheme}://{request.host}{location}"
    headers = Headers([("Location", sendable(location))] if location else [])
    return Response(status, headers, b"", reason="redirected")


def _testing(test: Test) -> Callable[[_Run], bool]:
    name, negated = test.variable, test.negated

    def value_of(run: _Run) -> str:
        if name.isdecimal():
            number = int(name)
            return run.caught[number - 1] if 0 < number <= len(run.caught) else ""
        return variable(run.request, name) or ""

    if test.operator == "is-set":
        return lambda run: (value_of(run) not in ("", "0")) is not negated
    if test.operator == "=":
        expected = Template(test.value)
        return lambda run: (value_of(run) == run.fill_in(expected)) is not negated
    pattern = compile_perl_pattern(test.value, ignore_case=test.operator == "~*")
    return lambda run: run.finds(pattern, value_of(run)) is not negated


def _claims_named(config: NginxRewriteConfig) -> "set[tuple[str, bytes]]":
    """Return the variables of headers that a client claims and the gateway writes itself, with the headers' names.

    nginx' `$http_x_forwarded_proto` is what was sent, whoever sent it.
    """
    names: set[str] = set()
    for step in (*config.server, *config.steps):
        for each in (step, *step.steps) if isinstance(step, IfStep) else (step,):
            texts = [text for _, text in each if isinstance(text, str)]
            names |= {found[2] or found[4] or "" for text in texts for found in REFERENCE.finditer(text)}
            if isinstance(each, IfStep):
                names.add(each.test.variable)
                names |= {found[2] or found[4] or "" for found in REFERENCE.finditer(each.test.value)}
    return {
        (name, name.removeprefix("http_").replace("_", "-").encode())
        for name in names
        if name.startswith(("http_x_forwarded_", "http_x_real_ip", "http_forwarded"))
    }
