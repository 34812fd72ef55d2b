"""Secrets on their way to the log."""

import base64
import json
from typing import Any

import pytest
from nacl.public import PrivateKey

from fakes.gateway.tls import Authority, SelfSigned
from headgate.common import resources
from headgate.common.errors import SealingError
from headgate.common.sealing import ClusterValue, Purpose, SealedSecret, Sealer, Unsealer
from headgate.watcher.objects.preparing import prepare
from headgate.watcher.objects.secrets import decode_value, seal_secret, throwaway_recipients

PAIR = SelfSigned("a.example")
SECRET = PAIR.secret("default", "tls")
OPAQUE_PAIR = {
    "type": "Opaque",
    "data": {"cert": SECRET["data"]["tls.crt"], "key": SECRET["data"]["tls.key"]},
}
SEALER = Sealer("paris", throwaway_recipients())


def sealed_of(secret: dict[str, Any]) -> SealedSecret:
    return SealedSecret.model_validate(secret["sealed"])


def test_gateways_and_nobody_else_can_read_the_values() -> None:
    ours, others = PrivateKey.generate(), PrivateKey.generate()
    sealed = sealed_of(seal_secret(SECRET, Sealer("paris", [ours.public_key])))
    assert Unsealer([ours]).open(sealed.values["tls.key"].of("paris"), Purpose.PRIVATE_KEY).reveal() == PAIR.key_pem
    assert sealed.values.keys() == {"tls.crt", "tls.key"}
    with pytest.raises(SealingError):
        Unsealer([others]).open(sealed.values["tls.key"].of("paris"), Purpose.PRIVATE_KEY)


def test_every_recipient_can_read_the_values() -> None:
    keys = [PrivateKey.generate(), PrivateKey.generate()]
    sealed = sealed_of(seal_secret(SECRET, Sealer("paris", [key.public_key for key in keys])))
    value = sealed.values["tls.key"].of("paris")
    assert all(Unsealer([key]).open(value, Purpose.PRIVATE_KEY).reveal() == PAIR.key_pem for key in keys)


def test_nothing_readable_of_the_key_is_left() -> None:
    secret = {**SECRET, "stringData": {"tls.key": "hunter2"}}
    secret["metadata"] = {
        "name": "tls",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hunter2"},
    }
    published = json.dumps(prepare(resources.SECRET, secret, SEALER))
    assert "hunter2" not in published
    assert SECRET["data"]["tls.key"] not in published
    assert "PRIVATE" not in published


def test_authorities_and_revocations_are_public_and_nothing_beside_them_is() -> None:
    authority = Authority()
    revoked = authority.revocation_list()
    texts = {"ca.crt": authority.pem + b"hunter2", "crl.pem": revoked + b"hunter2"}
    data = SECRET["data"] | {key: base64.b64encode(text).decode() for key, text in texts.items()}
    sealed = sealed_of(seal_secret({**SECRET, "data": data}, SEALER))
    assert sealed.authorities_pem == authority.pem.decode()
    assert sealed.revocations_pem == revoked.decode()


@pytest.mark.parametrize("other", [{}, {"ca.crt": ""}])
def test_authorities_may_be_named_as_traefik_names_them(other: dict[str, str]) -> None:
    authority = Authority()
    data = SECRET["data"] | {"tls.ca": base64.b64encode(authority.pem).decode()} | other
    assert sealed_of(seal_secret({**SECRET, "data": data}, SEALER)).authorities_pem == authority.pem.decode()
    both = data | {"ca.crt": base64.b64encode(Authority().pem).decode()}
    assert sealed_of(seal_secret({**SECRET, "data": both}, SEALER)).authorities_pem != authority.pem.decode()


def test_unreadable_authorities_are_told_from_absent_ones() -> None:
    data = SECRET["data"] | {"ca.crt": SECRET["data"]["tls.key"], "ca.crl": SECRET["data"]["tls.crt"]}
    sealed = sealed_of(seal_secret({**SECRET, "data": data}, SEALER))
    assert (sealed.authorities_pem, sealed.revocations_pem) == ("", "")
    absent = sealed_of(seal_secret(SECRET, SEALER))
    assert (absent.authorities_pem, absent.revocations_pem) == (None, None)


def test_empty_authorities_are_absent_and_an_empty_revocation_list_is_unreadable() -> None:
    sealed = sealed_of(seal_secret({**SECRET, "data": SECRET["data"] | {"ca.crt": "", "ca.crl": ""}}, SEALER))
    assert (sealed.authorities_pem, sealed.revocations_pem) == (None, "")


@pytest.mark.parametrize("secret", [SECRET, {**SECRET, "type": "Opaque"}, OPAQUE_PAIR])
def test_what_is_public_stands_beside_the_sealed_values(secret: dict[str, Any]) -> None:
    certificate = sealed_of(seal_secret(secret, SEALER)).certificate
    assert certificate is not None
    assert certificate.names == ("a.example",)
    assert certificate.problem is None


@pytest.mark.parametrize("data", [None, {}, {"tls.crt": SECRET["data"]["tls.crt"]}])
def test_an_incomplete_secret_says_what_is_missing(data: dict[str, str] | None) -> None:
    certificate = sealed_of(seal_secret({**SECRET, "data": data}, SEALER)).certificate
    assert certificate is not None
    assert "is empty" in str(certificate.problem)


def test_a_value_that_is_no_base64_is_named() -> None:
    data = {**SECRET["data"], "tls.key": "%%%"}
    certificate = sealed_of(seal_secret({**SECRET, "data": data}, SEALER)).certificate
    assert certificate is not None
    assert certificate.problem == "tls.key is not base64"


@pytest.mark.parametrize(
    ("secret", "field", "purpose"),
    [
        (SECRET, "tls.key", Purpose.PRIVATE_KEY),
        (SECRET, "tls.crt", Purpose.VALUE),
        ({**SECRET, "type": "Opaque"}, "tls.key", Purpose.PRIVATE_KEY),
        (OPAQUE_PAIR, "key", Purpose.PRIVATE_KEY),
        ({"type": "Opaque", "data": {"key": "c2VzYW1l"}}, "key", Purpose.VALUE),
    ],
)
def test_the_key_of_a_certificate_is_sealed_for_nothing_else(
    secret: dict[str, Any], field: str, purpose: Purpose
) -> None:
    key = PrivateKey.generate()
    sealed = sealed_of(seal_secret(secret, Sealer("paris", [key.public_key]))).values[field].of("paris")
    assert [one for one in (Purpose.PRIVATE_KEY, Purpose.VALUE) if _opens(Unsealer([key]), sealed, one)] == [purpose]


def _opens(unsealer: Unsealer, sealed: ClusterValue, purpose: Purpose) -> bool:
    try:
        unsealer.open(sealed, purpose)
    except SealingError:
        return False
    return True


def test_without_a_recipient_nothing_is_sealed() -> None:
    with pytest.raises(SealingError, match="no recipient"):
        seal_secret(SECRET, Sealer("paris", ()))


def test_base64_may_be_broken_into_lines() -> None:
    text = base64.encodebytes(b"x" * 100).decode()
    assert decode_value(text) == b"x" * 100


@pytest.mark.parametrize("text", ["a", "a===", "?", 5, None])
def test_what_is_no_base64_is_refused_without_quoting_it(text: object) -> None:
    with pytest.raises(ValueError, match=r"^not (base64|text)$"):
        decode_value(text)
