"""Certificates for tests, made on the spot."""

import base64
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

SIGNS = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


class Authority:
    """A certificate authority, or one below another."""

    def __init__(self, name: str | x509.Name = "Test CA", parent: "Authority | None" = None) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.subject = _named(name) if isinstance(name, str) else name
        signer = parent or self
        self._certificate = (
            _builder(self.subject, signer.subject, self.key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(SIGNS, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.key.public_key()), critical=False)
            .sign(signer.key, hashes.SHA256())
        )
        self.parents: bytes = self.pem + parent.parents if parent else b""

    @property
    def pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self,
        name: str,
        *alternatives: x509.GeneralName,
        organization: str = "",
        ends: datetime | None = None,
        names_signer: bool = True,
    ) -> "Issued":
        """A certificate with the chain below the root; without `names_signer` it lacks an Authority Key Identifier."""
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        if organization:
            attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(x509.Name(attributes), self.subject, key, ends)
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        if names_signer:
            signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
            builder = builder.add_extension(signer, critical=False)
        return Issued(builder.sign(self.key, hashes.SHA256()), key, self.parents)

    def revocation_list(self, *revoked: "Issued") -> bytes:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.subject)
            .last_update(now - timedelta(hours=1))
            .next_update(now + timedelta(days=1))
        )
        for each in revoked:
            builder = builder.add_revoked_certificate(
                x509.RevokedCertificateBuilder()
                .serial_number(each.certificate.serial_number)
                .revocation_date(now - timedelta(minutes=1))
                .build()
            )
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


class Issued:
    """What an authority signed."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey, parents: bytes) -> None:
        self.certificate = certificate
        self.pem = certificate.public_bytes(serialization.Encoding.PEM)
        self.chain_pem = self.pem + parents
        self.key_pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Files of the chain and the key, as `SSLContext.load_cert_chain` takes them."""
        chain, key = folder / "chain.pem", folder / "key.pem"
        chain.write_bytes(self.chain_pem)
        key.write_bytes(self.key_pem)
        return chain, key


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, ends: datetime | None = None
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(ends or now + timedelta(days=1))
    )


class SelfSigned:
    """A self-signed certificate for some names, valid for a day."""

    def __init__(self, *names: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        subject = _named(names[0])
        now = datetime.now(UTC)
        self._certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def certificate_pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def secret(self, namespace: str, name: str) -> dict[str, Any]:
        """The Kubernetes Secret that holds it."""
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": name, "namespace": namespace},
            "data": {
                "tls.crt": base64.b64encode(self.certificate_pem).decode(),
                "tls.key": base64.b64encode(self.key_pem).decode(),
            },
        }

    def server_context(self) -> ssl.SSLContext:
        """A context that presents this certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.certificate_pem + self.key_pem)
            file.flush()
            context.load_cert_chain(file.name)
        return context

    def client_context(self) -> ssl.SSLContext:
        """A context that trusts this certificate and nothing else, and checks the name."""
        return ssl.create_default_context(cadata=self.certificate_pem.decode())


def unverified() -> ssl.SSLContext:
    """A client's context that takes any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
