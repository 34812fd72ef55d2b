"""How a cookie names a backend and an endpoint without telling what they are called.

A value is `<backend>.<endpoint>`, or `<backend>.<backend>.<endpoint>` where a backend is a group: hashes keyed with the
upstream's key in the table. All workers and replicas have the same table, so they agree without exchanging anything,
and a value stays good over revisions and restarts.

A cookie as Traefik makes it has one value instead. It names the endpoint by its URL, and the route has one backend
then, or it names a backend, and nothing of its endpoints.

The hashes keep addresses out of sight. They are no secrets: who knows the upstream's key and guesses the address can
tell that it was right. A forged value is as good as a deleted one: it leads to an endpoint that the client might have
been given anyway, or to a new choice.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from hashlib import blake2b, sha256
from typing import NamedTuple

from headgate.common.table.backend_group import MAX_DEPTH

_BACKEND_BYTES = 6
_ENDPOINT_BYTES = 9
_PURPOSE = b"headgate.session"
_MOST_LEVELS = MAX_DEPTH + 1
_TRAEFIK_DIGITS = 16
_FNV_OFFSET, _FNV_PRIME, _FNV_MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1
"""Of FNV-1 with 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/)."""


class StickySession(NamedTuple):
    """What a cookie says."""

    backends: tuple[bytes, ...]
    """Of each level one, the outermost first; none where the cookie names endpoints by URL."""
    endpoint: bytes
    """Empty where the cookie names a backend alone."""


def parse_session(value: bytes | None) -> StickySession | None:
    """Take a cookie's value apart; None if it cannot be ours."""
    *backends, endpoint = (value or b"").split(b".", _MOST_LEVELS)
    is_ours = backends and all(backends) and endpoint
    return StickySession(tuple(backends), endpoint) if is_ours else None


def backend_token(upstream_key: str) -> bytes:
    """Return what names a backend."""
    return _token(upstream_key, b"", _BACKEND_BYTES)


def endpoint_token(upstream_key: str, endpoint: bytes) -> bytes:
    """Return what names an endpoint of a backend, given as `address:port`."""
    return _token(upstream_key, endpoint, _ENDPOINT_BYTES)


def traefik_token(name: bytes) -> bytes:
    """Return what names an endpoint, given by its URL, or a backend in a cookie of Traefik."""
    return sha256(name).hexdigest()[:_TRAEFIK_DIGITS].encode()


def old_traefik_tokens(name: bytes) -> Iterable[bytes]:
    """Return what names it in cookies that earlier releases of Traefik wrote, and that it still takes."""
    hashed = _fnv(name)
    return name, hashed, _fnv(hashed)


def _fnv(value: bytes) -> bytes:
    found = _FNV_OFFSET
    for byte in value:
        found = (found * _FNV_PRIME & _FNV_MASK) ^ byte
    return b"%x" % found


def _token(upstream_key: str, value: bytes, size: int) -> bytes:
    # A key of blake2b has at most 64 bytes, an upstream's more.
    key = blake2b(upstream_key.encode(), digest_size=32).digest()
    return urlsafe_b64encode(blake2b(value, key=key, digest_size=size, person=_PURPOSE).digest())
