"""`cas-auth`: let users in whom a CAS server knows.

A browser without a session goes to the server's `/login` and comes back with a ticket, which the server is asked about.
Its session is sealed in a cookie, so that every gateway takes it up. `remote_user` is the user's name. A session ends
after an hour without a request, at `logout_uri`, and, in the worker that hears of it, when the server says so.
"""

import hashlib
import time
from collections.abc import Awaitable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlencode

from headgate.common.plugins.authentication.cas_auth import CasAuthConfig
from headgate.common.plugins.authentication.openid_session import SessionConfig
from headgate.gateway.plugins.built_in.authentication.cas.messages import (
    CasUser,
    Unreadable,
    read_logout,
    read_validation,
)
from headgate.gateway.plugins.built_in.authentication.sealed_cookies import CookieJar, Sealer, is_over
from headgate.gateway.plugins.interface import Headers, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.calls import CallFailed, call_url
from headgate.gateway.plugins.kit.keyed import Keyed

_COOKIE: Final = "CAS_SESSION_"
_ATTEMPT: Final = "CAS_REQUEST_URI"
_ATTEMPT_S: Final = 600
"""In which a user has to be back."""
_TOUCH_S: Final = 60
"""A session that was noted longer ago is noted again; a fourth of `idle_timeout`, if that is less."""
_MAX_ANSWER: Final = 256 << 10
_ENDED: Final = 50_000
"""Tickets of ended sessions that a worker remembers: of those that users have ended, and as many of which it heard."""
_CHANGED: Final = "cas-auth.session"


class CasAuth(Plugin[CasAuthConfig]):
    """Lets those pass whom a CAS server knows."""

    name = "cas-auth"
    order = 2597
    unforeseen = "asks an identity provider"
    Config = CasAuthConfig

    def __init__(self, config: CasAuthConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        whose = hashlib.sha256(f"{config.idp_uri}|{config.cas_callback_uri}".encode()).hexdigest()
        cookie = config.cookie
        self._session = SessionConfig(
            secret=cookie.secret,
            cookie_name=f"{_COOKIE}{whose[:32]}",
            cookie_secure=cookie.secure,
            cookie_same_site=cookie.samesite,
            idling_timeout=config.idle_timeout,
            absolute_timeout=0,
        )
        self._jar = CookieJar(self._session, Sealer(cookie.secret.reveal(), f"cas-auth {whose}"))
        self._ended: Keyed[bool] = services.shared.get(("cas-auth ended", services.owner, whose), lambda: Keyed(_ENDED))
        """What users have ended, by digests of tickets."""
        self._heard: Keyed[bool] = services.shared.get(("cas-auth heard", services.owner, whose), lambda: Keyed(_ENDED))
        """What the server has said of: apart, as anybody may say so of tickets of his own making."""
        self._told = (*([config.user_header] if config.user_header else []), *config.attribute_headers)
        self._touch_s = min(_TOUCH_S, config.idle_timeout / 4)

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Look for a session, and send the browser to the server otherwise."""
        config = self.config
        for name in self._told:
            request.headers.remove(name)
        if request.path == config.logout_path and request.method == "GET":
            return self._log_out(request)
        if request.path == config.callback_path and request.method == "POST":
            return self._hear(request)
        session = self._current(request)
        if session is not None:
            self._tell(request, session)
            return None
        ticket = parse_qs(request.query).get("ticket") if request.path == config.callback_path else None
        return self._come_back(request, ticket[0]) if ticket else self._send(request)

    def on_response(self, request: Request, response: Response) -> Awaitable[None] | None:
        """Have the browser keep its session for longer."""
        session = request.variables.get(_CHANGED)
        if isinstance(session, dict):
            self._jar.write(request, response, self._session.cookie_name, session, 0)
        return None

    # Sessions

    def _current(self, request: Request) -> dict[str, Any] | None:
        held = self._jar.read(request, self._session.cookie_name)
        if held is None or is_over(self._session, held):
            return None
        if self._ended.get(held["ticket"]) or self._heard.get(held["ticket"]):
            return None
        now = time.time()
        if now > held["seen"] + self._touch_s:
            held["seen"] = now
            request.variables[_CHANGED] = held
        return held

    def _tell(self, request: Request, session: Mapping[str, Any]) -> None:
        """Tell the upstream whose request it is."""
        request.variables["remote_user"] = session["user"]
        if self.config.user_header is not None:
            request.headers.set(self.config.user_header, _sendable(session["user"]))
        for name, value in session["told"].items():
            request.headers.set(name, value)

    # To the server

    def _send(self, request: Request) -> Response:
        if request.headers.get("Sec-Fetch-Mode", "navigate") != "navigate":
            # What a page fetches cannot follow to another site.
            return Response.refusal(401, "no session")
        asked = urlencode({"service": self._service(request)})
        response = _redirect(f"{self._server}/login?{asked}", "sent to the CAS server")
        attempt = {"target": _absolute(request, request.original_target), "began": time.time()}
        self._jar.write(request, response, _ATTEMPT, attempt, _ATTEMPT_S)
        return response

    async def _come_back(self, request: Request, ticket: str) -> Response:
        attempt = self._jar.read(request, _ATTEMPT)
        if attempt is None or time.time() > attempt["began"] + _ATTEMPT_S:
            return Response.refusal(401, "this browser was not sent to the CAS server from here, or too long ago")
        try:
            user = await self._validate(request, ticket)
        except CallFailed as error:
            self.services.logger.error("cas-auth of %s: %s", request.route, error)
            return Response.refusal(503, "the CAS server did not answer")
        except Unreadable as error:
            return Response.refusal(401, f"the CAS server refuses the ticket: {error}")
        now = time.time()
        told = {
            name: _sendable(",".join(user.attributes[attribute]))
            for name, attribute in self.config.attribute_headers.items()
            if attribute in user.attributes
        }
        session = {"user": user.name, "told": told, "ticket": _digest(ticket), "began": now, "seen": now}
        response = _redirect(attempt["target"], "back from the CAS server")
        self._jar.drop(request, response, _ATTEMPT)
        try:
            self._jar.write(request, response, self._session.cookie_name, session, 0)
        except ValueError as error:
            return Response.refusal(500, str(error))
        return response

    async def _validate(self, request: Request, ticket: str) -> CasUser:
        """Return who a ticket is for. Raises CallFailed, Unreadable."""
        config = self.config
        asked = urlencode({"service": self._service(request), "ticket": ticket}, quote_via=quote)
        question = Request(headers=Headers([("Accept", "application/xml")]), client=request.client, route=request.route)
        answer = await call_url(
            self.services,
            f"{self._server}{config.validate_path}?{asked}",
            question,
            timeout_s=config.timeout / 1000,
            max_body=_MAX_ANSWER,
            verify=config.ssl_verify,
        )
        if answer.status != 200:
            raise CallFailed(f"{self._server}{config.validate_path} answered {answer.status}")
        return read_validation(answer.body or b"")

    # Away

    def _log_out(self, request: Request) -> Response:
        held = self._jar.read(request, self._session.cookie_name)
        if held is None:
            return Response.refusal(401, "no session")
        self._ended.put(held["ticket"], True)
        response = _redirect(f"{self._server}/logout", "logged out")
        self._jar.drop(request, response, self._session.cookie_name)
        return response

    async def _hear(self, request: Request) -> Response:
        """Take the server's word that a session has ended. Who knows the ticket could have used it."""
        body = await request.read_body(self.config.max_req_body_size)
        try:
            form = parse_qs(body.decode("utf-8", "replace"), max_num_fields=16)
            document = form["logoutRequest"][0].encode() if "logoutRequest" in form else body
            ticket = read_logout(document)
        except (Unreadable, ValueError) as error:
            return Response.refusal(400, f"no message that a session has ended: {error}")
        self._heard.put(_digest(ticket), True)
        return Response(200, body=b"", reason="a session has ended")

    # Places

    @property
    def _server(self) -> str:
        return self.config.idp_uri.rstrip("/")

    def _service(self, request: Request) -> str:
        return _absolute(request, self.config.cas_callback_uri)


def _absolute(request: Request, place: str) -> str:
    return f"{request.scheme}://{request.authority}{place}" if place.startswith("/") else place


def _redirect(url: str, reason: str) -> Response:
    headers = Headers([("Location", url), ("Cache-Control", "no-store")])
    return Response(302, headers, b"", reason=reason)


def _digest(ticket: str) -> str:
    return hashlib.sha256(ticket.encode("utf-8", "replace")).hexdigest()


def _sendable(text: str) -> str:
    """Return text as it may stand in a header: UTF-8, without characters that would end it."""
    return "".join(" " if each < " " or each == "\x7f" else each for each in text).encode().decode("latin-1").strip()
