import base64
import json

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from headgate.gateway.plugins.interface import Request
from unit.gateway.plugins.people import chain_for, consumer, directory
from unit.gateway.plugins.running import asked, request

SECRET = b"-secret-length-must-be-32-chars-"
PEOPLE = directory(
    consumer("jack", ("jwe-decrypt", {"key": "user-key", "secret": SECRET.decode()})),
    consumer(
        "jill",
        ("jwe-decrypt", {"key": "b64", "secret": base64.b64encode(SECRET).decode(), "is_base64_encoded": True}),
    ),
)


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def token(text: bytes = b"hello", secret: bytes = SECRET, **head: str) -> str:
    """Make a token as RFC 7516 section 5.1 has it."""
    head = {"alg": "dir", "enc": "A256GCM", "kid": "user-key", **head}
    protected = encoded(json.dumps({name: value for name, value in head.items() if value}).encode())
    sealed = AESGCM(secret).encrypt(b"0123456789ab", text, protected.encode())
    return ".".join((protected, "", encoded(b"0123456789ab"), encoded(sealed[:-16]), encoded(sealed[-16:])))


async def refused(given: Request, **config: object) -> tuple[int, str]:
    response = await asked(chain_for(PEOPLE, ("jwe-decrypt", dict(config))), given)
    return (200, "") if response is None else (response.status, response.reason)


@pytest.mark.parametrize("value", [token(), f"Bearer {token()}", token(kid="b64")])
async def test_the_upstream_gets_what_is_in_the_token(value) -> None:
    given = request("/", [("Authorization", value)])
    assert await refused(given) == (200, "")
    assert given.headers.get("Authorization") == "hello"
    other = request("/", [("X-Token", value)])
    assert await refused(other, header="X-Token", forward_header="X-Opened") == (200, "")
    assert (other.headers.get("X-Token"), other.headers.get("X-Opened")) == (value, "hello")


async def test_a_request_without_a_token_passes_only_where_that_is_configured() -> None:
    assert await refused(request("/")) == (403, "missing JWE token in request")
    assert await refused(request("/"), strict=False) == (200, "")


async def test_what_a_token_would_say_is_not_taken_from_the_client() -> None:
    given = request("/", [("X-Opened", "forged")])
    assert await refused(given, header="X-Token", forward_header="X-Opened", strict=False) == (200, "")
    assert "X-Opened" not in given.headers


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("a.b.c", "JWE token invalid"),
        ("%.%.%.%.%", "JWE token invalid"),
        (token(alg="RSA-OAEP"), "JWE token invalid"),
        (token(enc="A128GCM"), "JWE token invalid"),
        (token(kid=""), "missing kid in JWE token"),
        (token(kid="other"), "invalid kid in JWE token"),
        (token(secret=b"x" * 32), "failed to decrypt JWE token"),
        (token(text=b"a\r\nX-Admin: 1"), "failed to decrypt JWE token"),
        (token()[:-4] + "AAAA", "failed to decrypt JWE token"),
    ],
)
async def test_what_cannot_be_opened_is_refused(value, reason) -> None:
    assert await refused(request("/", [("Authorization", value)])) == (400, reason)


@pytest.mark.parametrize("config", [{"secret": "short"}, {"secret": "%" * 44, "is_base64_encoded": True}])
def test_a_secret_has_32_bytes(config) -> None:
    known = directory(consumer("jack", ("jwe-decrypt", {"key": "k", **config})))
    assert known.find("jwe-decrypt", b"k") is None
