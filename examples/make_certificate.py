"""Make a self-signed certificate for trying TLS, as a Kubernetes Secret beside the other manifests.

    python examples/make_certificate.py examples/quickstart secure.localhost

writes demo-tls.secret.yaml (with the private key: never commit it) and demo-tls.crt (for `curl --cacert`) unless they
exist. Valid for 90 days; remove both files to make new ones.
"""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import indent

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAYS = 90
SECRET = """\
# Made by examples/make_certificate.py for trying things out on this machine only.
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata:
  name: demo-tls
stringData:
  tls.crt: |
{certificate}
  tls.key: |
{key}
"""


def make(*names: str) -> tuple[str, str]:
    """Return a certificate for some host names and its private key, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode()


def main(folder: Path, *names: str) -> None:
    """Write the Secret and the certificate unless they are there."""
    secret, public = folder / "demo-tls.secret.yaml", folder / "demo-tls.crt"
    if secret.exists() and public.exists():
        return
    certificate, key = make(*names)
    public.write_text(certificate)
    secret.touch(mode=0o600)
    secret.write_text(SECRET.format(certificate=indent(certificate.strip(), " " * 4), key=indent(key.strip(), " " * 4)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
