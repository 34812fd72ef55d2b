"""What stands before every page and every answer: who asks, from where, how often, and what browsers may do with it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from aiohttp import web

from headgate.console.access.pace import Pace
from headgate.console.access.people import People, Person, Role
from headgate.console.access.sessions import COOKIE, OPENID_S, SESSION_S, Sessions
from headgate.console.settings import LOOPBACK

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
API: Final = "/api/"
PERSON: Final = web.RequestKey("person", Person)
"""Who asks; not there where everybody may look."""
FORM_TOKEN: Final = web.RequestKey("form_token", str)
"""What forms of the session bring back."""
_OPEN: Final = ("/login", "/static/")
_LOOKING: Final = frozenset(("GET", "HEAD"))
_ASKING: Final = frozenset(("/plan", "/audit", "/api/v1/plan", "/api/v1/audit", "/logout"))
"""Where something is sent that changes nothing of what is served."""
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_ANYBODY: Final = Person("", Role.VIEWER)


class Guard:
    """Lets requests in.

    Args:
        people: who may come in by a token; None: nobody.
        host: address that the console listens on. On loopback only names of loopback are heeded: a page of somebody
            else whose name is made to lead here would read everything otherwise.
        has_provider: whether a provider lets people in. Where it does not, and there are no people, everybody may look.
    """

    def __init__(self, people: People | None, host: str, *, has_provider: bool = False) -> None:
        self._people = people
        self._is_open = people is None and not has_provider
        self._is_local = host in LOOPBACK and self._is_open
        self.sessions = Sessions()
        self._asking, self._logins = Pace(50, 400), Pace(0.2, 10)
        self._ways_to_provider = Pace(5, 50)
        """Wide, as people behind one proxy have one address; nothing can be guessed there."""

    def middleware(self) -> Any:
        """Return what stands before all handlers."""

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            refusal = self._refusal(request)
            try:
                response = refusal if refusal is not None else await handler(request)
            except web.HTTPException as error:
                error.headers.update(_HEADERS)
                raise
            if not response.prepared:
                response.headers.update(_HEADERS)
            return response

        return guard

    def _refusal(self, request: web.Request) -> web.Response | None:
        """Return why a request is not let in; None if it is. It gets its person."""
        if self._is_local and _name_of(request) not in LOOPBACK:
            return _refuse(request, 421, "Misdirected", "this console answers to names of loopback alone")
        if not self._asking.take(request.remote or ""):
            return _refuse(request, 429, "Too many requests", "wait a second", {"Retry-After": "1"})
        person, form_token = self._who(request)
        if person is None and not request.path.startswith(_OPEN):
            return _ask_to_log_in(request)
        if person is not None and person is not _ANYBODY:
            request[PERSON] = person
        request[FORM_TOKEN] = form_token
        if request.method not in _LOOKING and not request.path.startswith("/login"):
            return self._judge_change(request, person)
        return None

    def _who(self, request: web.Request) -> tuple[Person | None, str]:
        if self._is_open:
            return _ANYBODY, ""
        token = bearer_of(request)
        if token is not None:
            return (self._find(token) if self._logins_left(token, request) else None), ""
        session = self.sessions.read(request.cookies.get(COOKIE, ""))
        if session is None:
            return None, ""
        if session.role:
            return Person(session.name, Role(session.role)), session.form_token
        return self._people.named(session.name) if self._people is not None else None, session.form_token

    def _find(self, token: str) -> Person | None:
        return self._people.find(token) if self._people is not None else None

    def _logins_left(self, token: str, request: web.Request) -> bool:
        """Whether somebody may still guess; tokens that are right cost nothing."""
        return self._find(token) is not None or self._logins.take(request.remote or "")

    def _judge_change(self, request: web.Request, person: Person | None) -> web.Response | None:
        if bearer_of(request) is None and request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            return _refuse(request, 403, "Not permitted", "this came from another site")
        if person is None or (not person.may_change and request.path not in _ASKING):
            return _refuse(request, 403, "Not permitted", "this needs the role operator")
        return None

    def log_in(self, token: str, request: web.Request) -> web.Response | None:
        """Return an answer with a session; None if the token is nobody's.

        Raises:
            web.HTTPTooManyRequests: somebody guesses.
        """
        person = self._find(token)
        if person is None:
            if not self._logins.take(request.remote or ""):
                raise web.HTTPTooManyRequests(headers={"Retry-After": "5"})
            return None
        response = web.Response(status=303, headers={"Location": "/"})
        is_secure = request.secure or request.headers.get("X-Forwarded-Proto") == "https"
        _set_session(response, self.sessions.begin(person.name), SESSION_S, is_secure=is_secure)
        return response

    def count_way(self, request: web.Request) -> None:
        """Bound how often somebody may have the provider asked.

        Raises:
            web.HTTPTooManyRequests: that was too often.
        """
        if not self._ways_to_provider.take(request.remote or ""):
            raise web.HTTPTooManyRequests(headers={"Retry-After": "1"})

    def let_in(self, person: Person, response: web.Response, *, is_secure: bool) -> None:
        """Begin a session of somebody whom a provider has let in."""
        _set_session(response, self.sessions.begin(person.name, person.role), OPENID_S, is_secure=is_secure)


def _set_session(response: web.Response, cookie: str, lasts_s: int, *, is_secure: bool) -> None:
    response.set_cookie(COOKIE, cookie, max_age=lasts_s, httponly=True, samesite="Strict", secure=is_secure)


def bearer_of(request: web.Request) -> str | None:
    """Return the token of a request; None if it has none. Browsers send other credentials by themselves."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _name_of(request: web.Request) -> str:
    """Return the host that the client named, without its port."""
    return urlsplit(f"//{request.host}").hostname or ""


def _ask_to_log_in(request: web.Request) -> web.Response:
    if request.path.startswith(API) or request.method not in _LOOKING:
        detail = "send a token: Authorization: Bearer TOKEN"
        return _refuse(request, 401, "Not logged in", detail, {"WWW-Authenticate": "Bearer"})
    return web.Response(status=303, headers={"Location": "/login"})


def _refuse(
    request: web.Request, status: int, title: str, detail: str, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return an answer that programs and people can read."""
    if not request.path.startswith(API):
        return web.Response(status=status, text=f"{detail}\n", headers=headers)
    body = {"status": status, "title": title, "detail": detail}
    return web.json_response(body, status=status, content_type="application/problem+json", headers=headers)
