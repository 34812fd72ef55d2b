"""The way of a browser to the provider and back (OpenID Connect Core 3.1; PKCE is RFC 7636), and its session.

What the browser is sent with (state, nonce, verifier, where it wanted to go) it keeps itself, sealed, in a cookie for
each attempt, so that several tabs do not disturb each other and any gateway can take it up.
"""

import asyncio
import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from headgate.common.plugins.authentication.openid_connect import OpenidConnectConfig
from headgate.common.plugins.authentication.openid_session import SessionConfig
from headgate.gateway.plugins.built_in.authentication.openid_connect.keeping import make_keeper
from headgate.gateway.plugins.built_in.authentication.openid_connect.provider import Provider, ProviderFailed
from headgate.gateway.plugins.built_in.authentication.openid_connect.tokens import (
    TokenChecker,
    TokenRefused,
    granted_scope,
)
from headgate.gateway.plugins.built_in.authentication.sealed_cookies import CookieJar, Sealer, is_over
from headgate.gateway.plugins.interface import PluginServices, Request, Response
from headgate.gateway.plugins.kit.keyed import Keyed

_ATTEMPT_S = 600
"""In which a user has to be back."""
_MAX_ATTEMPTS = 5
"""That a browser has begun; with more the older ones are given up, lest its requests grow too long."""
_DEFAULT_RETURN = "/.apisix/redirect"
_TOUCH_S = 60
"""A session that was noted longer ago is noted again."""
_RENEWALS = 1000


@dataclass(frozen=True)
class Session:
    """What is kept of a user who was at the provider."""

    access_token: str
    expires: float
    """When the access token ends, in seconds since 1970."""
    id_token: str
    id_claims: Mapping[str, Any]
    refresh_token: str = ""
    user: Mapping[str, Any] = field(default_factory=dict)
    began: float = 0
    seen: float = 0
    renewed: float = 0
    scope: str = ""


_FIELDS = {each.name for each in fields(Session)}


class Found(NamedTuple):
    """The session of a request."""

    session: Session
    is_changed: bool
    """The browser has an older one."""


class Login:
    """The browser's way, for one use of the plugin."""

    def __init__(
        self,
        config: OpenidConnectConfig,
        session: SessionConfig,
        provider: Provider,
        checker: TokenChecker,
        services: PluginServices,
    ) -> None:
        self._config = config
        self._session = session
        self._provider = provider
        self._checker = checker
        self._logger = services.logger
        whose = f"{config.discovery} {config.client_id}"
        self._keeper = make_keeper(session, whose, services)
        # Who comes back comes from another site: a strict cookie would stay at home.
        same_site = "Lax" if session.cookie_same_site == "Strict" else session.cookie_same_site
        told = session.model_copy(update={"cookie_same_site": same_site})
        self._attempts = CookieJar(told, Sealer(session.secret.reveal(), whose))
        intervals = [each for each in (session.rolling_timeout, config.refresh_session_interval) if each]
        self._rolling_s = min(intervals, default=0)
        self._touch_s = min(_TOUCH_S, session.idling_timeout / 4) if session.idling_timeout else _TOUCH_S
        self._renewals: Keyed[asyncio.Task[Session]] = services.shared.get(
            ("openid-connect renewals", config.discovery, config.client_id), lambda: Keyed(_RENEWALS)
        )
        """By the token for renewal, which may be good for once only: requests at the same time share the outcome."""

    async def go(self, request: Request) -> Found | Response | None:
        """Return the session of a request, or where its browser is to go; None: there is none, and it stays.

        Raises:
            TokenRefused: what the provider has sent is not good.
            ProviderFailed: it cannot be asked.
        """
        if request.path == self._config.logout_path:
            return await self._log_out(request)
        if request.path == self._return_path(request):
            return await self._come_back(request)
        found = await self._current(request)
        if found is not None:
            return found
        # What a page fetches cannot follow to another site, and would leave an attempt behind for each request.
        stays = request.headers.get("Sec-Fetch-Mode", "navigate") != "navigate"
        return await self._send(request) if self._config.unauth_action == "auth" and not stays else None

    # Sessions

    async def _current(self, request: Request) -> Found | None:
        session = await self._kept(request)
        if session is None:
            return None
        now, config = time.time(), self._config
        is_old = bool(self._rolling_s) and now > session.renewed + self._rolling_s
        is_expired = config.renew_access_token_on_expiry and now > session.expires - config.access_token_expires_leeway
        if is_old or is_expired:
            renewed = await self._renew(session)
            if renewed is not None:
                return Found(renewed, await self._keeper.change(request, asdict(renewed)))
            # Another gateway may have been faster, and the token for renewal be good for once only.
            current = await self._kept(request)
            return Found(current, False) if current is not None and current.renewed > session.renewed else None
        if now > session.seen + self._touch_s:
            session = replace(session, seen=now)
            return Found(session, await self._keeper.change(request, asdict(session)))
        return Found(session, is_changed=False)

    async def _kept(self, request: Request) -> Session | None:
        held = await self._keeper.read(request)
        is_good = held is not None and held.keys() == _FIELDS and not is_over(self._session, held)
        return Session(**held) if held is not None and is_good else None

    async def _renew(self, session: Session) -> Session | None:
        if not session.refresh_token or self._config.force_reauthorize:
            return None
        key = hashlib.sha256(session.refresh_token.encode()).hexdigest()
        task = self._renewals.get(key)
        if task is None:
            task = self._renewals.put(key, asyncio.get_running_loop().create_task(self._renewed(session)))
        try:
            return await asyncio.shield(task)
        except (ProviderFailed, TokenRefused) as error:
            self._logger.warning("openid-connect: a session cannot be renewed: %s", error)
            self._renewals.drop(key)
            return None

    async def _renewed(self, session: Session) -> Session:
        answer = await self._provider.redeem(grant_type="refresh_token", refresh_token=session.refresh_token)
        id_token = answer.get("id_token")
        claims = session.id_claims
        if isinstance(id_token, str):
            claims = await self._checker.check_id_token(id_token, None)
            if claims["sub"] != session.id_claims["sub"]:
                raise TokenRefused("the renewed ID token is of another user")
        now, access_token = time.time(), _text(answer, "access_token")
        renewed = replace(
            session,
            access_token=access_token,
            expires=now + self._lifetime(answer),
            id_token=id_token if isinstance(id_token, str) else session.id_token,
            id_claims=claims,
            refresh_token=str(answer.get("refresh_token") or session.refresh_token),
            seen=now,
            renewed=now,
            scope=granted_scope(answer, access_token, claims) or session.scope,
        )
        return self._reduced(renewed)

    def _reduced(self, session: Session) -> Session:
        """Leave out what is not to be kept; of the ID token's claims only those that sessions are held to stay."""
        contents = self._config.session_contents
        if contents is None:
            return session
        if not contents.access_token:
            session = replace(session, access_token="", refresh_token="", expires=float("inf"))
        if not contents.id_token:
            stay = ("sub", self._config.claim_validator.audience.claim)
            session = replace(session, id_claims={name: session.id_claims.get(name) for name in stay})
        if not (contents.enc_id_token or self._config.set_raw_id_token_header):
            session = replace(session, id_token="")
        return session if contents.user else replace(session, user={})

    def _lifetime(self, answer: Mapping[str, Any]) -> float:
        lifetime = answer.get("expires_in")
        return float(lifetime) if isinstance(lifetime, int | float) else self._config.access_token_expires_in

    async def keep(self, request: Request, response: Response, session: Session) -> None:
        """Have the browser keep a session."""
        await self._keeper.write(request, response, asdict(session))

    # To the provider

    async def _send(self, request: Request) -> Response:
        config = self._config
        state, verifier, nonce = (secrets.token_urlsafe(32) for _ in range(3))
        target = _absolute(request, request.original_target)
        asked = {
            "response_type": "code",
            "client_id": config.client_id,
            "redirect_uri": self._return_url(request),
            "scope": config.scope,
            "state": state,
            **config.authorization_params,
        }
        if config.use_nonce:
            asked["nonce"] = nonce
        if config.use_pkce:
            digest = hashlib.sha256(verifier.encode()).digest()
            asked["code_challenge"] = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            asked["code_challenge_method"] = "S256"
        if self._provider.binding is not None:
            asked["dpop_jkt"] = self._provider.binding.thumbprint
        url, redirect_uri = await self._provider.endpoint("authorization_endpoint"), asked["redirect_uri"]
        if config.par.enabled:
            asked = {"client_id": config.client_id, "request_uri": await self._provider.push(asked)}
        response = _redirect(f"{url}{'&' if '?' in url else '?'}{urlencode(asked)}", "sent to the OpenID provider")
        attempt = {"state": state, "verifier": verifier, "nonce": nonce, "target": target, "began": time.time()}
        attempt["redirect_uri"] = redirect_uri
        self._attempts.write(request, response, self._attempt_name(state), attempt, _ATTEMPT_S)
        begun = self._attempts.names(request, self._attempt_name(None))
        for name in begun if len(begun) >= _MAX_ATTEMPTS else ():
            self._attempts.drop(request, response, name)
        return response

    async def _come_back(self, request: Request) -> Response:
        config = self._config
        given = {name: values[0] for name, values in parse_qs(request.query).items()}
        state = given.get("state", "")
        attempt = self._attempts.read(request, self._attempt_name(state))
        if attempt is None or not hmac.compare_digest(attempt["state"].encode(), state.encode()):
            return Response.refusal(400, "this browser was not sent to the OpenID provider from here")
        if time.time() > attempt["began"] + _ATTEMPT_S:
            return Response.refusal(400, "the way to the OpenID provider and back took too long")
        if "code" not in given:
            raise TokenRefused(f"the OpenID provider refused: {given.get('error', 'it sent no code')[:80]}")
        form = {"grant_type": "authorization_code", "code": given["code"], "redirect_uri": attempt["redirect_uri"]}
        if config.use_pkce:
            form["code_verifier"] = attempt["verifier"]
        answer = await self._provider.redeem(**form)
        id_token, access_token = _text(answer, "id_token"), _text(answer, "access_token")
        claims = await self._checker.check_id_token(id_token, attempt["nonce"] if config.use_nonce else None)
        now = time.time()
        session = Session(
            access_token=access_token,
            expires=now + self._lifetime(answer),
            id_token=id_token,
            id_claims=claims,
            refresh_token=str(answer.get("refresh_token") or ""),
            user=await self._user(access_token, claims),
            began=now,
            seen=now,
            renewed=now,
            scope=granted_scope(answer, access_token, claims),
        )
        response = _redirect(attempt["target"], "back from the OpenID provider")
        self._attempts.drop(request, response, self._attempt_name(state))
        await self.keep(request, response, self._reduced(session))
        return response

    async def _user(self, access_token: str, claims: Mapping[str, Any]) -> Mapping[str, Any]:
        if not self._config.set_userinfo_header:
            return {}
        user = await self._provider.userinfo(access_token)
        if user is not None and user.get("sub") != claims["sub"]:
            raise TokenRefused("the provider says of another user than the ID token does")
        return user or {}

    # Away

    async def _log_out(self, request: Request) -> Response:
        config, held = self._config, await self._kept(request)
        after = config.post_logout_redirect_uri
        target = _absolute(request, after) if after is not None else ""
        if held is not None and config.revoke_tokens_on_logout:
            await self._revoke(held)
        url = (await self._provider.metadata()).get("end_session_endpoint")
        if isinstance(url, str):
            asked = {"client_id": config.client_id}
            if held is not None and held.id_token:
                asked["id_token_hint"] = held.id_token
            if target:
                asked["post_logout_redirect_uri"] = target
            response = _redirect(f"{url}{'&' if '?' in url else '?'}{urlencode(asked)}", "logged out")
        elif target:
            response = _redirect(target, "logged out")
        else:
            response = Response.text(200, "Logged out.\n", reason="logged out")
        await self._keeper.end(request, response)
        return response

    async def _revoke(self, held: Session) -> None:
        for name, token in (("refresh_token", held.refresh_token), ("access_token", held.access_token)):
            if token:
                try:
                    await self._provider.revoke(token, name)
                except ProviderFailed as error:
                    self._logger.warning("openid-connect: a token cannot be revoked: %s", error)

    # Places

    def _attempt_name(self, state: str | None) -> str:
        """Return the name under which a browser keeps an attempt; None: what the names of all begin with."""
        digest = "" if state is None else hashlib.sha256(state.encode()).hexdigest()[:8]
        return f"{self._session.cookie_name}_to_{digest}"

    def _return_path(self, request: Request) -> str:
        configured = self._config.redirect_uri
        if configured is not None:
            return urlsplit(configured).path or "/"
        return request.path if request.path.endswith(_DEFAULT_RETURN) else request.path.rstrip("/") + _DEFAULT_RETURN

    def _return_url(self, request: Request) -> str:
        configured = self._config.redirect_uri
        return _absolute(request, self._return_path(request) if configured is None else configured)


def _absolute(request: Request, place: str) -> str:
    return f"{request.scheme}://{request.authority}{place}" if place.startswith("/") else place


def _redirect(url: str, reason: str) -> Response:
    response = Response(302, body=b"", reason=reason)
    response.headers.set("Location", url)
    response.headers.set("Cache-Control", "no-store")
    return response


def _text(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str) or not value:
        raise ProviderFailed(f"the OpenID provider sent no {name}")
    return value
