"""An OpenID provider: where it is, its keys, and what it says of somebody (OpenID Connect Core 1.0, Discovery 1.0).

Only signatures by keys of the provider count: a secret that both sides have (HS256) would let the console itself make
tokens, and `none` everybody. Rejected: asking the userinfo endpoint for groups, which is one more party's answer on the
way to a role; providers can put them into the ID token.
"""

import asyncio
import json
import secrets
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote_plus, urlencode, urlsplit

import aiohttp
import jwt

from headgate.common.trust import verifying_context
from headgate.console.access.errors import LoginRefused, ProviderFailed
from headgate.console.settings import ConsoleSettings, is_safe

REDIRECT_PATH: Final = "/login/openid/done"
ALGORITHMS: Final = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
)
ASK_S: Final = 10.0
MAX_ANSWER: Final = 1024 * 1024
LEEWAY_S: Final = 60
KEPT_S: Final = 3600.0
"""What a provider says of itself."""
KEYS_AGAIN_S: Final = 30.0
"""Between two looks for a key that is not known."""
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class OpenIdProvider:
    """The provider that the settings name.

    Args:
        settings: with `console_oidc_issuer`.
        clock: seconds.
    """

    def __init__(self, settings: ConsoleSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._clock = settings, clock
        self._issuer = settings.console_oidc_issuer
        self.redirect_uri = f"{settings.console_url}{REDIRECT_PATH}"
        """Of the settings alone: a `Host` that somebody sends has no part in it."""
        self._session: aiohttp.ClientSession | None = None
        self._lock = asyncio.Lock()
        self._metadata: dict[str, str] = {}
        self._read_at = 0.0
        self._keys: list[dict[str, Any]] = []
        self._keys_at = 0.0

    async def authorization_url(self, state: str, nonce: str, challenge: str) -> str:
        """Return where a browser is sent to (RFC 6749 4.1.1, RFC 7636 4.3).

        Raises:
            ProviderFailed: the provider does not say where.
        """
        where = (await self._discover())["authorization_endpoint"]
        query = {
            "response_type": "code",
            "client_id": self._settings.console_oidc_client_id,
            "redirect_uri": self.redirect_uri,
            "scope": " ".join(self._settings.console_oidc_scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{where}{'&' if urlsplit(where).query else '?'}{urlencode(query)}"

    async def redeem(self, code: str, verifier: str, nonce: str) -> Mapping[str, Any]:
        """Return the claims of the ID token that a code stands for.

        Raises:
            LoginRefused: the code, or the token, is none for this login.
            ProviderFailed: the provider does not answer.
        """
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri,
            "code_verifier": verifier,
        }
        where = (await self._discover())["token_endpoint"]
        found = await self._ask("POST", where, form, self._credentials(form))
        token = found.get("id_token")
        if not isinstance(token, str):
            raise ProviderFailed("the provider gave no id_token: does the scope `openid` reach it?")
        claims = await self._verify(token)
        if not secrets.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise LoginRefused("the provider's token is of another login: log in once more")
        return claims

    def _credentials(self, form: dict[str, str]) -> dict[str, str]:
        """Return the header that names this client (RFC 6749 2.3.1); one without a secret names itself in the form."""
        name, secret = self._settings.console_oidc_client_id, self._settings.console_oidc_client_secret
        if not secret.get_secret_value():
            form["client_id"] = name
            return {}
        pair = f"{quote_plus(name)}:{quote_plus(secret.get_secret_value())}"
        return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}

    async def _verify(self, token: str) -> dict[str, Any]:
        try:
            head = jwt.get_unverified_header(token)
            algorithm = str(head.get("alg"))
            if algorithm not in ALGORITHMS:
                raise LoginRefused(
                    f"the provider signs with {algorithm!r}, which proves nothing here: use RS256 or ES256"
                )
            key = jwt.PyJWK(await self._key(head.get("kid")), algorithm=algorithm).key
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._settings.console_oidc_client_id,
                issuer=self._issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iat", "sub", "aud", "iss"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError, KeyError) as error:
            raise LoginRefused(f"the provider's token cannot be believed: {error}") from error
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if ("azp" in claims or several) and claims.get("azp") != self._settings.console_oidc_client_id:
            raise LoginRefused("the provider's token is for another client (azp)")
        return claims

    async def _key(self, key_id: Any) -> dict[str, Any]:
        """Return the key of an id; of a token without one the only key."""
        async with self._lock:
            found = self._find(key_id)
            if found is None and (not self._keys or self._clock() - self._keys_at > KEYS_AGAIN_S):
                document = await self._ask("GET", (await self._discover())["jwks_uri"])
                keys = document.get("keys")
                self._keys = [one for one in keys if isinstance(one, dict)] if isinstance(keys, list) else []
                self._keys_at = self._clock()
                found = self._find(key_id)
        if found is None:
            raise LoginRefused("the provider's token is signed with a key that the provider does not publish")
        return found

    def _find(self, key_id: Any) -> dict[str, Any] | None:
        fit = [one for one in self._keys if one.get("use", "sig") == "sig" and key_id in (None, one.get("kid"))]
        return fit[0] if len(fit) == 1 or (fit and key_id is not None) else None

    async def _discover(self) -> dict[str, str]:
        """Return what the provider says of itself, read once an hour."""
        if self._metadata and self._clock() - self._read_at < KEPT_S:
            return self._metadata
        document = await self._ask("GET", f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if document.get("issuer") != self._issuer:
            raise ProviderFailed(f"console_oidc_issuer: {self._issuer} calls itself {document.get('issuer')!r}")
        for name in _ENDPOINTS:
            if not is_safe(str(document.get(name, ""))):
                raise ProviderFailed(f"the provider's {name} is no https:// URL: {document.get(name)!r}")
        self._metadata = {name: str(document[name]) for name in _ENDPOINTS}
        self._read_at = self._clock()
        return self._metadata

    async def _ask(
        self, method: str, url: str, form: dict[str, str] | None = None, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the JSON object that the provider answers with."""
        try:
            if self._session is None:
                self._session = aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(ssl=self._trust()), timeout=aiohttp.ClientTimeout(total=ASK_S)
                )
            async with self._session.request(method, url, data=form, headers=headers, allow_redirects=False) as answer:
                body = await answer.content.read(MAX_ANSWER + 1)
                while len(body) <= MAX_ANSWER and (more := await answer.content.read(MAX_ANSWER + 1 - len(body))):
                    body += more
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ProviderFailed(f"the provider does not answer at {url}: {error or 'timeout'}") from error
        if form is not None and answer.status == 400:
            raise LoginRefused("the provider does not take the code: log in once more")
        if answer.status != 200 or len(body) > MAX_ANSWER:
            raise ProviderFailed(f"the provider answers {answer.status} at {url}")
        try:
            found = json.loads(body)
        except ValueError as error:
            raise ProviderFailed(f"the provider's answer at {url} is no JSON") from error
        if not isinstance(found, dict):
            raise ProviderFailed(f"the provider's answer at {url} is no JSON object")
        return found

    def _trust(self) -> ssl.SSLContext:
        context = verifying_context()
        if self._settings.console_oidc_ca_file is not None:
            context.load_verify_locations(self._settings.console_oidc_ca_file)
        return context

    async def close(self) -> None:
        """Close its connections."""
        if self._session is not None:
            await self._session.close()
