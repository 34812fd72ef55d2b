"""What a browser keeps for us: its session, and what it was sent to a provider with, sealed in its own cookies.

Only who has the secret can read or make one (XSalsa20-Poly1305); gateways share the secret, so that any of them takes
up a session of another, and none keeps anything. What is longer than a cookie may be is spread over several.
"""

import hashlib
import json
import time
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from headgate.common.plugins.authentication.openid_session import SessionConfig
from headgate.gateway.plugins.interface import Request, Response
from headgate.gateway.plugins.interface.variables import cookie_value

_PIECE = 3800
"""Characters of one cookie; browsers take 4096 bytes with its name and attributes."""
_MAX_PIECES = 8
_MAX_CONTENT = 256 * 1024


class Sealer:
    """Seals with a secret, for one purpose: what was sealed for another one, or under another name, is nothing here."""

    def __init__(self, secret: str, purpose: str) -> None:
        self._purpose = purpose
        self._box = SecretBox(hashlib.blake2b(secret.encode(), digest_size=32).digest())

    def seal(self, name: str, held: Mapping[str, Any]) -> bytes:
        """Seal something, under a name."""
        content = json.dumps({"purpose": f"{self._purpose} {name}", "held": held}).encode()
        return bytes(self._box.encrypt(zlib.compress(content)))

    def open(self, name: str, sealed: bytes) -> dict[str, Any] | None:
        """Return what was sealed under a name; None if it was not, or not by us."""
        try:
            content = json.loads(zlib.decompressobj().decompress(self._box.decrypt(sealed), _MAX_CONTENT))
        except (CryptoError, ValueError, zlib.error):
            return None
        return content["held"] if content.get("purpose") == f"{self._purpose} {name}" else None


class CookieJar:
    """Reads and writes the cookies of one use of the plugin."""

    def __init__(self, config: SessionConfig, sealer: Sealer) -> None:
        self._config = config
        self._sealer = sealer

    def read(self, request: Request, name: str) -> dict[str, Any] | None:
        """Return what a browser keeps under a name; None if there is nothing, or if it is not ours."""
        cookies = "; ".join(request.headers.get_all("Cookie"))
        parts = []
        for place in range(_MAX_PIECES):
            part = cookie_value(cookies, _numbered(name, place))
            if part is None:
                break
            parts.append(part)
        if not parts:
            return None
        try:
            sealed = urlsafe_b64decode("".join(parts))
        except ValueError:
            return None
        return self._sealer.open(name, sealed)

    def write(self, request: Request, response: Response, name: str, held: Mapping[str, Any], age_s: int) -> None:
        """Have a browser keep something for so many seconds; 0: until it is closed. Raises ValueError if too long."""
        sealed = urlsafe_b64encode(self._sealer.seal(name, held)).decode()
        parts = [sealed[start : start + _PIECE] for start in range(0, len(sealed), _PIECE)]
        if len(parts) > _MAX_PIECES:
            raise ValueError(f"a session of {len(sealed)} characters is too long for cookies")
        for place, part in enumerate(parts):
            self._set(request, response, _numbered(name, place), part, f"; Max-Age={age_s}" if age_s else "")
        self._drop(request, response, name, len(parts))

    def names(self, request: Request, prefix: str) -> list[str]:
        """Return the names under which a browser keeps something that begin so."""
        cookies = ";".join(request.headers.get_all("Cookie")).split(";")
        return [name for name in (cookie.partition("=")[0].strip() for cookie in cookies) if name.startswith(prefix)]

    def drop(self, request: Request, response: Response, name: str) -> None:
        """Have a browser forget what it keeps under a name."""
        self._drop(request, response, name, 0)

    def _drop(self, request: Request, response: Response, name: str, start: int) -> None:
        cookies = "; ".join(request.headers.get_all("Cookie"))
        for place in range(start, _MAX_PIECES):
            if cookie_value(cookies, _numbered(name, place)) is not None:
                self._set(request, response, _numbered(name, place), "", "; Max-Age=0")

    def _set(self, request: Request, response: Response, name: str, value: str, age: str) -> None:
        config = self._config
        is_secure = request.scheme == "https" if config.cookie_secure is None else config.cookie_secure
        text = f"{name}={value}; Path={config.cookie_path}{age}"
        if config.cookie_same_site != "Default":
            text += f"; SameSite={config.cookie_same_site}"
        if config.cookie_domain is not None:
            text += f"; Domain={config.cookie_domain}"
        if is_secure:
            text += "; Secure"
        if config.cookie_http_only:
            text += "; HttpOnly"
        response.headers.add("Set-Cookie", text)


def is_over(config: SessionConfig, held: Mapping[str, Any]) -> bool:
    """Tell whether a session has ended by its age, or by having been left alone."""
    now = time.time()
    return bool(
        (config.age_s and now > held["began"] + config.age_s)
        or (config.idling_timeout and now > held["seen"] + config.idling_timeout)
    )


def _numbered(name: str, place: int) -> str:
    return f"{name}_{place + 1}" if place else name
