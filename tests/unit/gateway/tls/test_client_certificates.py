"""Client certificates: asked for per host, verified in the handshake, checked and told per request."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from fakes.gateway.tls import Authority, Issued
from fakes.gateway.tls_listener import TlsListener, asking, client_context, resume, tls_listener
from headgate.common.table import TlsPolicy
from headgate.gateway.tls.identity import NOBODY, check, identity_lines, read_identity, without_claims
from headgate.gateway.tls.policy import ClientGuard, HostTls

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
REFUSED = (ssl.SSLError, ConnectionError, EOFError)
PAGE = "https://login.example.com/need-cert"


def guard_of(listener: TlsListener, host: str) -> ClientGuard:
    found = listener.hosts[host.encode()].guard
    assert found is not None
    return found


def made_with(policy: TlsPolicy) -> ClientGuard:
    guard = HostTls(policy).guard
    assert guard is not None
    return guard


class Came:
    """A connection that was verified against what a guard asks, by a client with this certificate."""

    def __init__(self, guard: ClientGuard, issued: Issued | None = None) -> None:
        self.asked = guard.asked
        self.identity = read_identity(issued.certificate.public_bytes(Encoding.DER) if issued else None)


@pytest.mark.parametrize("version", VERSIONS)
async def test_required_certificate_lets_its_holder_in_and_nobody_else(version: ssl.TLSVersion, tmp_path: Path) -> None:
    authority, stranger = Authority(), Authority()
    bounds = {"minimum_version": version, "maximum_version": version}
    async with tls_listener() as listener:
        listener.set_policies({"foo.com": asking(authority.pem)})
        files = authority.issue("alice", organization="Example").write(tmp_path)
        connection = await listener.talk("foo.com", client_context(files, **bounds))
        assert connection.identity.verdict == "SUCCESS"
        assert connection.identity.subject_dn == "CN=alice,O=Example"
        assert connection.identity.issuer_dn == "CN=Test CA"
        with pytest.raises(REFUSED):
            await listener.talk("foo.com", client_context(**bounds))
        with pytest.raises(REFUSED):
            await listener.talk("foo.com", client_context(stranger.issue("mallory").write(tmp_path), **bounds))
        assert listener.store.counts.failed == {
            "PEER_DID_NOT_RETURN_A_CERTIFICATE": 1,
            "CERTIFICATE_VERIFY_FAILED": 1,
        }


async def test_certificate_may_be_left_out_for_some_paths(tmp_path: Path) -> None:
    authority, stranger = Authority(), Authority()
    async with tls_listener() as listener:
        listener.set_policies({"foo.com": asking(authority.pem, skip_paths=("/public/.*",))})
        guard = guard_of(listener, "foo.com")
        nobody = await listener.talk("foo.com")
        assert check(guard, nobody, b"/public/x") is None
        refused = check(guard, nobody, b"/private")
        assert refused is not None
        assert refused[0] == 400
        alice = await listener.talk("foo.com", client_context(authority.issue("alice").write(tmp_path)))
        assert check(guard, alice, b"/private") is None
        with pytest.raises(REFUSED):
            await listener.talk("foo.com", client_context(stranger.issue("mallory").write(tmp_path)))


async def test_other_hosts_ask_for_no_certificate(tmp_path: Path) -> None:
    authority = Authority()
    async with tls_listener() as listener:
        listener.set_policies({"foo.com": asking(authority.pem)})
        connection = await listener.talk("bar.com", client_context(authority.issue("alice").write(tmp_path)))
        assert connection.identity is NOBODY
        assert connection.asked == ""


async def test_optional_certificate_may_be_left_out_and_must_be_good(tmp_path: Path) -> None:
    authority, stranger = Authority(), Authority()
    async with tls_listener() as listener:
        listener.set_policies({"foo.com": asking(authority.pem, mode="optional")})
        assert (await listener.talk("foo.com")).identity is NOBODY
        good = await listener.talk("foo.com", client_context(authority.issue("alice").write(tmp_path)))
        assert good.identity.verdict == "SUCCESS"
        with pytest.raises(REFUSED):
            await listener.talk("foo.com", client_context(stranger.issue("mallory").write(tmp_path)))


@pytest.mark.parametrize("version", VERSIONS)
async def test_any_certificate_may_be_required_and_is_marked(version: ssl.TLSVersion, tmp_path: Path) -> None:
    bounds = {"minimum_version": version, "maximum_version": version}
    ended = Authority().issue("bob", ends=datetime.now(UTC) - timedelta(minutes=1)).write(tmp_path)
    async with tls_listener() as listener:
        listener.set_policies({"foo.com": asking(b"", mode="required-any")})
        guard = guard_of(listener, "foo.com")
        connection = await listener.talk("foo.com", client_context(ended, **bounds))
        assert connection.identity.subject_dn == "CN=bob"
        assert connection.identity.verdict.startswith("FAILED:")
        assert check(guard, connection) is None
        with pytest.raises(REFUSED):
            await listener.talk("foo.com", client_context(**bounds))
        refused = check(guard, None)
        assert refused is not None
        assert refused[0] == 400


async def test_any_certificate_may_be_taken_and_none(tmp_path: Path) -> None:
    authority, stranger = Authority(), Authority()
    async with tls_listener() as listener:
        listener.set_policies({"foo.com": asking(authority.pem, mode="optional-any")})
        guard = guard_of(listener, "foo.com")
        verdicts = []
        for issued in (authority.issue("alice"), stranger.issue("eve"), None):
            files = issued.write(tmp_path) if issued else None
            connection = await listener.talk("foo.com", client_context(files))
            assert check(guard, connection) is None
            verdicts.append(connection.identity.verdict.partition(":")[0])
        assert verdicts == ["SUCCESS", "FAILED", "NONE"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("depth", "is_taken"), [(1, False), (2, True)])
async def test_chain_may_have_as_many_intermediates_as_the_depth(
    version: ssl.TLSVersion, depth: int, is_taken: bool, tmp_path: Path
) -> None:
    root = Authority("root")
    files = Authority("second", Authority("first", root)).issue("alice").write(tmp_path)
    client = client_context(files, minimum_version=version, maximum_version=version)
    async with tls_listener() as listener:
        listener.set_policies({"foo.com": asking(root.pem, depth=depth)})
        if is_taken:
            assert (await listener.talk("foo.com", client)).identity.verdict == "SUCCESS"
            return
        with pytest.raises(REFUSED):
            await listener.talk("foo.com", client)
        assert listener.store.counts.failed == {"CERTIFICATE_CHAIN_TOO_LONG": 1}


async def test_revoked_certificate_is_refused(tmp_path: Path) -> None:
    authority = Authority()
    good, revoked = authority.issue("alice"), authority.issue("mallory")
    async with tls_listener() as listener:
        listener.set_policies({"foo.com": asking(authority.pem, crl_pem=authority.revocation_list(revoked).decode())})
        await listener.talk("foo.com", client_context(good.write(tmp_path)))
        with pytest.raises(REFUSED):
            await listener.talk("foo.com", client_context(revoked.write(tmp_path)))


async def test_expired_certificate_is_refused(tmp_path: Path) -> None:
    authority = Authority()
    expired = authority.issue("alice", ends=datetime.now(UTC) - timedelta(hours=1))
    async with tls_listener() as listener:
        listener.set_policies({"foo.com": asking(authority.pem)})
        with pytest.raises(REFUSED):
            await listener.talk("foo.com", client_context(expired.write(tmp_path)))


async def test_connection_for_another_name_does_not_reach_a_host_that_asks(tmp_path: Path) -> None:
    authority, other = Authority(), Authority()
    files = authority.issue("alice").write(tmp_path)
    async with tls_listener() as listener:
        listener.set_policies({"foo.com": asking(authority.pem), "other.com": asking(other.pem, mode="optional")})
        guard = guard_of(listener, "foo.com")
        for name in ("bar.com", "other.com", None):
            refusal = check(guard, await listener.talk(name))
            assert refusal is not None
            assert refusal[0] == 421
        assert check(guard, await listener.talk("foo.com", client_context(files))) is None


async def test_connection_from_before_a_change_of_authorities_is_misdirected(tmp_path: Path) -> None:
    before, after = Authority(), Authority()
    async with tls_listener() as listener:
        listener.set_policies({"foo.com": asking(before.pem)})
        connection = await listener.talk("foo.com", client_context(before.issue("alice").write(tmp_path)))
        listener.set_policies({"foo.com": asking(before.pem)})
        assert check(guard_of(listener, "foo.com"), connection) is None
        listener.set_policies({"foo.com": asking(after.pem)})
        assert check(guard_of(listener, "foo.com"), connection) == (
            421,
            "the connection was made for another server name",
            b"",
        )


async def test_host_with_an_error_page_sends_those_without_certificate_there(tmp_path: Path) -> None:
    authority = Authority()
    async with tls_listener() as listener:
        listener.set_policies({"foo.com": asking(authority.pem, error_page=PAGE)})
        guard = guard_of(listener, "foo.com")
        assert check(guard, await listener.talk("foo.com")) == (
            302,
            "no client certificate was sent",
            b"Location: https://login.example.com/need-cert\r\n",
        )
        assert (
            check(guard, await listener.talk("foo.com", client_context(authority.issue("a").write(tmp_path)))) is None
        )


def test_plain_request_to_a_host_that_requires_a_certificate_is_refused() -> None:
    authority = Authority()
    assert check(made_with(asking(authority.pem)), None) == (400, "no client certificate was sent", b"")
    assert check(made_with(asking(authority.pem, mode="optional")), None) is None


@pytest.mark.parametrize(("pattern", "is_let_in"), [("CN=alice", True), ("^CN=bob$", False), ("O=Exam.*$", True)])
def test_subject_must_match_one_of_the_allowed_names(pattern: str, is_let_in: bool) -> None:
    authority = Authority()
    guard = made_with(asking(authority.pem, allowed_names=[pattern]))
    refusal = check(guard, Came(guard, authority.issue("alice", organization="Example")))
    assert (refusal is None) is is_let_in
    assert refusal is None or refusal[0] == 403


def test_nobody_has_none_of_the_allowed_names() -> None:
    guard = made_with(asking(Authority().pem, mode="optional", allowed_names=["CN=alice"]))
    refusal = check(guard, Came(guard))
    assert refusal is not None
    assert refusal[0] == 403


def test_certificate_that_ended_since_the_session_began_is_refused() -> None:
    authority = Authority()
    guard = made_with(asking(authority.pem))
    came = Came(guard, authority.issue("alice"))
    came.identity = read_identity(
        authority.issue("alice").certificate.public_bytes(Encoding.DER), datetime.now(UTC) + timedelta(days=2)
    )
    assert check(guard, came) == (400, "client certificate: FAILED:certificate has expired", b"")


def test_upstream_is_told_who_the_client_is() -> None:
    authority = Authority()
    alice = authority.issue("alice")
    plain, passing = (made_with(asking(authority.pem, pass_certificate=passes)) for passes in (False, True))
    assert identity_lines(plain, Came(plain, alice)) == (
        b"ssl-client-verify: SUCCESS\r\nssl-client-subject-dn: CN=alice\r\nssl-client-issuer-dn: CN=Test CA\r\n"
    )
    assert identity_lines(plain, Came(plain)) == identity_lines(plain, None) == b"ssl-client-verify: NONE\r\n"
    last = identity_lines(passing, Came(passing, alice)).splitlines()[-1].decode()
    assert unquote(last.removeprefix("ssl-client-cert: ")).encode() == alice.pem


def test_identity_has_what_logs_and_plugins_ask_for() -> None:
    certificate = Authority().issue("alice").certificate
    identity = read_identity(certificate.public_bytes(Encoding.DER))
    assert identity.sha1 == certificate.fingerprint(hashes.SHA1()).hex()
    assert identity.sha256 == certificate.fingerprint(hashes.SHA256()).hex()
    assert int(identity.serial, 16) == certificate.serial_number


def test_line_breaks_and_other_bytes_in_a_name_cannot_split_a_header() -> None:
    authority = Authority()
    guard = made_with(asking(authority.pem))
    lines = identity_lines(guard, Came(guard, authority.issue("a\r\nssl-client-verify: SUCCESS\u00e4")))
    assert lines.count(b"\r\n") == 3
    assert b"CN=a\\0D\\0Assl-client-verify: SUCCESS\\C3\\A4\r\n" in lines


def test_what_clients_claim_is_dropped() -> None:
    claims = b"SSL-Client-Verify: SUCCESS\r\nssl_client_subject_dn: CN=root\r\nSsl-Client-Cert : x\r\n"
    assert without_claims(b"Accept: */*\r\n" + claims + b"ssl-client-version: 1\r\n") == (
        b"Accept: */*\r\nssl-client-version: 1\r\n"
    )


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"crl_pem": "nothing"}, "tls.client_auth.crl_pem: not a revocation list in PEM"),
        ({"allowed_names": ["("]}, "tls.client_auth.allowed_names: '(' is no RE2 pattern"),
    ],
)
def test_what_cannot_be_asked_for_refuses_every_request_by_name(fields: dict[str, object], problem: str) -> None:
    guard = made_with(asking(Authority().pem, **fields))
    for connection in (None, Came(guard)):
        refusal = check(guard, connection)
        assert refusal is not None
        assert refusal[0] == 500
        assert refusal[1].startswith(problem)


@pytest.mark.parametrize("fields", [{"mode": "optional-unverified"}, {"refusals": "answer"}])
def test_interpreter_that_cannot_finish_such_handshakes_refuses_every_request_by_name(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, object]
) -> None:
    monkeypatch.setattr("headgate.gateway.tls.lenient.usable_library", lambda: None)
    refusal = check(made_with(asking(Authority().pem, **fields)), None)
    assert refusal is not None
    assert refusal[0] == 500
    assert "cannot be let through the handshake" in refusal[1]


async def test_email_in_a_subject_is_written_as_openssl_does() -> None:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a"), x509.NameAttribute(NameOID.EMAIL_ADDRESS, "a@b.c")])
    issued = Authority(name).issue("x")
    assert read_identity(issued.certificate.public_bytes(Encoding.DER)).issuer_dn == "emailAddress=a@b.c,CN=a"


@pytest.mark.parametrize("version", VERSIONS)
async def test_resumed_session_keeps_its_client_and_opens_no_other_host(
    version: ssl.TLSVersion, tmp_path: Path
) -> None:
    authority = Authority()
    files = authority.issue("alice").write(tmp_path)
    client = client_context(files, minimum_version=version, maximum_version=version)
    async with tls_listener() as listener:
        listener.set_policies(
            {"foo.com": asking(authority.pem), "optional.com": asking(authority.pem, mode="optional")}
        )
        _, anonymous = await asyncio.to_thread(resume, listener.port, client, "bar.com")
        is_resumed, session = await asyncio.to_thread(resume, listener.port, client, "foo.com", anonymous)
        assert not is_resumed
        assert (await asyncio.to_thread(resume, listener.port, client, "foo.com", session))[0]
        assert listener.accepted[-1].identity.subject_dn == "CN=alice"
        assert not (await asyncio.to_thread(resume, listener.port, client, "optional.com", session))[0]
