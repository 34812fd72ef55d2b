"""Certificates by server name, on a real listener."""

import asyncio
import gc
import ssl
import weakref
from collections.abc import AsyncIterator

import pytest
from cryptography import x509

from fakes.gateway.proxied import OK, Conversation, Proxied, answering, proxied
from fakes.gateway.tls import unverified
from headgate.common.pem import load_key_pair
from headgate.common.secret import Secret
from headgate.gateway.model.connection import ConnectionSpec
from headgate.gateway.tls import FALLBACK_NAME, CertificateEntry, CertificateStore, self_signed, server


def entry(*names: str, key_of: bytes | None = None) -> CertificateEntry:
    chain, key = self_signed(names[0])
    return CertificateEntry(names, chain.decode(), Secret(key_of or key), f"fingerprint of {names} {hash(chain)}")


class Listening:
    """A proxy with a TLS listener."""

    def __init__(self, proxy: Proxied, store: CertificateStore, port: int) -> None:
        self.proxy = proxy
        self.store = store
        self.port = port

    async def open(self, name: str | None, **options: object) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2", "http/1.1"])
        for option, value in options.items():
            setattr(context, option, value)
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=context, server_hostname=name or "")

    async def presented(self, name: str | None) -> str:
        """Give the common name of the certificate that a server name gets."""
        _, writer = await self.open(name)
        certificate = x509.load_der_x509_certificate(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        writer.close()
        await writer.wait_closed()
        return str(certificate.subject.rfc4514_string()).removeprefix("CN=")


@pytest.fixture
async def listening() -> AsyncIterator[Listening]:
    store = CertificateStore()
    async with proxied(answering(OK)) as proxy:
        yield Listening(proxy, store, await proxy.server.listen_https("127.0.0.1", 0, store))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("foo.com", "foo.com"),
        ("FOO.com", "foo.com"),
        ("a.foo.com", "*.foo.com"),
        ("b.foo.com", "b.foo.com"),
        ("a.b.foo.com", FALLBACK_NAME),
        ("bar.com", FALLBACK_NAME),
        (None, FALLBACK_NAME),
    ],
)
async def test_name_gets_its_certificate(listening: Listening, name: str | None, expected: str) -> None:
    listening.store.set_certificates([entry("foo.com"), entry("*.foo.com"), entry("b.foo.com")])
    assert await listening.presented(name) == expected


def test_trailing_dot_of_a_name_is_ignored() -> None:
    store = CertificateStore()
    store.set_certificates([entry("foo.com.")])
    assert store.choose("foo.com.") == store.choose("foo.com") != store.choose("bar.com")


async def test_certificates_are_swapped_without_a_new_listener(listening: Listening) -> None:
    listening.store.set_certificates([entry("foo.com")])
    assert await listening.presented("foo.com") == "foo.com"
    listening.store.set_certificates([entry("new.com", "foo.com")])
    assert await listening.presented("foo.com") == "new.com"
    listening.store.set_certificates([])
    assert await listening.presented("foo.com") == FALLBACK_NAME


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The chains that are loaded into contexts."""
    loaded: list[bytes] = []

    def load(context: ssl.SSLContext, chain: bytes, key: bytes) -> None:
        loaded.append(chain)
        load_key_pair(context, chain, key)

    monkeypatch.setattr(server, "load_key_pair", load)
    return loaded


def test_context_is_made_once_per_fingerprint_and_only_when_asked_for(loaded: list[bytes]) -> None:
    store = CertificateStore()
    one = entry("foo.com", "bar.com")
    store.set_certificates([one, entry("unused.com")])
    assert not loaded
    context = weakref.ref(store.choose("foo.com").context)
    assert store.choose("bar.com").context is context()
    store.set_certificates([one])
    assert store.choose("foo.com").context is context()
    assert loaded == [one.chain_pem.encode()]
    store.set_certificates([])
    gc.collect()
    assert context() is None


async def test_key_that_does_not_fit_costs_only_its_own_names(listening: Listening) -> None:
    listening.store.set_certificates([entry("bad.com", key_of=self_signed("x")[1]), entry("good.com")])
    assert await listening.presented("bad.com") == FALLBACK_NAME
    assert await listening.presented("good.com") == "good.com"


async def test_request_over_tls_is_answered_and_told_apart(listening: Listening) -> None:
    reader, writer = await listening.open("foo.com")
    writer.write(b"GET / HTTP/1.1\r\nHost: foo.com\r\nConnection: close\r\n\r\n")
    assert (await reader.read()).endswith(b"ok")
    writer.close()
    head = listening.proxy.origin.heads[0]
    assert b"X-Forwarded-Proto: https\r\n" in head
    assert b"X-Forwarded-Port: %d\r\n" % listening.port in head


async def test_malformed_request_over_tls_is_refused_and_closed(listening: Listening) -> None:
    reader, writer = await listening.open("foo.com")
    writer.write(b"GET / HTTP/1.1\r\nHost : foo.com\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
    writer.close()


async def test_large_answer_over_tls_arrives(listening: Listening) -> None:
    size = 8 << 20
    listening.proxy.origin.script = answering(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"a" * size)
    reader, writer = await listening.open("foo.com")
    writer.write(b"GET / HTTP/1.1\r\nHost: foo.com\r\nConnection: close\r\n\r\n")
    assert len((await reader.read()).partition(b"\r\n\r\n")[2]) == size
    writer.close()


async def test_endpoint_that_speaks_tls_is_spoken_to_in_tls() -> None:
    store = CertificateStore()
    async with proxied(answering(OK)) as behind, proxied() as proxy:
        port = await behind.server.listen_https("127.0.0.1", 0, store)
        proxy.target.pools = [proxy.pools.get("127.0.0.1", port, ConnectionSpec("https", unverified()))]
        client = await proxy.connect()
        for _ in range(2):
            await client.send(b"GET / HTTP/1.1\r\nHost: foo.com\r\n\r\n")
            assert (await client.answer())[1] == b"ok"
        assert proxy.target.pools[0].idle_count == 1
        assert b"X-Forwarded-Proto: https\r\n" in behind.origin.heads[0]


async def test_plain_endpoint_that_is_spoken_to_in_tls_is_a_502() -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with proxied(script) as proxy:
        proxy.target.pools = [proxy.pools.get("127.0.0.1", proxy.origin.port, ConnectionSpec("https", unverified()))]
        answer = await proxy.talk(b"GET / HTTP/1.1\r\nHost: foo.com\r\nConnection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 502 ")


async def test_http_1_1_is_agreed_upon(listening: Listening) -> None:
    _, writer = await listening.open("foo.com")
    assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
    writer.close()


async def test_old_tls_is_refused(listening: Listening) -> None:
    with pytest.warns(DeprecationWarning, match="TLSv1"), pytest.raises((ssl.SSLError, ConnectionError)):
        await listening.open("foo.com", minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)


def test_ten_thousand_certificates_are_set_quickly_as_none_is_loaded(loaded: list[bytes]) -> None:
    chain, key = self_signed("a")
    store = CertificateStore()
    store.set_certificates(
        CertificateEntry((f"{n}.example",), chain.decode(), Secret(key), str(n)) for n in range(10_000)
    )
    assert not loaded
    assert store.choose("9999.example") != store.choose("a.example")
