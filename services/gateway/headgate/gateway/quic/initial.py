"""Keys of Initial packets (RFC 9001 section 5.2), which follow from a connection id."""

import hashlib
import hmac
from typing import Final

from qh3.quic.crypto import CIPHER_SUITES, derive_key_iv_hp
from qh3.quic.packet import QuicProtocolVersion
from qh3.tls import CipherSuite

_SALT: Final = bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a")
_SUITE: Final = CipherSuite.AES_128_GCM_SHA256
AES_128: Final = (CIPHER_SUITES[_SUITE][1].decode(), CIPHER_SUITES[_SUITE][0].decode())
"""Names of the ciphers, for packets and for their headers."""


def initial_keys(connection_id: bytes) -> dict[str, tuple[bytes, bytes, bytes]]:
    """Return key, initialization vector and key for headers of a server, by direction: `receive`, `send`."""
    secret = hmac.digest(_SALT, connection_id, "sha256")
    labels = {"receive": b"client in", "send": b"server in"}
    return {
        direction: derive_key_iv_hp(
            cipher_suite=_SUITE, secret=_expand(secret, label), version=QuicProtocolVersion.VERSION_1
        )
        for direction, label in labels.items()
    }


def _expand(secret: bytes, label: bytes) -> bytes:
    """HKDF-Expand-Label of RFC 8446 section 7.1, to the length of a hash."""
    size = hashlib.sha256().digest_size
    named = b"tls13 " + label
    info = size.to_bytes(2, "big") + bytes((len(named),)) + named + b"\0"
    return hmac.digest(secret, info + b"\1", "sha256")
