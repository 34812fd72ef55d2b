"""How a cookie names a backend and an endpoint without telling what they are called.

A value is `<backend>.<endpoint>`: hashes keyed with the upstream's key in the table. All workers and replicas have the
same table, so they agree without exchanging anything, and a value stays good over revisions and restarts.

The hashes keep addresses out of sight. They are no secrets: who knows the upstream's key and guesses the address can
tell that it was right. A forged value is as good as a deleted one: it leads to an endpoint that the client might have
been given anyway, or to a new choice.
"""

from base64 import urlsafe_b64encode
from hashlib import blake2b
from typing import NamedTuple

_BACKEND_BYTES = 6
_ENDPOINT_BYTES = 9
_PURPOSE = b"headgate.session"


class Session(NamedTuple):
    """What a cookie says."""

    backend: bytes
    endpoint: bytes


def parse_session(value: bytes | None) -> Session | None:
    """Take a cookie's value apart; None if it cannot be ours."""
    backend, dot, endpoint = (value or b"").partition(b".")
    return Session(backend, endpoint) if backend and dot and endpoint else None


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
