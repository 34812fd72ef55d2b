"""How a cookie names a backend and an endpoint without telling what they are called.

A value is `<backend>.<endpoint>`, or `<backend>.<backend>.<endpoint>` where a backend is a group: hashes keyed with the
upstream's key in the table. All workers and replicas have the same table, so they agree without exchanging anything,
and a value stays good over revisions and restarts.

The hashes keep addresses out of sight. They are no secrets: who knows the upstream's key and guesses the address can
tell that it was right. A forged value is as good as a deleted one: it leads to an endpoint that the client might have
been given anyway, or to a new choice.
"""

from base64 import urlsafe_b64encode
from hashlib import blake2b
from typing import NamedTuple

from headgate.common.table.backend_group import MAX_DEPTH

_BACKEND_BYTES = 6
_ENDPOINT_BYTES = 9
_PURPOSE = b"headgate.session"
_MOST_LEVELS = MAX_DEPTH + 1


class StickySession(NamedTuple):
    """What a cookie says."""

    backends: tuple[bytes, ...]
    """Of each level one, the outermost first."""
    endpoint: bytes


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


def _token(upstream_key: str, value: bytes, size: int) -> bytes:
    # A key of blake2b has at most 64 bytes, an upstream's more.
    key = blake2b(upstream_key.encode(), digest_size=32).digest()
    return urlsafe_b64encode(blake2b(value, key=key, digest_size=size, person=_PURPOSE).digest())
