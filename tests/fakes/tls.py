"""Certificates for tests, made on the spot."""

import base64
import ssl
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class SelfSigned:
    """A self-signed certificate for some names, valid for a day."""

    def __init__(self, *names: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
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

    def client_context(self) -> ssl.SSLContext:
        """A context that trusts this certificate and nothing else, and checks the name."""
        return ssl.create_default_context(cadata=self.certificate_pem.decode())
