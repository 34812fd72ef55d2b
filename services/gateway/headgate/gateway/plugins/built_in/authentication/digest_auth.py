"""`digest-auth`: names and hashed passwords (RFC 7616, MD5 with `qop=auth`), of users that the route lists.

A nonce is a time signed with a key made of the users' hashes, so that all workers and replicas take each other's and
only a gateway can make one. Each worker takes a count of a nonce once: it remembers the counts that it saw until the
nonce ends. A nonce that is too old, or whose count was used, is answered with `stale=true`, and clients go on by
themselves. MD5 is what files of `htdigest` have; over plain HTTP the scheme protects passwords, not sessions.
"""

import hashlib
import hmac
import re
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode

from headgate.common.plugins.authentication.digest_auth import DigestAuthConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.keyed import Keyed

_REMEMBERED = 4096
"""Nonces whose counts are remembered; the one that was used least recently is forgotten first."""
_MAX_COUNT = 4096
"""Requests with one nonce; the counts that were used are bits of a number."""
_FIELD = re.compile(r'\s*([A-Za-z]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?:,|$)')
_COUNT = re.compile("[0-9a-fA-F]{8}")
_ESCAPED = re.compile(r"\\(.)")
_NEEDED = frozenset(("username", "realm", "nonce", "uri", "response", "qop", "nc", "cnonce"))


class DigestAuth(Plugin[DigestAuthConfig]):
    """Asks for a name and a password that does not go over the wire."""

    name = "digest-auth"
    order = 2515
    unforeseen = "its nonces change with time"
    Config = DigestAuthConfig

    def __init__(self, config: DigestAuthConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._digests = {name.encode().decode("latin-1"): digest for name, digest in config.digests().items()}
        known = "\n".join(f"{name}:{digest}" for name, digest in sorted(self._digests.items()))
        self._nonces = Nonces(known.encode("latin-1"), config.nonce_lifetime)
        self._realm = config.realm.replace("\\", "\\\\").replace('"', '\\"')

    def on_request(self, request: Request) -> Response | None:
        """Let the request pass, or ask for a password."""
        given = _digest_fields(request)
        if given is None:
            return self._refuse("no digest of name and password")
        digest = self._digests.get(given["username"])
        # The hash of nobody, so that an unknown name takes as long.
        expected = _response(digest or "0" * 32, request.method, given)
        if not hmac.compare_digest(expected, given["response"].lower().encode("latin-1")) or digest is None:
            return self._refuse("wrong name or password")
        if given["realm"] != self.config.realm or given["uri"] != request.original_target:
            return self._refuse("the digest is of another realm or another URI")
        if not self._nonces.use(given["nonce"], int(given["nc"], 16)):
            return self._refuse("the nonce is used up", is_stale=True)
        request.variables["remote_user"] = given["username"]
        if self.config.user_header is not None:
            request.headers.set(self.config.user_header, given["username"])
        if self.config.hide_credentials:
            request.headers.remove("Authorization")
        return None

    def _refuse(self, reason: str, *, is_stale: bool = False) -> Response:
        response = Response.refusal(401, reason)
        stale = ", stale=true" if is_stale else ""
        challenge = f'Digest realm="{self._realm}", qop="auth", algorithm=MD5, nonce="{self._nonces.make()}"{stale}'
        response.headers.set("WWW-Authenticate", challenge)
        return response


class Nonces:
    """Nonces that all who know the same hashes can check."""

    def __init__(self, key: bytes, lifetime_s: int) -> None:
        self._key = hashlib.sha256(b"headgate digest-auth " + key).digest()
        self._lifetime_s = lifetime_s
        self._used: Keyed[int] = Keyed(_REMEMBERED)

    def make(self) -> str:
        """Return a new nonce."""
        text = int(time.time()).to_bytes(8) + secrets.token_bytes(8)
        return urlsafe_b64encode(text + self._sign(text)).decode()

    def use(self, nonce: str, count: int) -> bool:
        """Use a nonce for the request of this count; False: it is no nonce, too old, or was used for this count."""
        try:
            decoded = urlsafe_b64decode(nonce.encode("latin-1"))
        except ValueError:
            return False
        text, signature = decoded[:16], decoded[16:]
        if not hmac.compare_digest(signature, self._sign(text)):
            return False
        age = time.time() - int.from_bytes(text[:8])
        if not -self._lifetime_s <= age <= self._lifetime_s or not 0 < count < _MAX_COUNT:
            return False
        used = self._used.get(nonce) or 0
        if used >> count & 1:
            return False
        self._used.put(nonce, used | 1 << count)
        return True

    def _sign(self, text: bytes) -> bytes:
        return hmac.new(self._key, text, hashlib.sha256).digest()[:20]


def _digest_fields(request: Request) -> dict[str, str] | None:
    """Read the fields of an Authorization header of this scheme; None if it has not all of them."""
    scheme, _, text = (request.headers.get("Authorization") or "").strip().partition(" ")
    if scheme.lower() != "digest":
        return None
    fields: dict[str, str] = {}
    position = 0
    while position < len(text):
        found = _FIELD.match(text, position)
        if found is None or found[1].lower() in fields:
            return None
        fields[found[1].lower()] = found[3] if found[2] is None else _ESCAPED.sub(r"\1", found[2])
        position = found.end()
    is_ours = fields.keys() >= _NEEDED and fields.get("algorithm", "MD5").upper() == "MD5" and fields["qop"] == "auth"
    return fields if is_ours and _COUNT.fullmatch(fields["nc"]) else None


def _response(digest: str, method: str, given: dict[str, str]) -> bytes:
    request = _md5(f"{method}:{given['uri']}")
    return _md5(f"{digest}:{given['nonce']}:{given['nc']}:{given['cnonce']}:{given['qop']}:{request}").encode()


def _md5(text: str) -> str:
    return hashlib.md5(text.encode("latin-1")).hexdigest()  # noqa: S324 - the scheme's own
