"""Access tokens of Google Cloud for a service account (RFC 7523, https://developers.google.com/identity/protocols/oauth2/
service-account): a signed statement is exchanged for a token, which is kept until shortly before it ends.
"""

import asyncio
import hashlib
import json
import math
import time
from typing import Any, Final
from urllib.parse import urlencode

import jwt

from headgate.common.plugins.ai.proxy import AiGcpAuth
from headgate.gateway.plugins.interface import Headers, PluginServices, Request
from headgate.gateway.plugins.kit.calls import CallFailed, call_url

_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_STATED_S: Final = 3600
"""For which a statement is good, the most that Google takes."""
_MAX_LIFETIME_S: Final = 1e9
"""What is said to last longer is no number of seconds."""
_TIMEOUT_S: Final = 10.0
_MAX_ANSWER: Final = 64 << 10


class GoogleTokens:
    """The token of one service account."""

    __slots__ = ("__weakref__", "_ends", "_failed", "_lock", "_token")

    def __init__(self) -> None:
        self._token = ""
        self._ends = 0.0
        self._failed = -math.inf, ""
        """When the last question failed, in monotonic seconds, and why."""
        self._lock = asyncio.Lock()

    async def get(self, auth: AiGcpAuth, services: PluginServices, *, verify: bool) -> str:
        """Return a token that is good now; requests at the same time share one, or its failure. Raises CallFailed."""
        came = time.monotonic()
        async with self._lock:
            if time.time() >= self._ends:
                failed, why = self._failed
                if failed >= came:
                    # Those who waited would wait for a server that does not answer once more, one after the other.
                    raise CallFailed(why)
                await self._renew(auth, services, verify=verify)
            return self._token

    async def _renew(self, auth: AiGcpAuth, services: PluginServices, *, verify: bool) -> None:
        try:
            token, lifetime_s = await _fetch(auth, services, verify=verify)
        except CallFailed as error:
            self._failed = time.monotonic(), str(error)
            raise
        early_s = auth.expire_early_secs if lifetime_s > auth.expire_early_secs else 0
        lifetime_s = min(lifetime_s - early_s, auth.max_ttl or lifetime_s)
        self._token, self._ends = token, time.time() + lifetime_s


def tokens_of(auth: AiGcpAuth, services: PluginServices) -> GoogleTokens:
    """Return the token of a service account, the same for all routes of a worker that have its key."""
    told = f"{auth.service_account_json.reveal()}\0{auth.max_ttl}\0{auth.expire_early_secs}"
    key = hashlib.sha256(told.encode()).hexdigest()
    return services.shared.get(("ai google tokens", key), GoogleTokens)


async def _fetch(auth: AiGcpAuth, services: PluginServices, *, verify: bool) -> tuple[str, float]:
    account = auth.account()
    body = urlencode({"grant_type": _GRANT, "assertion": await asyncio.to_thread(_statement, account)}).encode()
    question = Request(
        method="POST",
        headers=Headers([("Content-Type", "application/x-www-form-urlencoded")]),
        body=body,
        content_length=len(body),
    )
    url = account.token_uri
    answer = await call_url(services, url, question, timeout_s=_TIMEOUT_S, max_body=_MAX_ANSWER, verify=verify)
    try:
        said: Any = json.loads(answer.body or b"")
        token, lifetime = said["access_token"], said.get("expires_in", _STATED_S)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CallFailed(f"{url} answered {answer.status} without an access token") from None
    is_lifetime = isinstance(lifetime, int | float) and abs(lifetime) < _MAX_LIFETIME_S
    if answer.status != 200 or not isinstance(token, str) or not is_lifetime:
        raise CallFailed(f"{url} answered {answer.status} without an access token")
    return token, float(lifetime)


def _statement(account: Any) -> str:
    now = int(time.time())
    claims = {
        "iss": account.client_email,
        "scope": _SCOPE,
        "aud": account.token_uri,
        "iat": now,
        "exp": now + _STATED_S,
    }
    kept = {"kid": account.private_key_id} if account.private_key_id else None
    try:
        return jwt.encode(claims, account.private_key, algorithm="RS256", headers=kept)
    except (ValueError, TypeError, jwt.PyJWTError):
        raise CallFailed("private_key of the service account is no RSA key in PEM") from None
