"""Which servers are trusted, by handshakes in memory."""

import ssl
from pathlib import Path

import pytest
from cryptography import x509

from fakes.gateway.tls import Authority, Issued
from headgate.common.trust import verifying_context

NAME = x509.DNSName("a.example")


def shake_hands(client: ssl.SSLContext, issued: Issued, folder: Path, name: str = "a.example") -> None:
    """Let both sides speak until they are done. Raises ssl.SSLError."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*issued.write(folder))
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(3):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue


def test_a_certificate_that_does_not_name_its_signer_is_trusted_on_all_versions_of_python(tmp_path: Path) -> None:
    authority = Authority()
    issued = authority.issue("a.example", NAME, names_signer=False)
    shake_hands(verifying_context(ca_pem=authority.pem.decode()), issued, tmp_path)


def test_an_authority_without_its_root_is_not_trusted_on_any_version(tmp_path: Path) -> None:
    below = Authority("below", parent=Authority())
    with pytest.raises(ssl.SSLCertVerificationError, match="unable to get"):
        shake_hands(verifying_context(ca_pem=below.pem.decode()), below.issue("a.example", NAME), tmp_path)


def test_chain_and_name_are_verified(tmp_path: Path) -> None:
    authority = Authority()
    issued = authority.issue("a.example", NAME)
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(verifying_context(ca_pem=authority.pem.decode()), issued, tmp_path, "b.example")
    with pytest.raises(ssl.SSLCertVerificationError, match="unable to get"):
        shake_hands(verifying_context(ca_pem=Authority("other").pem.decode()), issued, tmp_path)
