"""A realm of Keycloak as a resource server asks it: UMA 2.0, with decisions instead of tokens.

https://www.keycloak.org/docs/latest/authorization_services/
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from headgate.common.plugins.security.authz_keycloak import AuthzKeycloakConfig
from headgate.gateway.plugins.interface import Headers, PluginServices, Request, Response
from headgate.gateway.plugins.kit.calls import CallFailed, call_url

_MAX_ANSWER: Final = 1 << 20
_MAX_RESOURCES: Final = 100
"""Of one path."""


class KeycloakFailed(Exception):
    """The server cannot be asked; the text says why."""


class _Known:
    """What is known of a server beyond one table."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.value: Any = None
        self.ends = 0.0


class Keycloak:
    """One realm, asked for one client."""

    def __init__(self, config: AuthzKeycloakConfig, services: PluginServices) -> None:
        self._config = config
        self._services = services
        secret = config.client_secret.reveal() if config.client_secret is not None else ""
        place = (config.discovery, config.token_endpoint, config.ssl_verify)
        self._document: _Known = services.shared.get(("authz-keycloak", "document", *place), _Known)
        self._login: _Known = services.shared.get(("authz-keycloak", "token", *place, config.client_id, secret), _Known)
        self._client = {"client_id": config.client_id, **({"client_secret": secret} if secret else {})}

    async def decide(self, token: str, permissions: Iterable[str]) -> Response:
        """Ask whether the owner of a token has permissions; its answer. Raises KeycloakFailed."""
        config = self._config
        asked = [
            ("grant_type", config.grant_type),
            ("audience", config.client_id),
            ("response_mode", "decision"),
            *(("permission", permission) for permission in permissions),
        ]
        return await self._post(await self._token_endpoint(), asked, {"Authorization": token})

    async def login(self, user: str, password: str) -> Response:
        """Ask for a token for a user; its answer. Raises KeycloakFailed."""
        form = {"grant_type": "password", **self._client, "username": user, "password": password}
        return await self._post(await self._token_endpoint(), list(form.items()))

    async def resources(self, path: str) -> list[str]:
        """Return the identifiers of the resources that a path belongs to. Raises KeycloakFailed."""
        endpoint = await self._endpoint("resource_registration_endpoint", self._config.resource_registration_endpoint)
        query = urlencode({"uri": path, "matchingUri": "true"})
        url = f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"
        answer = await self._call("GET", url, {"Authorization": f"Bearer {await self._own_token()}"})
        if answer.status == 401:
            self._login.value = None  # it may have been revoked: the next request asks for another
        found = _parsed(answer)
        if not isinstance(found, list) or len(found) > _MAX_RESOURCES:
            raise KeycloakFailed(f"it answered with no list of at most {_MAX_RESOURCES} resources")
        return [one for one in found if isinstance(one, str)]

    async def _own_token(self) -> str:
        """Return a token of the client itself."""
        known = self._login
        async with known.lock:
            if known.value is None or self._services.clock() >= known.ends:
                form = [("grant_type", "client_credentials"), *self._client.items()]
                answer = _parsed(await self._post(await self._token_endpoint(), form))
                token = answer.get("access_token") if isinstance(answer, dict) else None
                if not isinstance(token, str):
                    raise KeycloakFailed("it gave no access_token to the client")
                known.value = token
                known.ends = self._services.clock() + self._lifetime_s(answer)
            held: str = known.value
            return held

    def _lifetime_s(self, answer: Mapping[str, Any]) -> float:
        config = self._config
        told = answer.get("expires_in")
        seconds = told if isinstance(told, int | float) else config.access_token_expires_in
        return min(seconds - 1 - config.access_token_expires_leeway, config.cache_ttl_seconds)

    async def _token_endpoint(self) -> str:
        return await self._endpoint("token_endpoint", self._config.token_endpoint)

    async def _endpoint(self, name: str, configured: str | None) -> str:
        if configured is not None:
            return configured
        found = (await self._discovered()).get(name)
        if not isinstance(found, str) or not found.startswith(("http://", "https://")):
            raise KeycloakFailed(f"its document has no {name}")
        return found

    async def _discovered(self) -> Mapping[str, Any]:
        known, url = self._document, self._config.discovery
        assert url is not None
        async with known.lock:
            if known.value is None or self._services.clock() >= known.ends:
                document = _parsed(await self._call("GET", url, {}))
                if not isinstance(document, dict):
                    raise KeycloakFailed("its document is no object")
                known.value = document
                known.ends = self._services.clock() + self._config.cache_ttl_seconds
            held: Mapping[str, Any] = known.value
            return held

    async def _post(self, url: str, form: list[tuple[str, str]], headers: Mapping[str, str] | None = None) -> Response:
        told = {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})}
        return await self._call("POST", url, told, urlencode(form).encode())

    async def _call(self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"") -> Response:
        config = self._config
        asking = Request(method=method, headers=Headers(list(headers.items())), body=body)
        try:
            return await call_url(
                self._services,
                url,
                asking,
                timeout_s=config.timeout / 1000,
                max_body=_MAX_ANSWER,
                verify=config.ssl_verify,
            )
        except CallFailed as error:
            raise KeycloakFailed(str(error)) from error


def _parsed(answer: Response) -> Any:
    if answer.status != 200:
        raise KeycloakFailed(f"it answered {answer.status}")
    try:
        return msgspec.json.decode(answer.body or b"")
    except (msgspec.MsgspecError, RecursionError) as error:
        raise KeycloakFailed("it answered no JSON") from error
