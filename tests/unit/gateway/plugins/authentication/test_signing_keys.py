"""What a key may cost those who check signatures with it."""

import base64
import secrets
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from headgate.gateway.plugins.built_in.authentication.signing_keys import (
    MAX_EXPONENT_BITS,
    MAX_RSA_BITS,
    read_jwk,
    read_public_key,
)


def number(bits: int) -> int:
    """An odd one."""
    return secrets.randbits(bits) | 1 | 1 << (bits - 1)


def pem(key: Any) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_bytes(serialization.Encoding.PEM, form).decode()


def rsa_key(bits: int, exponent: int = 65537) -> rsa.RSAPublicKey:
    return rsa.RSAPublicNumbers(exponent, number(bits)).public_key()


def jwk_of(bits: int, exponent: int = 65537) -> dict[str, str]:
    def text(value: int) -> str:
        return base64.urlsafe_b64encode(value.to_bytes((value.bit_length() + 7) // 8)).rstrip(b"=").decode()

    return {"kty": "RSA", "n": text(number(bits)), "e": text(exponent)}


@pytest.mark.parametrize(("bits", "exponent"), [(2048, 65537), (MAX_RSA_BITS, 2**MAX_EXPONENT_BITS - 1)])
def test_ordinary_keys_are_read(bits: int, exponent: int) -> None:
    assert read_public_key(pem(rsa_key(bits, exponent)), "RS256").key_size == bits
    assert read_jwk(jwk_of(bits, exponent), "PS256").key_size == bits


@pytest.mark.parametrize(
    ("bits", "exponent", "words"),
    [
        (MAX_RSA_BITS + 8, 65537, "bits are more than"),
        (2048, 2**MAX_EXPONENT_BITS + 1, "exponent"),
        (3072, 2**3070 + 1, "exponent"),
    ],
)
def test_keys_that_take_long_to_check_with_are_refused(bits: int, exponent: int, words: str) -> None:
    with pytest.raises(jwt.InvalidKeyError, match=words):
        read_public_key(pem(rsa_key(bits, exponent)), "RS256")
    with pytest.raises(jwt.InvalidKeyError, match=f"{words}|too long"):
        read_jwk(jwk_of(bits, exponent), "RS256")


def test_private_keys_are_not_read_where_public_ones_belong() -> None:
    key = rsa.generate_private_key(65537, 2048)
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, form, none).decode()
    with pytest.raises(jwt.InvalidKeyError, match="no public key in PEM for RS256"):
        read_public_key(text, "RS256")


def test_numbers_of_a_jwk_that_would_have_to_be_factorised_are_left_alone() -> None:
    endless = base64.urlsafe_b64encode(secrets.token_bytes(500_000)).decode()
    assert read_jwk(jwk_of(2048) | {"d": endless}, "RS256").key_size == 2048
    with pytest.raises(jwt.InvalidKeyError):
        read_jwk({"kty": "RSA", "n": endless, "e": "AQAB", "d": endless}, "RS256")


@pytest.mark.parametrize("kty", ["oct", "", None, 1])
def test_keys_of_other_kinds_are_refused(kty: object) -> None:
    with pytest.raises(jwt.InvalidKeyError):
        read_jwk({"kty": kty, "k": "AAAA"}, "HS256")


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [(ec.generate_private_key(ec.SECP256R1()), "ES256"), (Ed25519PrivateKey.generate(), "EdDSA")],
)
def test_keys_on_curves_are_read(key: Any, algorithm: str) -> None:
    jwk = jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key(), as_dict=True)
    for read in (read_public_key(pem(key.public_key()), algorithm), read_jwk(jwk, algorithm)):
        jwt.decode(jwt.encode({}, key, algorithm=algorithm), read, algorithms=[algorithm])


def test_a_key_for_another_algorithm_is_refused() -> None:
    with pytest.raises(jwt.InvalidKeyError):
        read_public_key(pem(ec.generate_private_key(ec.SECP256R1()).public_key()), "RS256")
