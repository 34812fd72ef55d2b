"""Tokens of Retry packets (RFC 9000 section 8.1): a client shows that it receives what is sent to its address."""

import os
import time
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_LIFE_S: Final = 10.0
"""A client comes back at once."""
_NONCE: Final = 12
_HEAD: Final = 8 + 1


class Retried(NamedTuple):
    """What a token says that its client was told."""

    original_id: bytes
    """The connection id that the client chose at first."""
    retry_id: bytes
    """That which the Retry packet named, and the client now uses."""


class RetryTokens:
    """Seals tokens with a key of this process, to which the client's next packet comes from the same address."""

    def __init__(self) -> None:
        self._aead = AESGCM(AESGCM.generate_key(bit_length=128))

    def seal(self, address: tuple[str, int], original_id: bytes, retry_id: bytes) -> bytes:
        """Make a token for an address."""
        nonce = os.urandom(_NONCE)
        told = int(time.monotonic() * 1000).to_bytes(8, "big") + bytes((len(original_id),)) + original_id + retry_id
        return nonce + self._aead.encrypt(nonce, told, _bound_to(address))

    def open(self, address: tuple[str, int], token: bytes) -> Retried | None:
        """Read a token; None: it is not ours, of another address, or too old."""
        try:
            told = self._aead.decrypt(token[:_NONCE], token[_NONCE:], _bound_to(address))
        except (InvalidTag, ValueError):
            return None
        age_s = time.monotonic() - int.from_bytes(told[:8], "big") / 1000
        split = _HEAD + told[8]
        return Retried(told[_HEAD:split], told[split:]) if age_s <= _LIFE_S else None


def _bound_to(address: tuple[str, int]) -> bytes:
    return f"{address[0]} {address[1]}".encode()
