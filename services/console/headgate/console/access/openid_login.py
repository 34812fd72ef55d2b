"""Logging in at an OpenID provider: by a code, with PKCE, for a browser that began it here.

A login is bound to a browser by a cookie of ten minutes. State, nonce and verifier follow from it by a key that only
this process has, so nothing is kept of logins that are never finished. The session's cookie is strict, and browsers
leave it out on ways that began at the provider: a page of ours in between begins the next way here.
"""

import hashlib
import hmac
import re
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from aiohttp import web

from headgate.console.access.errors import LoginRefused
from headgate.console.access.openid_provider import OpenIdProvider
from headgate.console.access.people import Person, Role
from headgate.console.settings import ConsoleSettings

COOKIE: Final = "headgate-console-login"
PATH: Final = "/login/openid"
LOGIN_S: Final = 600
EVERYBODY: Final = "*"
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f|]{1,128}")


class OpenIdLogin:
    """Begins and ends logins.

    Args:
        settings: whom the provider may let in.
        provider: that is asked.
        clock: seconds since 1970.
    """

    def __init__(
        self, settings: ConsoleSettings, provider: OpenIdProvider, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings, self.provider, self._clock = settings, provider, clock
        self._key = secrets.token_bytes(32)
        self.is_secure = settings.console_url.startswith("https://")

    async def begin(self) -> web.Response:
        """Send a browser to the provider.

        Raises:
            ProviderFailed: it does not say where.
        """
        begun = f"{secrets.token_urlsafe(24)}.{int(self._clock()) + LOGIN_S}"
        challenge = _encoded(hashlib.sha256(self._made("verifier", begun).encode()).digest())
        state, nonce = self._made("state", begun), self._made("nonce", begun)
        url = await self.provider.authorization_url(state, nonce, challenge)
        response = web.Response(status=303, headers={"Location": url, "Cache-Control": "no-store"})
        response.set_cookie(
            COOKIE,
            f"{begun}.{self._made('cookie', begun)}",
            max_age=LOGIN_S,
            path=PATH,
            httponly=True,
            samesite="Lax",
            secure=self.is_secure,
        )
        return response

    async def end(self, request: web.Request) -> Person:
        """Return who comes back from the provider.

        Raises:
            LoginRefused: it is no login that this browser began here, or nobody who may come in.
            ProviderFailed: the provider does not answer.
        """
        begun = self._read(request.cookies.get(COOKIE, ""))
        if not _is_same(request.query.get("state", ""), self._made("state", begun)):
            raise LoginRefused("this login was begun by another browser: log in once more")
        if request.query.get("iss", self._settings.console_oidc_issuer) != self._settings.console_oidc_issuer:
            raise LoginRefused("this answer is of another provider (iss)")
        if (code := request.query.get("code", "")) == "":
            raise LoginRefused(f"the provider refuses: {request.query.get('error', 'no code')[:100]}")
        made = self._made("verifier", begun), self._made("nonce", begun)
        return self._person(await self.provider.redeem(code, *made))

    def _read(self, cookie: str) -> str:
        """Return what a cookie of ours says."""
        begun, _, signature = cookie.rpartition(".")
        ends = begun.rpartition(".")[2]
        if not _is_same(signature, self._made("cookie", begun)) or int(ends) < self._clock():
            raise LoginRefused("this login was not begun here, or more than ten minutes ago: log in once more")
        return begun

    def _person(self, claims: Mapping[str, Any]) -> Person:
        name = self._name(claims)
        found = _find(claims, self._settings.console_oidc_groups_claim)
        groups = {one for one in (found if isinstance(found, list) else [found]) if isinstance(one, str)} | {EVERYBODY}
        for role, allowed in (
            (Role.OPERATOR, self._settings.console_oidc_operator_groups),
            (Role.VIEWER, self._settings.console_oidc_viewer_groups),
        ):
            if groups & set(allowed):
                return Person(name, role)
        raise LoginRefused(f"{name} is in no group that may come in here")

    def _name(self, claims: Mapping[str, Any]) -> str:
        """Return the name that stands in the history; that of an address only if the provider has tried it."""
        claim = self._settings.console_oidc_name_claim
        is_doubtful = claim == "email" and claims.get("email_verified") is False
        for name in ("" if is_doubtful else _find(claims, claim), claims["sub"]):
            if isinstance(name, str) and _NAME.fullmatch(name):
                return name
        raise LoginRefused("the provider's name for you has characters that no name has here")

    def _made(self, purpose: str, begun: str) -> str:
        return _encoded(hmac.new(self._key, f"{purpose}|{begun}".encode(), hashlib.sha256).digest())


def _find(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim by its name, or by its path (`realm_access.roles`)."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _is_same(said: str, made: str) -> bool:
    return hmac.compare_digest(said.encode(errors="surrogateescape"), made.encode())


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
