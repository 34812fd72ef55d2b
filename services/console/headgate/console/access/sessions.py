"""Sessions: a signed cookie that names a person and ends by itself. The key lasts as long as the process."""

import hashlib
import hmac
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Final, NamedTuple

SESSION_S: Final = 12 * 3600
OPENID_S: Final = 4 * 3600
"""After which somebody's groups are asked for again."""
COOKIE: Final = "headgate-console"


class Session(NamedTuple):
    """Somebody who has logged in."""

    name: str
    role: str
    """Which a provider has said that they have; empty for those of the file, which says it."""
    form_token: str
    """That forms of this session bring back."""


class Sessions:
    """Makes and reads sessions.

    Args:
        clock: seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._key, self._clock = secrets.token_bytes(32), clock

    def begin(self, name: str, role: str = "") -> str:
        """Return the cookie of somebody who has logged in now."""
        ends = int(self._clock()) + (OPENID_S if role else SESSION_S)
        said = f"{name}|{role}|{ends}|{secrets.token_hex(8)}".encode()
        return f"{_encoded(said)}.{_encoded(self._sign(b'session', said))}"

    def read(self, cookie: str) -> Session | None:
        """Return whose session a cookie is; None if it is none of ours, or has ended."""
        said, _, signature = cookie.partition(".")
        try:
            text, signed = urlsafe_b64decode(said), urlsafe_b64decode(signature)
            name, role, ends, _ = text.decode().split("|")
        except ValueError:
            return None
        if not hmac.compare_digest(signed, self._sign(b"session", text)) or int(ends) < self._clock():
            return None
        return Session(name, role, _encoded(self._sign(b"form", text)))

    def _sign(self, purpose: bytes, text: bytes) -> bytes:
        return hmac.new(self._key, purpose + b"|" + text, hashlib.sha256).digest()


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode()
