"""An OpenID provider as a gateway asks it: what it is (OpenID Connect Discovery 1.0), its keys, and its endpoints.

What it says of itself and its keys is fetched once and shared by all routes of the worker; of several that need it at
once one fetches and the others wait.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import jwt

from headgate.common.plugins.authentication.openid_client import ClientAuth, ProxyOpts
from headgate.common.plugins.authentication.openid_connect import OpenidConnectConfig
from headgate.common.secret import Secret
from headgate.gateway.plugins.built_in.authentication.openid_connect.client import ClientIdentity, TokenBinding
from headgate.gateway.plugins.built_in.authentication.signing_keys import read_jwk
from headgate.gateway.plugins.interface import Headers, PluginServices, Request, Response
from headgate.gateway.plugins.kit.calls import CallFailed, Proxy, call_url

_MAX_ANSWER = 1 << 20
_METADATA_S = 86400.0
_RETRY_S = 10.0
"""Between two looks for a key that the provider did not have."""


class ProviderFailed(Exception):
    """The provider did not answer, or not what was asked; the text says what."""


class Fetched:
    """Something that is fetched once, and again when it is old."""

    __slots__ = ("__weakref__", "_clock", "_task", "fetched_at", "value")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._task: asyncio.Task[Any] | None = None
        self.fetched_at = float("-inf")
        self.value: Any = None

    async def get(self, fetch: Callable[[], Awaitable[Any]], age_s: float) -> Any:
        """Return the value, fetched if it is older than so many seconds. Raises ProviderFailed."""
        if self._clock() - self.fetched_at <= age_s:
            return self.value
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._fetch(fetch, age_s))
        return await asyncio.shield(self._task)

    async def _fetch(self, fetch: Callable[[], Awaitable[Any]], age_s: float) -> Any:
        try:
            self.value = await fetch()
            self.fetched_at = self._clock()
        except ProviderFailed:
            if self.value is None:
                raise
            # What is old is better than nothing; the next look is not at the next request.
            self.fetched_at = self._clock() - age_s + _RETRY_S
        finally:
            self._task = None
        return self.value


class Provider:
    """The provider of one use of the plugin."""

    def __init__(self, config: OpenidConnectConfig, services: PluginServices) -> None:
        self._config = config
        self._services = services
        self._identity = ClientIdentity(config)
        self.binding = TokenBinding(config.dpop) if config.dpop.enabled else None
        """The key that tokens are bound to."""
        # By its proxies too: what one of them says of the provider is not for those who reach it otherwise.
        place = (config.discovery, config.ssl_verify, _identified(config.proxy_opts))
        self._metadata: Fetched = services.shared.get(
            ("openid-connect metadata", *place), lambda: Fetched(services.clock)
        )
        self._keys: Fetched = services.shared.get(("openid-connect keys", *place), lambda: Fetched(services.clock))

    async def metadata(self) -> Mapping[str, Any]:
        """Return what the provider says of itself. Raises ProviderFailed."""
        found: Mapping[str, Any] = await self._metadata.get(lambda: self._get(self._config.discovery), _METADATA_S)
        return found

    async def endpoint(self, name: str) -> str:
        """Return the URL of an endpoint. Raises ProviderFailed if there is none."""
        url = (await self.metadata()).get(name)
        if not isinstance(url, str):
            raise ProviderFailed(f"{self._config.discovery} names no {name}")
        return url

    async def key(self, key_id: str | None, algorithm: str) -> Any:
        """Return the key that a token names, or the only one there is. Raises ProviderFailed."""
        found = _choose(await self._key_set(self._config.jwk_expires_in), key_id)
        if found is None:
            found = _choose(await self._key_set(_RETRY_S), key_id)
        if found is None:
            raise ProviderFailed(f"the provider has no key {key_id or 'for tokens that name none'}")
        try:
            return read_jwk(found, algorithm)
        except jwt.PyJWTError as error:
            raise ProviderFailed(f"the provider's key {key_id} cannot be used: {error}") from error

    async def _key_set(self, age_s: float) -> list[dict[str, Any]]:
        async def fetch() -> list[dict[str, Any]]:
            keys = (await self._get(await self.endpoint("jwks_uri"))).get("keys")
            return [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else []

        found: list[dict[str, Any]] = await self._keys.get(fetch, age_s)
        return found

    async def introspect(self, token: str, headers: Headers) -> Mapping[str, Any]:
        """Ask about a token (RFC 7662), with headers besides. Raises ProviderFailed."""
        url = self._config.introspection_endpoint or await self.endpoint("introspection_endpoint")
        form = {"token": token, "token_type_hint": "access_token"}
        return await self._post(url, form, self._config.introspection_endpoint_auth_method, headers)

    async def redeem(self, **form: str) -> Mapping[str, Any]:
        """Get tokens for a code, or for a token for renewal. Raises ProviderFailed."""
        url = await self.endpoint("token_endpoint")
        answer = await self._post(url, form, self._config.token_endpoint_auth_method, binding=self.binding)
        if self.binding is not None and str(answer.get("token_type")).lower() != "dpop":
            raise ProviderFailed("the OpenID provider sent a token that is not bound to the key of dpop")
        return answer

    async def push(self, form: Mapping[str, str]) -> str:
        """Give the provider what a browser is to be sent with; return what stands for it. Raises ProviderFailed."""
        config = self._config
        url = config.par.endpoint or await self.endpoint("pushed_authorization_request_endpoint")
        method = config.par.endpoint_auth_method or config.token_endpoint_auth_method
        pushed = (await self._post(url, form, method, binding=self.binding)).get("request_uri")
        if not isinstance(pushed, str):
            raise ProviderFailed(f"{url} sent no request_uri")
        return pushed

    async def revoke(self, token: str, hint: str) -> None:
        """Have a token forgotten (RFC 7009). Raises ProviderFailed."""
        form = {"token": token, "token_type_hint": hint}
        await self._post(await self.endpoint("revocation_endpoint"), form, self._config.token_endpoint_auth_method)

    async def userinfo(self, token: str) -> Mapping[str, Any] | None:
        """Return what the provider says of a token's user; None if it has nowhere to ask. Raises ProviderFailed."""
        url = (await self.metadata()).get("userinfo_endpoint")
        return await self._get(url, token) if isinstance(url, str) else None

    async def _get(self, url: str, token: str | None = None) -> Mapping[str, Any]:
        def make() -> Request:
            headers = Headers([("Accept", "application/json")])
            if token is not None:
                headers.set("Authorization", f"{'Bearer' if self.binding is None else 'DPoP'} {token}")
            return Request(headers=headers)

        return _read(url, await self._call(url, make, None if token is None else self.binding, token))

    async def _post(
        self,
        url: str,
        form: Mapping[str, str],
        method: ClientAuth,
        more: Headers | None = None,
        binding: TokenBinding | None = None,
    ) -> Mapping[str, Any]:
        def make() -> Request:
            headers = Headers(more or ())
            headers.set("Content-Type", "application/x-www-form-urlencoded")
            headers.set("Accept", "application/json")
            signed = self._identity.sign_in(url, form, method, headers)
            return Request(method="POST", headers=headers, body=urlencode(signed).encode())

        return _read(url, await self._call(url, make, binding))

    async def _call(
        self, url: str, make: Callable[[], Request], binding: TokenBinding | None, token: str | None = None
    ) -> Response:
        """Ask, and once more with what the provider wants to see in a proof (RFC 9449 section 8)."""
        answer = await self._ask(url, make(), binding, token)
        if binding is not None:
            is_new = binding.take_nonce(url, answer.headers.get("DPoP-Nonce"))
            if is_new and answer.status in (400, 401):
                answer = await self._ask(url, make(), binding, token)
        return answer

    async def _ask(self, url: str, request: Request, binding: TokenBinding | None, token: str | None) -> Response:
        config = self._config
        if binding is not None:
            request.headers.set("DPoP", binding.prove(request.method, url, token))
        try:
            return await call_url(
                self._services,
                url,
                request,
                timeout_s=config.timeout,
                max_body=_MAX_ANSWER,
                verify=config.ssl_verify,
                proxy=choose_proxy(config.proxy_opts, url),
            )
        except CallFailed as error:
            raise ProviderFailed(str(error)) from error


def choose_proxy(options: ProxyOpts, url: str) -> Proxy | None:
    """Return the proxy by which a URL is reached; None: directly."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    for name in options.no_proxy.lower().split(","):
        bare = name.strip().removeprefix("*").removeprefix(".")
        if (name.strip() == "*") or (bare and (host == bare or host.endswith(f".{bare}"))):
            return None
    if parts.scheme == "https":
        place, login = options.https_proxy, options.https_proxy_authorization
    else:
        place, login = options.http_proxy, options.http_proxy_authorization
    return None if place is None else Proxy(place, _revealed(login))


def _identified(options: ProxyOpts) -> tuple[str | None, ...]:
    logins = (_revealed(options.http_proxy_authorization), _revealed(options.https_proxy_authorization))
    return (options.http_proxy, options.https_proxy, options.no_proxy, *logins)


def _revealed(secret: Secret[str] | None) -> str:
    return "" if secret is None else secret.reveal()


def _choose(keys: list[dict[str, Any]], key_id: str | None) -> dict[str, Any] | None:
    signing = [key for key in keys if key.get("use", "sig") == "sig" and key.get("kty") != "oct"]
    if key_id is None:
        return signing[0] if len(signing) == 1 else None
    return next((key for key in signing if key.get("kid") == key_id), None)


def _read(url: str, answer: Response) -> Mapping[str, Any]:
    shown = url.partition("?")[0]
    try:
        content = json.loads(answer.body or b"{}")
    except ValueError:
        content = None
    if not 200 <= answer.status < 300:
        reason = content.get("error") if isinstance(content, dict) else None
        raise ProviderFailed(f"{shown} answered {answer.status}{f', {reason}' if isinstance(reason, str) else ''}")
    if not isinstance(content, dict):
        raise ProviderFailed(f"{shown} answered something that is no JSON object")
    return content
