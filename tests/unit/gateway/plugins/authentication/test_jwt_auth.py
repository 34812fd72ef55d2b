import base64
import json
import logging
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from headgate.gateway.plugins.interface import Request
from unit.gateway.plugins.people import chain_for, consumer, directory
from unit.gateway.plugins.running import asked, request

SECRET = "a secret of at least 64 bytes, so that each of the algorithms takes it as it is."
RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = Ed25519PrivateKey.generate()


def pem(key: Any) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()


def people(**credential: Any):
    return directory(consumer("jack", ("jwt-auth", {"key": "jack-key", "secret": SECRET, **credential})))


PEOPLE = people()


def token(key: Any = SECRET, algorithm: str = "HS256", **claims: Any) -> str:
    return jwt.encode({"key": "jack-key", **claims}, key, algorithm=algorithm)


def bearing(text: str) -> Request:
    return request("/", [("Authorization", f"Bearer {text}")])


async def refused(given: Request, known=PEOPLE, **config: Any) -> str:
    response = await asked(chain_for(known, ("jwt-auth", config)), given)
    assert response is None or response.status == 401
    return "" if response is None else response.reason


@pytest.mark.parametrize(
    "given",
    [
        bearing(token()),
        request("/", [("Authorization", f"bearer {token()}")]),
        request("/", [("Authorization", token())]),
        request(f"/?jwt={token()}"),
        request("/", [("Cookie", f"a=b; jwt={token()}")]),
    ],
)
async def test_a_token_is_found_wherever_it_may_be_and_can_be_hidden(given) -> None:
    assert await refused(given, hide_credentials=True) == ""
    assert given.headers.get("X-Consumer-Username") == "jack"
    assert token() not in f"{given.query} {given.headers.to_lines()!r}"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (request("/"), "Missing JWT token in request"),
        (bearing("no.token"), "JWT token invalid"),
        (bearing("a.b.c"), "JWT token invalid"),
        (bearing(jwt.encode({"sub": "jack"}, SECRET)), "Missing user key in JWT token"),
        (bearing(jwt.encode({"key": 7}, SECRET)), "Missing user key in JWT token"),
        (bearing(jwt.encode({"key": "jill-key"}, SECRET)), "Invalid user key in JWT token"),
    ],
)
async def test_what_is_wrong_with_a_token_is_said(given, reason) -> None:
    assert await refused(given) == reason


@pytest.mark.parametrize("bad", [token(SECRET + "x"), token(algorithm="HS512"), token() + "A", token()[:-1]])
async def test_a_token_that_another_key_or_algorithm_has_signed_is_refused(bad) -> None:
    assert await refused(bearing(bad)) in ("failed to verify jwt", "JWT token invalid")


async def test_a_token_without_a_signature_is_refused() -> None:
    assert await refused(bearing(jwt.encode({"key": "jack-key"}, None, algorithm="none"))) == "failed to verify jwt"


@pytest.mark.parametrize(
    ("algorithm", "key"), [("RS256", RSA_KEY), ("PS384", RSA_KEY), ("ES256", EC_KEY), ("EdDSA", ED_KEY)]
)
async def test_asymmetric_algorithms_take_the_public_key(algorithm, key) -> None:
    known = directory(
        consumer("jack", ("jwt-auth", {"key": "jack-key", "algorithm": algorithm, "public_key": pem(key)}))
    )
    assert await refused(bearing(token(key, algorithm)), known) == ""
    # The public key is no secret: what is signed with it as if it were one is nobody's.
    header = base64.urlsafe_b64encode(json.dumps({"alg": "HS256"}).encode()).rstrip(b"=").decode()
    forged = f"{header}.{token(key, algorithm).split('.')[1]}.AAAA"
    assert await refused(bearing(forged), known) == "failed to verify jwt"


async def test_times_are_looked_at_where_a_token_has_them_and_as_configured() -> None:
    now = int(time.time())
    old, early = bearing(token(exp=now - 60)), bearing(token(nbf=now + 60))
    assert await refused(old) == await refused(early) == "failed to verify jwt"
    assert await refused(old, claims_to_verify=["nbf"]) == await refused(early, claims_to_verify=["exp"]) == ""
    assert await refused(old, people(lifetime_grace_period=600)) == ""
    assert await refused(bearing(token(exp=now + 600, nbf=now - 600, aud="x", iat=now + 600))) == ""


async def test_secrets_may_be_written_in_base64_and_the_claim_be_called_otherwise() -> None:
    known = people(secret=base64.b64encode(SECRET.encode()).decode(), base64_secret=True)
    assert await refused(bearing(token()), known) == ""
    named = bearing(jwt.encode({"iss": "jack-key"}, SECRET))
    assert await refused(named, key_claim_name="iss", store_in_ctx=True) == ""
    assert named.variables["jwt_auth_payload"] == '{"iss": "jack-key"}'


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
async def test_a_short_secret_works_and_is_told_once_without_it(caplog) -> None:
    known, given = people(secret="short"), bearing(token("short"))
    with caplog.at_level(logging.WARNING):
        assert await refused(given, known) == await refused(given, known) == ""
    [record] = caplog.records
    assert "the secret of consumer jack is shorter than HS256 needs" in record.getMessage()
    assert "short," not in caplog.text
