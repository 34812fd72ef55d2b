"""Talking to an authority that answers by a script, over the library's own session."""

import base64
import hmac
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from requests.adapters import BaseAdapter

from headgate.translator.leading.acme.authority import Authority, read_key, read_retry_after
from headgate.translator.leading.acme.errors import OrderFailed
from headgate.translator.leading.acme.keys import make_request, new_key, to_pem
from headgate.translator.world.resolver_settings import ResolverSettings

URL = "https://ca.test"
DIRECTORY = {"newNonce": f"{URL}/nonce", "newAccount": f"{URL}/account", "newOrder": f"{URL}/order"}
REQUEST = make_request(new_key(), ["a.test"])
CHAIN = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


class SimulatedAuthority(BaseAdapter):
    """Takes one order of one name, whose challenge it believes unless it was told not to."""

    def __init__(self, refused: int = 0, problem: str = "badNonce", **more: Any) -> None:
        super().__init__()
        self.left, self.problem = refused, problem
        self.posts = 0
        self.offers: tuple[str, ...] = more.get("offers", ("http-01", "tls-alpn-01", "dns-01"))
        self.status = more.get("status", "pending")
        self.verdict = more.get("verdict", "valid")
        self.retry_after = more.get("retry_after", "")
        self.is_known = more.get("is_known", False)
        meta = {"meta": {"externalAccountRequired": True}} if more.get("binds") else {}
        self.directory = {**DIRECTORY, **meta}
        self.registration: dict[str, Any] = {}

    def send(self, request: requests.PreparedRequest, *_args: Any, **_options: Any) -> requests.Response:
        answer = requests.Response()
        answer.request, answer.url, answer.status_code = request, request.url or "", 200
        answer.headers["Replay-Nonce"] = "AAAA"
        body: object = self.directory
        if request.method == "POST":
            self.posts += 1
            if self.left:
                self.left -= 1
                body = self._refuse(answer)
            else:
                path = (request.url or "").removeprefix(URL)
                if path == "/account":
                    self.registration = payload_of(request)
                body = self._answer(path, answer)
        answer.headers.setdefault("Content-Type", "application/json")
        answer.raw = io.BytesIO(body.encode() if isinstance(body, str) else json.dumps(body).encode())
        return answer

    def _refuse(self, answer: requests.Response) -> object:
        answer.status_code = 400
        answer.headers["Content-Type"] = "application/problem+json"
        if self.retry_after:
            answer.headers["Retry-After"] = self.retry_after
        return {"type": f"urn:ietf:params:acme:error:{self.problem}", "detail": "no"}

    def _answer(self, path: str, answer: requests.Response) -> object:
        match path:
            case "/account":
                answer.status_code = 200 if self.is_known else 201
                answer.headers["Location"] = f"{URL}/account/1"
                return {"status": "valid"}
            case "/order":
                answer.status_code = 201
                answer.headers["Location"] = f"{URL}/order/1"
                return self._order("pending")
            case "/authorization":
                return self._authorization()
            case "/order/1" | "/finalize":
                return {**self._order("valid"), "certificate": f"{URL}/certificate"}
            case "/certificate":
                answer.headers["Content-Type"] = "application/pem-certificate-chain"
                return CHAIN
        answer.headers["Link"] = f'<{URL}/authorization>;rel="up"'
        self.status = self.verdict
        return self._challenge(path.removeprefix("/challenge/"))

    def _order(self, status: str) -> dict[str, Any]:
        return {
            "status": status,
            "identifiers": [{"type": "dns", "value": "a.test"}],
            "authorizations": [f"{URL}/authorization"],
            "finalize": f"{URL}/finalize",
        }

    def _authorization(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "identifier": {"type": "dns", "value": "a.test"},
            "challenges": [self._challenge(kind) for kind in self.offers],
        }

    def _challenge(self, kind: str) -> dict[str, Any]:
        made = {"type": kind, "url": f"{URL}/challenge/{kind}", "token": "A" * 22, "status": self.status}
        if self.status == "invalid":
            made["error"] = {"type": "urn:ietf:params:acme:error:connection", "detail": "refused"}
        return made


def payload_of(message: Any) -> dict[str, Any]:
    """Return what is signed: of a request, or of a JWS."""
    jws = json.loads(message.body) if isinstance(message, requests.PreparedRequest) else message
    text = jws["payload"]
    decoded: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return decoded


def authority(monkeypatch: pytest.MonkeyPatch, simulated: SimulatedAuthority, **settings: Any) -> Authority:
    monkeypatch.setattr(requests.Session, "get_adapter", lambda *_, **__: simulated)
    resolver = ResolverSettings(directory=f"{URL}/directory", email="ops@a.test", **settings)
    return Authority(resolver, ec.generate_private_key(ec.SECP256R1()))


def opened(monkeypatch: pytest.MonkeyPatch, simulated: SimulatedAuthority, **settings: Any) -> Authority:
    made = authority(monkeypatch, simulated, **settings)
    made.open()
    return made


@pytest.mark.parametrize("refused", [0, 1, 2, 9])
def test_nonces_that_are_refused_in_a_row_are_replaced(monkeypatch: pytest.MonkeyPatch, refused: int) -> None:
    simulated = SimulatedAuthority(refused)
    assert opened(monkeypatch, simulated).uri == f"{URL}/account/1"
    assert simulated.posts == refused + 1


@pytest.mark.parametrize(("problem", "posts"), [("badNonce", 10), ("unauthorized", 1)])
def test_an_authority_that_goes_on_refusing_fails_the_order(
    monkeypatch: pytest.MonkeyPatch, problem: str, posts: int
) -> None:
    simulated = SimulatedAuthority(100, problem)
    with pytest.raises(OrderFailed, match=problem):
        opened(monkeypatch, simulated)
    assert simulated.posts == posts


def test_an_account_of_our_key_that_is_there_already_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert opened(monkeypatch, SimulatedAuthority(is_known=True)).uri == f"{URL}/account/1"


def test_the_time_that_an_authority_wants_us_to_wait_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OrderFailed) as caught:
        opened(monkeypatch, SimulatedAuthority(1, "rateLimited", retry_after="3600"))
    assert caught.value.retry_after == timedelta(hours=1)


def test_an_account_is_bound_by_the_key_that_the_authority_gave(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key_file = tmp_path / "eab.key"
    key_file.write_text(base64.urlsafe_b64encode(b"k" * 32).decode())
    simulated = SimulatedAuthority(binds=True)
    opened(monkeypatch, simulated, eab_key_id="kid-1", eab_key_file=key_file)
    binding = simulated.registration["externalAccountBinding"]
    head = binding["protected"]
    protected = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    assert (protected["kid"], protected["url"], protected["alg"]) == ("kid-1", f"{URL}/account", "HS256")
    signed = f"{head}.{binding['payload']}".encode()
    expected = base64.urlsafe_b64encode(hmac.digest(b"k" * 32, signed, "sha256")).rstrip(b"=").decode()
    assert binding["signature"] == expected
    assert payload_of(binding)["crv"] == "P-256"
    assert "d" not in payload_of(binding)


def test_accounts_are_not_bound_unless_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = SimulatedAuthority()
    opened(monkeypatch, simulated)
    assert "externalAccountBinding" not in simulated.registration


def test_an_authority_that_binds_accounts_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OrderFailed, match="set eab_key_id and eab_key_file"):
        opened(monkeypatch, SimulatedAuthority(binds=True))


@pytest.mark.parametrize(
    ("content", "said"), [(None, "No such file"), ("not a key!é", "base64url"), ("AAAAA", "base64url")]
)
def test_a_key_that_cannot_be_read_fails_the_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None, said: str
) -> None:
    key_file = tmp_path / "eab.key"
    if content is not None:
        key_file.write_text(content, encoding="utf-8")
    with pytest.raises(OrderFailed, match=said):
        opened(monkeypatch, SimulatedAuthority(), eab_key_id="kid-1", eab_key_file=key_file)


@pytest.mark.parametrize("half", [{"eab_key_id": "kid-1"}, {"eab_key_file": "/eab.key"}])
def test_half_of_a_binding_is_refused(half: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="belong together"):
        ResolverSettings(**half)


@pytest.mark.parametrize(
    ("challenge", "settings"),
    [("http-01", {}), ("tls-alpn-01", {}), ("dns-01", {"dns_command": ("true",)})],
)
def test_an_order_is_proved_and_finished(
    monkeypatch: pytest.MonkeyPatch, challenge: str, settings: dict[str, Any]
) -> None:
    simulated = SimulatedAuthority()
    made = opened(monkeypatch, simulated, challenge=challenge, **settings)
    order = made.begin(REQUEST)
    [proof] = order.proofs
    assert (proof.host, proof.token) == ("a.test", "A" * 22)
    assert proof.key_authorization.startswith("A" * 22 + ".")
    assert bool(proof.record) == (challenge == "dns-01")
    assert made.finish(order) == CHAIN


def test_what_was_proved_a_while_ago_needs_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    made = opened(monkeypatch, SimulatedAuthority(status="valid"))
    order = made.begin(REQUEST)
    assert order.proofs == ()
    assert made.finish(order) == CHAIN


def test_a_challenge_that_is_not_offered_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    made = opened(monkeypatch, SimulatedAuthority(offers=("dns-01",)))
    with pytest.raises(OrderFailed, match=r"does not take http-01 for a\.test, but dns-01"):
        made.begin(REQUEST)


def test_what_the_authority_saw_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    made = opened(monkeypatch, SimulatedAuthority(verdict="invalid"))
    with pytest.raises(OrderFailed, match=r"a\.test: connection: refused"):
        made.finish(made.begin(REQUEST))


def test_an_authority_that_is_not_there_fails_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = SimulatedAuthority()
    made = authority(monkeypatch, simulated)

    def fail(*_: Any, **__: Any) -> None:
        raise requests.ConnectionError("refused")

    monkeypatch.setattr(simulated, "send", fail)
    with pytest.raises(OrderFailed, match="refused"):
        made.open()


def test_a_wait_is_read_in_seconds_or_as_a_date() -> None:
    assert read_retry_after("120") == timedelta(minutes=2)
    assert read_retry_after("9" * 12) == timedelta(days=30)
    at = datetime.now(UTC) + timedelta(hours=1)
    found = read_retry_after(at.strftime("%a, %d %b %Y %H:%M:%S GMT"))
    assert found is not None
    assert timedelta(minutes=59) < found <= timedelta(hours=1)
    assert read_retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == timedelta()
    assert read_retry_after("") is read_retry_after("soon") is None


def test_the_key_of_an_account_is_one_of_p256() -> None:
    key = new_key()
    assert read_key(to_pem(key)).private_numbers() == key.private_numbers()
    other = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with pytest.raises(ValueError, match="P-256"):
        read_key(other)


def test_a_request_names_all_hosts() -> None:
    request = x509.load_pem_x509_csr(make_request(new_key(), ["a.test", "*.b.test"]))
    names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.test", "*.b.test"]
