"""`basic-auth`: names and passwords (RFC 7617), of consumers, or of users that the route lists.

Slow hashes are checked in two threads of their own, of which one use of the plugin has one at a time, and a password
that was right is remembered by a keyed digest, so that a client that keeps sending it costs one digest and no wait. Of
bcrypt costs from 4 to 14 are taken. With too many that wait for a check, as when somebody guesses, further ones get a
503. A name that is unknown costs a check too, so that time does not tell which are known.
"""

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor

from headgate.common.plugins.authentication.basic_auth import BasicAuthConfig
from headgate.gateway.plugins.built_in.authentication.authenticator import Authenticator, Identified, basic_credentials
from headgate.gateway.plugins.built_in.authentication.passwords import Hashed, plain, read_hash
from headgate.gateway.plugins.interface import Foreseen, PluginServices, Request, Response
from headgate.gateway.plugins.interface.errors import Unforeseeable
from headgate.gateway.plugins.kit.keyed import Keyed

_REMEMBERED = 4096
MAX_WAITING = 256
"""Checks under way and waiting, for each use of the plugin."""
_THREADS = ThreadPoolExecutor(2, thread_name_prefix="passwords")
"""Apart from the loop's own threads, which look names up: guessing must not hold these up."""


class BasicAuth(Authenticator[BasicAuthConfig]):
    """Asks for a name and a password: those of a consumer, or of the users that it was told."""

    name = "basic-auth"
    order = 2520
    Config = BasicAuthConfig
    scheme = "Basic"

    def __init__(self, config: BasicAuthConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self.finds_consumer = not config.has_users
        self._kept = {name.encode(): hashed for name, hashed in _read_users(config).items()}
        self._hashes = tuple(self._kept.values())
        if skipped := config.count_skipped():
            # Their names are sealed with the hashes.
            services.logger.warning(
                "basic-auth of %s: %d users cannot come in, as their hashes are none that can be checked; "
                "make them with `htpasswd -B`",
                services.scope,
                skipped,
            )
        self._right: Keyed[bool] = Keyed(_REMEMBERED)
        self._waiting = 0
        self._turn = asyncio.Lock()
        """Guessing on this route holds up at most one of the threads that all routes share."""
        self._digest_key = secrets.token_bytes(32)

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Let the request pass, or ask for a password."""
        return super().on_request(request) if self.finds_consumer else self._check_user(request)

    def foresee(self, request: Request) -> Foreseen | Awaitable[Foreseen]:
        """Check, unless that takes long."""
        is_given = basic_credentials(request) is not None
        if is_given and not self.finds_consumer and any(hashed.is_slow for hashed in self._hashes):
            raise Unforeseeable("its passwords take long to check")
        return self.on_request(request)

    # Consumers

    def identify(self, request: Request) -> Identified:
        """Look the name up, and compare the password."""
        given = basic_credentials(request)
        if given is None:
            return self.refusal("Missing authorization in request")
        name, password = given
        credential = self.services.find_credential(self.name, name)
        if credential is None or not hmac.compare_digest(credential.config.password.reveal().encode(), password):
            return self.refusal("Invalid user authorization")
        return credential

    # Users

    def _check_user(self, request: Request) -> Response | Awaitable[Response | None] | None:
        given = basic_credentials(request)
        if given is None:
            return self.refusal("no name and password")
        name, password = given
        hashed = self._kept.get(name)
        is_known = hashed is not None
        if hashed is None:
            hashed = self._stand_in(name)
        if hashed.is_slow and self._right.get(self._digest(name, password)) is None:
            return self._check_slowly(request, name, password, hashed, is_known=is_known)
        if not (hashed.is_slow or hashed.check(password)) or not is_known:
            return self.refusal("wrong name or password")
        self._pass(request, name)
        return None

    def _stand_in(self, name: bytes) -> Hashed:
        """Return the hash that an unknown name is checked against: of a known one, and always the same for a name."""
        if not self._hashes:
            return _NOTHING
        return self._hashes[int(self._digest(name, b"")[:8], 16) % len(self._hashes)]

    async def _check_slowly(
        self, request: Request, name: bytes, password: bytes, hashed: Hashed, *, is_known: bool
    ) -> Response | None:
        if self._waiting >= MAX_WAITING:
            return Response.refusal(503, "too many passwords to check")
        self._waiting += 1
        try:
            async with self._turn:
                is_right = await asyncio.get_running_loop().run_in_executor(_THREADS, hashed.check, password)
        finally:
            self._waiting -= 1
        if not (is_right and is_known):
            return self.refusal("wrong name or password")
        self._right.put(self._digest(name, password), True)
        self._pass(request, name)
        return None

    def _digest(self, name: bytes, password: bytes) -> str:
        return hmac.new(self._digest_key, name + b":" + password, hashlib.sha256).hexdigest()

    def _pass(self, request: Request, name: bytes) -> None:
        user = name.decode("latin-1")
        request.variables["remote_user"] = user
        if self.config.hide_credentials:
            self.hide(request)
        if self.config.user_header is not None:
            request.headers.set(self.config.user_header, user)


def _read_users(config: BasicAuthConfig) -> dict[str, Hashed]:
    """Return the users by name; of a name that occurs twice the first counts, as with nginx."""
    users: dict[str, Hashed] = {}
    for user in config.users:
        if user.password is not None:
            users.setdefault(user.username, plain(user.password.reveal().encode()))
    for name, kept in config.hashes():
        users.setdefault(name, read_hash(kept))
    return users


_NOTHING = Hashed(lambda given: False, is_slow=False)
