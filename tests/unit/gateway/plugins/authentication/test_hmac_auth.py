import base64
import hashlib
import hmac
import time
from email.utils import formatdate
from typing import Any

import pytest

from headgate.gateway.plugins.interface import Request
from unit.gateway.plugins.people import chain_for, consumer, directory
from unit.gateway.plugins.running import asked, request

PEOPLE = directory(consumer("jack", ("hmac-auth", {"key_id": "jack-key", "secret_key": "my-secret"})))
SIGNED = ("@request-target", "date", "x-a")


def signed(
    names: tuple[str, ...] = SIGNED,
    *,
    secret: bytes = b"my-secret",
    target: str = "/get?a=1",
    key_id: str = "jack-key",
    algorithm: str = "hmac-sha256",
    age_s: float = 0,
    **more: Any,
) -> Request:
    """Sign as the documentation of Apache APISIX does."""
    date = formatdate(time.time() - age_s, usegmt=True)
    lines = {"@request-target": f"GET {target}", "date": f"date: {date}", "x-a": "x-a: 1", "digest": "digest: x"}
    text = "".join(f"{line}\n" for line in (key_id, *(lines[name] for name in names)))
    hashes = {"hmac-sha1": hashlib.sha1, "hmac-sha256": hashlib.sha256, "hmac-sha512": hashlib.sha512}
    signature = base64.b64encode(hmac.new(secret, text.encode(), hashes[algorithm]).digest()).decode()
    fields = {"keyId": key_id, "algorithm": algorithm, "headers": " ".join(names), "signature": signature, **more}
    shown = ",".join(f'{name}="{value}"' for name, value in fields.items() if value is not None)
    return request(target, [("Authorization", f"Signature {shown}"), ("Date", date), ("X-A", "1")])


async def refused(given: Request, **config: Any) -> str:
    response = await asked(chain_for(PEOPLE, ("hmac-auth", config)), given)
    assert response is None or response.status == 401
    return "" if response is None else response.reason.removeprefix("client request can't be validated: ")


@pytest.mark.parametrize("algorithm", ["hmac-sha1", "hmac-sha256", "hmac-sha512"])
async def test_a_signature_is_recognised_and_can_be_hidden(algorithm) -> None:
    given = signed(algorithm=algorithm)
    assert await refused(given, hide_credentials=True) == ""
    assert given.headers.get("X-Consumer-Username") == "jack"
    assert "Authorization" not in given.headers


@pytest.mark.parametrize("value", ["", "Basic eA==", 'Signature keyId="a", nonsense', 'Signature keyId="a"'])
async def test_what_is_no_signature_is_asked_for_one(value) -> None:
    given = request("/", [("Authorization", value)])
    assert await refused(given) == "no keyId, algorithm or signature"


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"signature": None}, "no keyId, algorithm or signature"),
        ({"key_id": "jill"}, "Invalid key_id"),
        ({"secret": b"other"}, "Invalid signature"),
        ({"signature": "%%%"}, "Invalid signature"),
        ({"signature": "\xe9"}, "Invalid signature"),
        ({"headers": "date @request-target x-a"}, "Invalid signature"),
        ({"age_s": 900}, "Date header missing, or Clock skew exceeded"),
        ({"age_s": -900}, "Date header missing, or Clock skew exceeded"),
        ({"names": ("@request-target",)}, 'expected header "date" missing in signing'),
    ],
)
async def test_what_is_wrong_with_a_signature_is_said(how, reason) -> None:
    assert await refused(signed(**how)) == reason


async def test_a_changed_path_header_or_method_breaks_the_signature() -> None:
    other_path, other_header, other_method = signed(), signed(), signed()
    other_path.original_path = "/admin"
    other_header.headers.set("X-A", "2")
    other_method.method = "POST"
    for given in (other_path, other_header, other_method):
        assert await refused(given) == "Invalid signature"


async def test_algorithms_headers_and_clocks_are_configured() -> None:
    assert await refused(signed(algorithm="hmac-sha1"), allowed_algorithms=["hmac-sha256"]) == "Invalid algorithm"
    assert await refused(signed(("date",)), signed_headers=["@request-target"]) != ""
    assert await refused(signed(("x-a",)), signed_headers=["x-a"]) == 'expected header "date" missing in signing'
    assert await refused(signed(("x-a",), age_s=9000), signed_headers=[], clock_skew=0) == ""


async def test_the_digest_of_the_body_is_checked_where_asked_for() -> None:
    digest = "SHA-256=" + base64.b64encode(hashlib.sha256(b"hello").digest()).decode()
    for body, header, reason in (
        (b"hello", digest, ""),
        (b"hellO", digest, "Invalid digest"),
        (b"hello", "", "Invalid digest"),
    ):
        given = signed()
        given.body = body
        given.headers.set("Digest", header)
        assert await refused(given, validate_request_body=True) == reason
    large = signed()
    large.body = b"x" * 11
    response = await asked(
        chain_for(PEOPLE, ("hmac-auth", {"validate_request_body": True, "max_req_body_size": 10})), large
    )
    assert response is not None
    assert response.status == 413


@pytest.mark.parametrize(
    "names", [["x-a"] * 2, ["x-a", "X-A"], [f"x-{number}" for number in range(65)], ["x-a"] * 10_000]
)
async def test_a_signature_is_over_few_headers_each_once(names) -> None:
    fields = f'keyId="jack-key",algorithm="hmac-sha256",headers="{" ".join(["date", *names])}",signature="eA=="'
    given = request("/", [("Authorization", f"Signature {fields}"), ("X-A", "1" * 30_000)])
    given.headers.set("Date", formatdate(time.time(), usegmt=True))
    assert await refused(given) == "more than 64 headers, or one of them twice, in signing"
