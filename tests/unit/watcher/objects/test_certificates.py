"""What is public about certificates, and whether their keys fit."""

import datetime
import ipaddress
import ssl
import warnings

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import NameOID

from headgate.watcher.objects.certificates import read_authorities, read_certificate_facts

START = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


class Issued:
    """A certificate and its key."""

    def __init__(
        self,
        common_name: str,
        *names: x509.GeneralName,
        issuer: "Issued | None" = None,
        key: CertificateIssuerPrivateKeyTypes | None = None,
    ) -> None:
        self.name = name(common_name)
        self.key = key or ec.generate_private_key(ec.SECP256R1())
        signer = issuer or self
        builder = (
            x509.CertificateBuilder()
            .subject_name(self.name)
            .issuer_name(signer.name)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(START)
            .not_valid_after(START + datetime.timedelta(days=1))
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        algorithm = None if isinstance(signer.key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
        self.certificate = builder.sign(signer.key, algorithm)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def key_pem(
        self,
        form: serialization.PrivateFormat = serialization.PrivateFormat.PKCS8,
        encryption: serialization.KeySerializationEncryption | None = None,
    ) -> bytes:
        return self.key.private_bytes(serialization.Encoding.PEM, form, encryption or serialization.NoEncryption())


LEAF = Issued("ignored.example", x509.DNSName("a.example"), x509.DNSName("*.b.example"))


def test_facts_are_what_the_certificate_says() -> None:
    facts = read_certificate_facts(LEAF.pem, LEAF.key_pem())
    assert facts.problem is None
    assert facts.names == ("a.example", "*.b.example")
    assert facts.not_before == START
    assert facts.not_after == START + datetime.timedelta(days=1)
    assert facts.fingerprint == LEAF.certificate.fingerprint(hashes.SHA256()).hex()
    assert facts.chain_pem.encode() == LEAF.pem


def test_an_expired_certificate_is_a_fact_and_no_problem() -> None:
    assert read_certificate_facts(LEAF.pem, LEAF.key_pem()).problem is None


def test_the_common_name_counts_only_without_alternative_names() -> None:
    old = Issued("old.example")
    assert read_certificate_facts(old.pem, old.key_pem()).names == ("old.example",)


def test_an_empty_name_is_none() -> None:
    odd = Issued("x", x509.DNSName(""), x509.DNSName("a.example"))
    assert read_certificate_facts(odd.pem, odd.key_pem()).names == ("a.example",)


def test_addresses_are_names_too() -> None:
    one = Issued("x", x509.IPAddress(ipaddress.ip_address("10.0.0.1")))
    assert read_certificate_facts(one.pem, one.key_pem()).names == ("10.0.0.1",)


@pytest.mark.parametrize(
    ("key", "form"),
    [
        (ec.generate_private_key(ec.SECP384R1()), serialization.PrivateFormat.TraditionalOpenSSL),
        (rsa.generate_private_key(65537, 2048), serialization.PrivateFormat.TraditionalOpenSSL),
        (rsa.generate_private_key(65537, 2048), serialization.PrivateFormat.PKCS8),
        (ed25519.Ed25519PrivateKey.generate(), serialization.PrivateFormat.PKCS8),
    ],
)
def test_keys_of_all_usual_forms_fit(key: CertificateIssuerPrivateKeyTypes, form: serialization.PrivateFormat) -> None:
    one = Issued("x", x509.DNSName("x"), key=key)
    assert read_certificate_facts(one.pem, one.key_pem(form)).problem is None


def test_each_issuer_comes_after_what_it_issued() -> None:
    root = Issued("root")
    middle = Issued("middle", issuer=root)
    leaf = Issued("leaf", x509.DNSName("leaf"), issuer=middle)
    facts = read_certificate_facts(leaf.pem + root.pem + b"some text\n" + middle.pem, leaf.key_pem())
    assert facts.problem is None
    assert facts.chain_pem.encode() == leaf.pem + middle.pem + root.pem


def test_a_key_of_another_certificate_of_the_chain_is_told() -> None:
    root = Issued("root")
    leaf = Issued("leaf", x509.DNSName("leaf"), issuer=root)
    problem = read_certificate_facts(root.pem + leaf.pem, leaf.key_pem()).problem
    assert problem is not None
    assert "certificate 2 in tls.crt: that one must come first" in problem


@pytest.mark.parametrize(
    ("chain", "key", "text"),
    [
        (b"", LEAF.key_pem(), "tls.crt is empty"),
        (b"hunter2", LEAF.key_pem(), "tls.crt is not a readable PEM certificate"),
        (LEAF.pem[:200], LEAF.key_pem(), "tls.crt is not a readable PEM certificate"),
        (LEAF.key_pem(), LEAF.key_pem(), "tls.crt is not a readable PEM certificate"),
        (LEAF.pem, b" \n", "tls.key is empty"),
        (LEAF.pem, b"hunter2", "tls.key is not a readable PEM private key"),
        (LEAF.pem, LEAF.pem, "tls.key is not a readable PEM private key"),
        (LEAF.pem, Issued("x").key_pem(), "tls.key does not belong to the certificate"),
        (LEAF.pem, LEAF.key_pem(encryption=serialization.BestAvailableEncryption(b"x")), "tls.key is encrypted"),
    ],
)
def test_what_makes_a_pair_useless_is_said(chain: bytes, key: bytes, text: str) -> None:
    problem = read_certificate_facts(chain, key).problem
    assert problem is not None
    assert text in problem
    assert "hunter2" not in problem


def test_private_keys_never_stand_in_the_chain() -> None:
    facts = read_certificate_facts(LEAF.pem + LEAF.key_pem(), LEAF.key_pem())
    assert "PRIVATE" not in facts.model_dump_json()
    assert facts.chain_pem.encode() == LEAF.pem


def without_alternatives(issued: Issued) -> bytes:
    return Issued("plain", issuer=issued).pem


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
@pytest.mark.parametrize("pem", [LEAF.pem, without_alternatives(LEAF)], ids=["names", "common name"])
def test_no_byte_of_a_certificate_keeps_it_from_being_described(pem: bytes, flip: int) -> None:
    der = x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER)
    for place in range(len(der)):
        broken = ssl.DER_cert_to_PEM_cert(der[:place] + bytes([der[place] ^ flip]) + der[place + 1 :]).encode()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what a later version of the library is going to refuse
            for chain in (broken, broken + LEAF.pem, LEAF.pem + broken):
                read_certificate_facts(chain, LEAF.key_pem())
            read_authorities(broken)


def test_a_version_that_does_not_exist_is_unreadable() -> None:
    version_3 = bytes.fromhex("a003020102")
    der = x509.load_pem_x509_certificate(LEAF.pem).public_bytes(serialization.Encoding.DER)
    broken = ssl.DER_cert_to_PEM_cert(der.replace(version_3, bytes.fromhex("a003020122"))).encode()
    assert read_certificate_facts(broken, LEAF.key_pem()).problem == "tls.crt is not a readable PEM certificate"
    assert read_authorities(broken) == ""
