"""Versions, ciphers, ALPN and sessions, per host."""

import asyncio
import gc
import ssl
import weakref

import pytest

from fakes.gateway.tls_listener import TlsListener, asking, client_context, entry, resume, tls_listener
from fakes.waiting import until
from headgate.common.table import OTHER_NAMES, ClientAuth, TlsPolicy
from headgate.gateway.tls import CertificateStore
from headgate.gateway.tls import policy as policy_module
from headgate.gateway.tls.errors import TlsConfigError
from headgate.gateway.tls.loading import set_curves
from headgate.gateway.tls.policy import HostTls

TLS_1_2 = {"maximum_version": ssl.TLSVersion.TLSv1_2}


async def connected(listener: TlsListener, name: str, context: ssl.SSLContext) -> ssl.SSLObject:
    _, writer = await listener.open(name, context)
    found: ssl.SSLObject = writer.get_extra_info("ssl_object")
    writer.close()
    return found


async def test_versions_are_those_of_the_host() -> None:
    async with tls_listener() as listener:
        listener.set_policies({"new.com": TlsPolicy(min_version="1.3"), "old.com": TlsPolicy(max_version="1.2")})
        assert (await connected(listener, "old.com", client_context())).version() == "TLSv1.2"
        assert (await connected(listener, "new.com", client_context())).version() == "TLSv1.3"
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await listener.open("new.com", client_context(**TLS_1_2))


async def test_host_may_let_old_versions_in_and_others_do_not() -> None:
    async with tls_listener() as listener:
        listener.set_policies({"old.com": TlsPolicy(min_version="1.0")})
        with pytest.warns(DeprecationWarning, match="TLSv1"):
            old = client_context(minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1)
        old.set_ciphers("ALL:@SECLEVEL=0")
        assert (await connected(listener, "old.com", old)).version() == "TLSv1"
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await listener.open("foo.com", old)


async def test_ciphers_are_those_of_the_host_and_otherwise_forward_secret_ones() -> None:
    async with tls_listener() as listener:
        listener.set_policies({"chacha.com": TlsPolicy(ciphers="ECDHE-ECDSA-CHACHA20-POLY1305")})
        found = await connected(listener, "chacha.com", client_context(**TLS_1_2))
        assert found.cipher()[0] == "ECDHE-ECDSA-CHACHA20-POLY1305"
        weak = client_context(**TLS_1_2)
        weak.set_ciphers("ECDHE-ECDSA-AES128-SHA:ECDHE-ECDSA-AES128-SHA256:@SECLEVEL=0")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await listener.open("foo.com", weak)


@pytest.mark.parametrize(
    ("prefers_own", "expected"), [(True, "ECDHE-ECDSA-AES256-GCM-SHA384"), (False, "ECDHE-ECDSA-AES128-GCM-SHA256")]
)
async def test_order_of_ciphers_is_the_clients_unless_the_host_prefers_its_own(
    prefers_own: bool, expected: str
) -> None:
    ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256"
    async with tls_listener() as listener:
        listener.set_policies({"foo.com": TlsPolicy(ciphers=ciphers, prefer_server_ciphers=prefers_own)})
        client = client_context(**TLS_1_2)
        client.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384")
        assert (await connected(listener, "foo.com", client)).cipher()[0] == expected


async def test_listener_decides_what_a_policy_may_offer_by_alpn() -> None:
    client = client_context()
    client.set_alpn_protocols(["h2", "http/1.1"])
    async with tls_listener(CertificateStore(alpn=("h2", "http/1.1"))) as listener:
        listener.set_policies({"one.com": TlsPolicy(alpn=("http/1.1",))})
        assert (await connected(listener, "two.com", client)).selected_alpn_protocol() == "h2"
        assert (await connected(listener, "one.com", client)).selected_alpn_protocol() == "http/1.1"
    async with tls_listener() as listener:
        listener.set_policies({"two.com": TlsPolicy(alpn=("h2", "http/1.1"))})
        assert (await connected(listener, "two.com", client)).selected_alpn_protocol() == "http/1.1"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_session_is_resumed_with_its_own_host_only(version: ssl.TLSVersion) -> None:
    client = client_context(minimum_version=version, maximum_version=version)
    async with tls_listener() as listener:
        listener.set_policies({"strict.com": TlsPolicy(min_version=version.name[-3:].replace("_", "."))})
        session = await asyncio.to_thread(resume, listener.port, client, "foo.com")
        assert not session[0]
        assert (await asyncio.to_thread(resume, listener.port, client, "foo.com", session[1]))[0]
        assert not (await asyncio.to_thread(resume, listener.port, client, "strict.com", session[1]))[0]
        assert (listener.store.counts.completed, listener.store.counts.resumed) == (3, 1)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_session_of_another_worker_falls_back_to_a_whole_handshake(version: ssl.TLSVersion) -> None:
    client = client_context(minimum_version=version, maximum_version=version)
    certificate = entry("foo.com")
    async with tls_listener() as one, tls_listener() as two:
        for listener in (one, two):
            listener.store.set_certificates([certificate])
        _, session = await asyncio.to_thread(resume, one.port, client, "foo.com")
        assert not (await asyncio.to_thread(resume, two.port, client, "foo.com", session))[0]
        assert two.store.counts.completed == 1


async def test_keys_are_exchanged_on_the_curves_of_the_host_alone() -> None:
    client = client_context(minimum_version=ssl.TLSVersion.TLSv1_3)
    client.set_ecdh_curve("secp384r1")
    async with tls_listener() as listener:
        listener.set_policies(
            {"one.com": TlsPolicy(curves=("P-384", "X25519")), "two.com": TlsPolicy(curves=("P-521",))}
        )
        await listener.talk("one.com", client)
        await listener.talk("foo.com", client)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await listener.talk("two.com", client)


async def test_curves_that_openssl_does_not_know_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = TlsPolicy(curves=("X25519", "P-256"))
    monkeypatch.setattr(policy_module, "set_curves", lambda context, curves: set_curves(context, ("unknown", *curves)))
    async with tls_listener() as listener:
        listener.set_policies({"one.com": policy})
        await listener.talk("one.com")
    with pytest.raises(TlsConfigError, match="curves: OpenSSL knows none of unknown, neither"):
        set_curves(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ("unknown", "neither"))


async def test_host_whose_curves_cannot_be_set_refuses_requests_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.gateway.tls.loading.usable_library", lambda: None)
    assert HostTls(TlsPolicy(curves=("P-256",))).problem.startswith("curves: cannot be set by this build of Python")


@pytest.mark.parametrize("bound", ["1.0", "1.1"])
async def test_newest_version_may_be_an_old_one(bound: str) -> None:
    async with tls_listener() as listener:
        listener.set_policies({"old.com": TlsPolicy.model_validate({"min_version": "1.0", "max_version": bound})})
        with pytest.warns(DeprecationWarning, match="TLSv1"):
            old = client_context(minimum_version=ssl.TLSVersion.TLSv1)
        old.set_ciphers("ALL:@SECLEVEL=0")
        version = "TLSv1" if bound == "1.0" else "TLSv1.1"
        assert (await connected(listener, "old.com", old)).version() == version


async def test_no_session_is_resumed_by_a_ticket_of_a_host_that_gives_none() -> None:
    client = client_context(minimum_version=ssl.TLSVersion.TLSv1_3)
    async with tls_listener() as listener:
        listener.set_policies({"foo.com": TlsPolicy(session_tickets=False)})
        _, session = await asyncio.to_thread(resume, listener.port, client, "foo.com")
        assert session is None or not session.has_ticket


@pytest.mark.parametrize(
    ("name", "is_taken"), [("foo.com", True), ("a.bar.com", True), ("b.a.bar.com", False), ("two.com", False)]
)
async def test_host_may_refuse_names_that_no_certificate_has(name: str, is_taken: bool) -> None:
    async with tls_listener() as listener:
        listener.store.set_certificates([entry("foo.com", "*.bar.com"), entry("x.com", OTHER_NAMES)])
        listener.set_policies({name: TlsPolicy(strict_names=True)})
        if is_taken:
            await listener.talk(name)
        else:
            with pytest.raises(ssl.SSLError, match=r"(?i)unrecognized.name"):
                await listener.talk(name)
            assert listener.store.counts.failed == {"UNRECOGNIZED_NAME": 1}
        await listener.talk("other.com")


async def test_host_without_authorities_for_the_certificates_that_it_requires_lets_no_client_in() -> None:
    async with tls_listener() as listener:
        listener.set_policies({"foo.com": TlsPolicy(client_auth=ClientAuth(ca_pem=""))})
        with pytest.raises(ssl.SSLError, match=r"(?i)access.denied"):
            await listener.talk("foo.com")
        assert listener.store.counts.failed == {"ACCESS_DENIED": 1}


async def test_host_may_refuse_clients_that_send_no_name() -> None:
    async with tls_listener() as listener:
        listener.store.set_certificates([entry("foo.com", OTHER_NAMES)])
        listener.set_policies({"": TlsPolicy(strict_names=True)})
        await listener.talk("foo.com")
        with pytest.raises(ssl.SSLError, match=r"(?i)unrecognized.name"):
            await listener.talk(None)


async def test_hello_that_comes_byte_by_byte_finds_its_host() -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context().wrap_bio(incoming, outgoing, server_hostname="foo.com")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    store = CertificateStore()
    asked: list[bytes] = []
    store.set_policies(lambda name: asked.append(name))
    to_server, from_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = store.server_context.wrap_bio(to_server, from_server, server_side=True)
    for byte in outgoing.read():
        assert not asked
        to_server.write(bytes([byte]))
        with pytest.raises(ssl.SSLWantReadError):
            server.do_handshake()
    assert asked == [b"foo.com"]
    assert from_server.pending


async def test_failed_handshakes_are_counted_by_reason_and_told_to_the_client() -> None:
    async with tls_listener() as listener:
        counts = listener.store.counts
        listener.set_policies({"new.com": TlsPolicy(min_version="1.3")})
        with pytest.raises(ssl.SSLError, match=r"(?i)protocol.version"):
            await listener.open("new.com", client_context(**TLS_1_2))
        assert counts.failed == {"UNSUPPORTED_PROTOCOL": 1}
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: foo.com\r\n\r\n")
        await reader.read()
        writer.close()
        assert counts.failed == {"UNSUPPORTED_PROTOCOL": 1, "HTTP_REQUEST": 1}
        assert (counts.started, counts.completed) == (2, 0)


async def test_connection_that_is_cut_in_its_handshake_is_started_and_never_more() -> None:
    async with tls_listener() as listener:
        counts = listener.store.counts
        _, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(b"\x16\x03\x01")
        await until(lambda: counts.started == 1)
        writer.close()
        await writer.wait_closed()
        assert (counts.started, counts.completed, counts.failed) == (1, 0, {})


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (TlsPolicy(ciphers="NO-SUCH-CIPHER"), "ciphers: 'NO-SUCH-CIPHER' names no cipher that can be used"),
        (TlsPolicy(min_version="1.3", max_version="1.2"), "min_version: 1.3 is above max_version 1.2"),
        (asking(b"nothing"), "tls.client_auth.ca_pem: not certificates in PEM"),
    ],
)
async def test_policy_that_cannot_be_had_is_named_and_its_host_still_shakes_hands(
    policy: TlsPolicy, problem: str
) -> None:
    async with tls_listener() as listener:
        listener.set_policies({"foo.com": policy})
        compiled = listener.hosts[b"foo.com"]
        assert compiled.problem.startswith(problem)
        assert compiled.guard is not None
        assert compiled.guard.problem == compiled.problem
        assert (await listener.talk("foo.com")).tls is compiled


def test_contexts_end_with_their_policy() -> None:
    listener = TlsListener()
    listener.set_policies({"foo.com": TlsPolicy(min_version="1.3")})
    context = weakref.ref(listener.store.choose("foo.com").context)
    assert listener.store.choose("foo.com").context is context()
    listener.set_policies({})
    gc.collect()
    assert (len(listener.policies), context()) == (0, None)


def test_hosts_with_equal_policies_share_one() -> None:
    listener = TlsListener()
    listener.set_policies({f"{n}.com": TlsPolicy(min_version="1.3") for n in range(100)})
    assert len(listener.policies) == 1


async def test_sessions_kept_for_clients_without_tickets_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.gateway.tls.handshake.SESSIONS_LIMIT", 3)
    client = client_context(**TLS_1_2)
    client.options |= ssl.OP_NO_TICKET
    async with tls_listener() as listener:
        first = listener.store.choose("foo.com").context
        for _ in range(3):
            await listener.talk("foo.com", client)
        assert listener.store.choose("foo.com").context is first
        for _ in range(3):
            await listener.talk("foo.com", client)
        assert listener.store.choose("foo.com").context is not first
