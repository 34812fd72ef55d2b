"""Keys that tokens are signed with, as authors of routes and the providers they name give them.

A check of a signature has a price that the key sets: 0.2 ms with 2,048 bits of RSA, 34 ms with 3,072 bits whose
exponent is as long. To read a private key means to test whether its parts are primes. So public keys are read as public
ones alone, and have bounds: those of Go's `crypto/tls` and `crypto/rsa`.
"""

from collections.abc import Mapping
from typing import Any, Final

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

MAX_RSA_BITS: Final = 8192
MAX_EXPONENT_BITS: Final = 32
MAX_PRIVATE_PEM: Final = 4096
"""Characters; 4,096 bits of RSA take 3,300."""
_PUBLIC_MEMBERS: Final[dict[str, tuple[str, ...]]] = {
    "RSA": ("kty", "n", "e"),
    "EC": ("kty", "crv", "x", "y"),
    "OKP": ("kty", "crv", "x"),
}
_MAX_MEMBER: Final = MAX_RSA_BITS // 6 + 2
"""Characters of base64 that the longest number takes."""


def read_public_key(pem: str, algorithm: str) -> Any:
    """Read a key for an algorithm. Raises jwt.InvalidKeyError."""
    try:
        key = load_pem_public_key(pem.strip().encode())
        return _checked(jwt.get_algorithm_by_name(algorithm).prepare_key(key))
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise jwt.InvalidKeyError(f"no public key in PEM for {algorithm}: {error}") from error


def read_jwk(jwk: Mapping[str, Any], algorithm: str) -> Any:
    """Read the public half of a JWK (RFC 7517) for an algorithm. Raises jwt.PyJWTError."""
    members = _PUBLIC_MEMBERS.get(str(jwk.get("kty")), ())
    public = {name: jwk[name] for name in members if isinstance(jwk.get(name), str)}
    if not public or any(len(value) > _MAX_MEMBER for value in public.values()):
        raise jwt.InvalidKeyError("it is none of RSA, EC and OKP, or too long")
    return _checked(jwt.PyJWK(public, algorithm=algorithm).key)


def _checked(key: Any) -> Any:
    if not isinstance(key, RSAPublicKey):
        return key
    if key.key_size > MAX_RSA_BITS:
        raise jwt.InvalidKeyError(f"its {key.key_size} bits are more than {MAX_RSA_BITS}")
    if key.public_numbers().e.bit_length() > MAX_EXPONENT_BITS:
        raise jwt.InvalidKeyError(f"its exponent has more than {MAX_EXPONENT_BITS} bits")
    return key
