"""Certificates that the watchers make for the webhook, as clients see them."""

import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from headgate.common.pem import load_key_pair
from headgate.common.secret import Secret
from headgate.watcher.admission.issuing import BACKDATED, Pair, examine, issue
from headgate.watcher.admission.rotation import Kept

NOW = datetime.now(UTC).replace(microsecond=0)
LIFE = timedelta(days=90)
NAMES = ("headgate-admission.headgate.svc", "192.0.2.1")


def shake_hands(pair: Pair, authority: x509.Certificate, name: str) -> None:
    """Over memory; raises ssl.SSLError where the client does not trust the server."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_key_pair(server, pair.chain_pem, pair.key_pem.reveal())
    client = ssl.create_default_context(cadata=Kept(authorities=(authority,)).bundle_pem.decode())
    client.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while ends:
        for end in [*ends]:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)


@pytest.mark.parametrize("name", NAMES)
def test_a_strict_client_that_trusts_the_authority_takes_the_certificate(name: str) -> None:
    shake_hands(*issue(NAMES, NOW, LIFE), name)


def test_another_name_or_another_authority_is_not_taken() -> None:
    pair, authority = issue(NAMES, NOW, LIFE)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(pair, authority, "other.headgate.svc")
    with pytest.raises(ssl.SSLCertVerificationError, match=r"self-signed|issuer"):
        shake_hands(pair, issue(NAMES, NOW, LIFE)[1], NAMES[0])


def test_the_authority_ends_with_its_only_certificate_and_signs_no_authorities() -> None:
    pair, authority = issue(NAMES, NOW, LIFE)
    leaf = x509.load_pem_x509_certificate(pair.chain_pem)
    assert leaf.not_valid_before_utc == authority.not_valid_before_utc == NOW - BACKDATED
    assert leaf.not_valid_after_utc == authority.not_valid_after_utc == NOW + LIFE
    constraints = authority.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.value.path_length, constraints.critical) == (0, True)
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_a_key_is_never_printed() -> None:
    pair, _ = issue(NAMES, NOW, LIFE)
    assert "PRIVATE KEY" not in repr(pair)


def test_a_good_pair_has_no_problem() -> None:
    pair, authority = issue(NAMES, NOW, LIFE)
    found = examine(pair, [issue(NAMES, NOW, LIFE)[1], authority], NOW)
    assert (found.names, found.not_after, found.problem) == (frozenset(NAMES), NOW + LIFE, None)


@pytest.mark.parametrize(
    ("after", "problem"),
    [
        (LIFE - timedelta(seconds=1), None),
        (LIFE, "it ended at "),
        (-BACKDATED, None),
        (-BACKDATED - timedelta(seconds=1), "a clock is or was wrong"),
    ],
)
def test_a_pair_is_usable_within_its_dates(after: timedelta, problem: str | None) -> None:
    pair, authority = issue(NAMES, NOW, LIFE)
    found = examine(pair, [authority], NOW + after).problem
    assert found is None if problem is None else problem in (found or "")


def test_a_pair_that_does_not_fit_together_says_why() -> None:
    (pair, authority), (other, _) = issue(NAMES, NOW, LIFE), issue(NAMES, NOW, LIFE)
    for wrong, problem in (
        (replace(pair, key_pem=other.key_pem), "tls.key does not belong"),
        (replace(pair, chain_pem=b"broken"), "tls.crt is not a readable"),
        (replace(pair, key_pem=Secret(b"broken")), "tls.key is not a readable"),
        (other, "no authority in ca.crt has signed"),
    ):
        assert problem in (examine(wrong, [authority], NOW).problem or "")
    assert examine(pair, [], NOW).problem == "no authority in ca.crt has signed tls.crt"
