"""`authz-keycloak`: ask Keycloak whether the owner of a token may do what a request asks for.

The token is that of the request (`Authorization`); the server checks it, and decides by the policies of the client.
"""

from typing import Final
from urllib.parse import parse_qsl

from headgate.common.plugins.security.authz_keycloak import AuthzKeycloakConfig
from headgate.gateway.plugins.built_in.security.keycloak.server import Keycloak, KeycloakFailed
from headgate.gateway.plugins.interface import Headers, Plugin, PluginServices, Request, Response

_MAX_FORM: Final = 64 << 10
_FORM: Final = "application/x-www-form-urlencoded"
_DENIED: Final = b'{"error":"access_denied","error_description":"not_authorized"}'


class AuthzKeycloak(Plugin[AuthzKeycloakConfig]):
    """Lets those pass whom Keycloak lets."""

    name = "authz-keycloak"
    order = 2000
    Config = AuthzKeycloakConfig
    unforeseen = "asks Keycloak"
    is_shareable = True

    def __init__(self, config: AuthzKeycloakConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._keycloak = Keycloak(config, services)

    async def on_request(self, request: Request) -> Response | None:
        """Ask, or log a user in."""
        try:
            if self._is_login(request):
                return await self._log_in(request)
            token = request.headers.get("Authorization")
            if not token:
                return _told(401, "Missing JWT token in request")
            return await self._judge(request, token if token[:7] in ("Bearer ", "bearer ") else f"Bearer {token}")
        except KeycloakFailed as error:
            self.services.logger.error("authz-keycloak of %s: %s", request.route, error)
            return Response.refusal(503, "Keycloak cannot be asked")

    async def _judge(self, request: Request, token: str) -> Response | None:
        config = self.config
        permissions = list(config.permissions)
        if config.lazy_load_paths:
            permissions = await self._keycloak.resources(request.path)
        if not permissions and config.policy_enforcement_mode == "ENFORCING":
            return self._denied(403, _DENIED)
        if config.http_method_as_scope:
            scope = request.method
            permissions = [f"{each}{', ' if '#' in each else '#'}{scope}" for each in permissions]
        answer = await self._keycloak.decide(token, permissions)
        return self._denied(answer.status, answer.body or b"") if answer.status >= 400 else None

    def _denied(self, status: int, body: bytes) -> Response:
        reason = "Keycloak denies the request"
        if status == 403 and self.config.access_denied_redirect_uri is not None:
            return Response(307, Headers([("Location", self.config.access_denied_redirect_uri)]), reason=reason)
        return _answer(status, body, reason)

    def _is_login(self, request: Request) -> bool:
        return (
            request.original_target == self.config.password_grant_token_generation_incoming_uri
            and request.method == "POST"
            and request.headers.get("Content-Type") == _FORM
        )

    async def _log_in(self, request: Request) -> Response:
        body = await request.read_body(min(self.config.max_req_body_size, _MAX_FORM))
        form = dict(reversed(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)))
        for name in ("username", "password"):
            if name not in form:
                return _told(422, f"{name} is missing.")
        answer = await self._keycloak.login(form["username"], form["password"])
        if answer.status != 200:
            return _told(401, "Could not decode JSON from response.")
        return _answer(200, answer.body or b"", "a token of Keycloak")


def _answer(status: int, body: bytes, reason: str) -> Response:
    return Response(status, Headers([("Content-Type", "application/json")]), body, reason=reason)


def _told(status: int, message: str) -> Response:
    return Response.json(status, {"message": message}, reason=message)
