"""Where sessions are: with the browsers that have them, or in a Redis that all gateways ask.

In Redis they are sealed as in cookies, under a digest of the number that the browser has: who reads Redis learns no
token and no number, and who writes there makes no session. Only whoever was at the provider has anything stored.
"""

import hashlib
import secrets
import time
from collections.abc import Mapping
from typing import Any, Protocol

from headgate.common.errors import StoreError
from headgate.common.plugins.authentication.openid_session import SessionConfig, SessionRedisConfig
from headgate.gateway.plugins.built_in.authentication.sealed_cookies import CookieJar, Sealer
from headgate.gateway.plugins.interface import PluginServices, Request, Response


class SessionsUnreachable(Exception):
    """Sessions cannot be read or written now; the text says why."""


class SessionKeeper(Protocol):
    """Keeps sessions. All but `write` of cookies may raise SessionsUnreachable."""

    async def read(self, request: Request) -> dict[str, Any] | None:
        """Return the session of a request."""

    async def write(self, request: Request, response: Response, held: Mapping[str, Any]) -> None:
        """Keep a session that the browser is to have from now on, instead of the one that it has."""

    async def change(self, request: Request, held: Mapping[str, Any]) -> bool:
        """Keep another content of a request's session; True: it has to be written once there is an answer."""

    async def end(self, request: Request, response: Response) -> None:
        """Forget the session of a request."""


class CookieSessions:
    """Sessions that browsers keep."""

    def __init__(self, config: SessionConfig, jar: CookieJar) -> None:
        self._config = config
        self._jar = jar

    async def read(self, request: Request) -> dict[str, Any] | None:
        """Return what the browser has."""
        return self._jar.read(request, self._config.cookie_name)

    async def write(self, request: Request, response: Response, held: Mapping[str, Any]) -> None:
        """Give it to the browser."""
        self._jar.write(request, response, self._config.cookie_name, held, self._config.age_s)

    async def change(self, request: Request, held: Mapping[str, Any]) -> bool:
        """Leave it for the answer."""
        return True

    async def end(self, request: Request, response: Response) -> None:
        """Have the browser forget it."""
        self._jar.drop(request, response, self._config.cookie_name)


class RedisSessions:
    """Sessions in Redis; browsers have their numbers."""

    def __init__(
        self,
        config: SessionConfig,
        redis: SessionRedisConfig,
        jar: CookieJar,
        sealer: Sealer,
        services: PluginServices,
    ) -> None:
        self._config = config
        self._prefix = redis.prefix
        self._jar = jar
        self._sealer = sealer
        self._held = services.find_sessions(redis)

    async def read(self, request: Request) -> dict[str, Any] | None:
        """Return what Redis has under the number that the browser has."""
        key = self._key(request)
        if key is None:
            return None
        try:
            sealed = await self._held.link.get(key)
        except StoreError as error:
            raise SessionsUnreachable(str(error)) from error
        return None if sealed is None else self._sealer.open(key, sealed)

    async def write(self, request: Request, response: Response, held: Mapping[str, Any]) -> None:
        """Keep it under a new number: one that somebody knew before the user came is good for nothing."""
        number = secrets.token_urlsafe(32)
        key = self._named(number)
        try:
            await self._drop(request)
            await self._held.link.put(key, self._sealer.seal(key, held), self._ttl_s(held))
        except StoreError as error:
            raise SessionsUnreachable(str(error)) from error
        self._jar.write(request, response, self._config.cookie_name, {"number": number}, self._config.age_s)

    async def change(self, request: Request, held: Mapping[str, Any]) -> bool:
        """Keep it at once, unless it has ended meanwhile."""
        key = self._key(request)
        if key is not None:
            try:
                await self._held.link.replace(key, self._sealer.seal(key, held), self._ttl_s(held))
            except StoreError as error:
                raise SessionsUnreachable(str(error)) from error
        return False

    async def end(self, request: Request, response: Response) -> None:
        """Remove it, for all who have its number."""
        try:
            await self._drop(request)
        except StoreError as error:
            raise SessionsUnreachable(str(error)) from error
        self._jar.drop(request, response, self._config.cookie_name)

    async def _drop(self, request: Request) -> None:
        key = self._key(request)
        if key is not None:
            await self._held.link.drop(key)

    def _key(self, request: Request) -> str | None:
        held = self._jar.read(request, self._config.cookie_name)
        number = None if held is None else held.get("number")
        return self._named(number) if isinstance(number, str) else None

    def _named(self, number: str) -> str:
        return f"{self._prefix}:{hashlib.sha256(number.encode()).hexdigest()}"

    def _ttl_s(self, held: Mapping[str, Any]) -> float:
        config = self._config
        ends = [config.idling_timeout] if config.idling_timeout else []
        if config.age_s:
            ends.append(held["began"] + config.age_s - time.time())
        return float(min(ends))


def make_keeper(config: SessionConfig, purpose: str, services: PluginServices) -> SessionKeeper:
    """Make what keeps the sessions of one use of the plugin."""
    sealer = Sealer(config.secret.reveal(), purpose)
    jar = CookieJar(config, sealer)
    if config.storage == "redis" and config.redis is not None:
        return RedisSessions(config, config.redis, jar, sealer, services)
    return CookieSessions(config, jar)
