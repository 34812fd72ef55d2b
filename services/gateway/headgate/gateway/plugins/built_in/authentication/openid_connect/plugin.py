"""`openid-connect`: let an OpenID provider say who it is: by tokens that requests bring, or by sending browsers there.

A token in `Authorization` is checked by the provider's keys (`use_jwks`, `public_key`) or by asking about it
(`introspection_endpoint`). Without one a browser goes the way of the authorization code (OpenID Connect Core 3.1), and
has a session afterwards, sealed in its own cookies or in Redis. The upstream learns of the user by headers; what
clients send under the names of these is dropped.
"""

import base64
import json
from collections.abc import Awaitable, Mapping
from typing import Any

from headgate.common.plugins.authentication.openid_connect import OpenidConnectConfig
from headgate.gateway.plugins.built_in.authentication.openid_connect.keeping import SessionsUnreachable
from headgate.gateway.plugins.built_in.authentication.openid_connect.login import Found, Login, Session
from headgate.gateway.plugins.built_in.authentication.openid_connect.provider import Provider, ProviderFailed
from headgate.gateway.plugins.built_in.authentication.openid_connect.tokens import Claims, TokenChecker, TokenRefused
from headgate.gateway.plugins.interface import Headers, Plugin, PluginServices, Request, Response

_TOLD = ("X-Access-Token", "X-ID-Token", "X-Raw-ID-Token", "X-Userinfo", "X-Refresh-Token")
_CHANGED = "openid-connect.session"


class OpenidConnect(Plugin[OpenidConnectConfig]):
    """Lets those pass whom a provider knows."""

    name = "openid-connect"
    order = 2599
    unforeseen = "asks an identity provider"
    Config = OpenidConnectConfig

    def __init__(self, config: OpenidConnectConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        provider = Provider(config, services)
        self._checker = TokenChecker(config, provider)
        self._login = Login(config, config.session, provider, self._checker, services) if config.session else None

    async def on_request(self, request: Request) -> Response | None:
        """Look for a token, then for a session, and send the browser to the provider otherwise."""
        config, token = self.config, _bearer_token(request)
        for name in _TOLD:
            request.headers.remove(name)
        try:
            if config.takes_bearer_tokens:
                if token:
                    return await self._take_token(request, token)
                if config.bearer_only:
                    return self._refuse(request, "No bearer token found in request.", "")
            return await self._take_session(request)
        except ProviderFailed as error:
            self.services.logger.error("openid-connect of %s: %s", request.route, error)
            return Response.refusal(503, "the OpenID provider did not answer")
        except SessionsUnreachable as error:
            self.services.logger.error("openid-connect of %s: sessions: %s", request.route, error)
            return Response.refusal(503, "the sessions cannot be read now")

    async def _take_token(self, request: Request, token: str) -> Response | None:
        try:
            claims = await self._checker.check_bearer(token, self._addon(request))
        except TokenRefused as error:
            return self._refuse(request, str(error), "invalid_token")
        if self._checker.lacks_scope(claims.get("scope")):
            return self._refuse(request, "insufficient scope", "insufficient_scope", 403)
        self._tell(request, token, claims)
        return None

    def _addon(self, request: Request) -> Headers:
        """Return what goes along when the provider is asked about a token."""
        given = ((name, request.headers.get(name)) for name in self.config.introspection_addon_headers)
        return Headers([(name, value) for name, value in given if value is not None])

    async def _take_session(self, request: Request) -> Response | None:
        assert self._login is not None
        try:
            outcome = await self._login.go(request)
            if isinstance(outcome, Found):
                held = outcome.session
                self._checker.check_session(held.access_token, held.id_claims, held.user)
        except TokenRefused as error:
            return self._refuse(request, str(error), "")
        if isinstance(outcome, Found):
            session = outcome.session
            if self._checker.lacks_scope(session.scope):
                return self._refuse(request, "insufficient scope", "insufficient_scope", 403)
            self._tell(request, session.access_token, session.user or session.id_claims, session)
            if outcome.is_changed:
                request.variables[_CHANGED] = session
            return None
        if outcome is not None:
            return outcome
        if self.config.unauth_action == "pass":
            return None
        return self._refuse(request, "no session", "")

    def on_response(self, request: Request, response: Response) -> Awaitable[None] | None:
        """Have the browser keep its session for longer."""
        session = request.variables.get(_CHANGED)
        if isinstance(session, Session) and self._login is not None:
            return self._login.keep(request, response, session)
        return None

    def _refuse(self, request: Request, reason: str, error: str, status: int = 401) -> Response:
        response = Response.refusal(status, reason)
        challenge = f'Bearer realm="{self.config.realm}"'
        response.headers.set("WWW-Authenticate", f'{challenge}, error="{error}"' if error else challenge)
        return response

    def _tell(self, request: Request, token: str, user: Claims, session: Session | None = None) -> None:
        """Tell the upstream whose request it is."""
        config, headers = self.config, request.headers
        subject = user.get("sub")
        if isinstance(subject, str):
            request.variables["remote_user"] = subject
        if config.set_access_token_header and token:
            if config.access_token_in_authorization_header:
                headers.set("Authorization", f"Bearer {token}")
            else:
                headers.set("X-Access-Token", token)
        contents = config.session_contents
        if config.set_userinfo_header and (session is None or contents is None or contents.user):
            headers.set("X-Userinfo", _encoded(user))
        if session is None:
            return
        if config.set_id_token_header and (contents is None or contents.id_token):
            headers.set("X-ID-Token", _encoded(session.id_claims))
        if config.set_raw_id_token_header and session.id_token:
            headers.set("X-Raw-ID-Token", session.id_token)
        if config.set_refresh_token_header and session.refresh_token:
            headers.set("X-Refresh-Token", session.refresh_token)


def _encoded(value: Mapping[str, Any]) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode()


def _bearer_token(request: Request) -> str:
    scheme, _, token = (request.headers.get("Authorization") or "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    return request.headers.get("X-Access-Token") or ""
