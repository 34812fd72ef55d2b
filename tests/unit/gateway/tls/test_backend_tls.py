"""TLS to upstreams, against real servers."""

import asyncio
import contextlib
import gc
import ipaddress
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography import x509
from nacl.public import PrivateKey

from fakes.gateway.tls import Authority, Issued
from fakes.translator.sealing import seal
from headgate.common.sealing import Unsealer
from headgate.common.table import BackendProtocol, BackendTls, Provenance, Upstream
from headgate.gateway.tls.backend import BackendContexts
from headgate.gateway.tls.errors import TlsConfigError

ORIGIN = Provenance(cluster="c1", kind="Service", namespace="default", name="web", rule="")
KEY = PrivateKey.generate()
DNS = x509.DNSName


def upstream(tls: BackendTls | None, protocol: BackendProtocol = BackendProtocol.HTTPS, host: str = "") -> Upstream:
    return Upstream(key="up", protocol=protocol, tls=tls, host=host or None, provenance=ORIGIN)


def contexts() -> BackendContexts:
    return BackendContexts(Unsealer([KEY]).open)


@contextlib.asynccontextmanager
async def serving(
    issued: Issued, folder: Path, client_ca: bytes = b""
) -> AsyncIterator[tuple[int, list[ssl.SSLObject]]]:
    """A TLS server that says hello; gives its port and what it saw."""
    seen: list[ssl.SSLObject] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*issued.write(folder))
    context.set_alpn_protocols(["h2", "http/1.1"])
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=client_ca.decode())

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(writer.get_extra_info("ssl_object"))
        writer.write(b"hello")
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1], seen
    finally:
        server.close()
        await server.wait_closed()
        await asyncio.sleep(0)


async def greeted(port: int, upstream: Upstream, using: BackendContexts | None = None) -> bytes:
    """Connect as the gateway does."""
    found = (using or contexts()).backend_context(upstream)
    assert found is not None
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=found.context, server_hostname=found.server_hostname or "127.0.0.1"
    )
    with contextlib.closing(writer):
        return await asyncio.wait_for(reader.read(), 10)


async def test_without_verification_anything_is_taken(tmp_path: Path) -> None:
    async with serving(Authority().issue("x"), tmp_path) as (port, _):
        assert await greeted(port, upstream(None)) == b"hello"


async def test_verified_certificate_needs_authority_and_name(tmp_path: Path) -> None:
    authority = Authority()
    ca = authority.pem.decode()
    async with serving(authority.issue("x", DNS("web.internal")), tmp_path) as (port, _):
        good = BackendTls(verify=True, ca_pem=ca, server_name="web.internal")
        assert await greeted(port, upstream(good)) == b"hello"
        for bad in (
            good.model_copy(update={"server_name": "other.internal"}),
            good.model_copy(update={"ca_pem": Authority().pem.decode()}),
            good.model_copy(update={"ca_pem": ""}),
        ):
            with pytest.raises(ssl.SSLCertVerificationError):
                await greeted(port, upstream(bad))


async def test_name_is_the_host_that_is_sent_or_the_address(tmp_path: Path) -> None:
    authority = Authority()
    tls = BackendTls(verify=True, ca_pem=authority.pem.decode())
    names = (DNS("web.internal"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    async with serving(authority.issue("x", *names), tmp_path) as (port, _):
        assert await greeted(port, upstream(tls)) == b"hello"
        assert await greeted(port, upstream(tls, host="web.internal:8443")) == b"hello"
        with pytest.raises(ssl.SSLCertVerificationError):
            await greeted(port, upstream(tls, host="other.internal"))


@pytest.mark.parametrize(
    ("name", "is_taken"),
    [
        ("web.internal", True),
        ("A.wild.internal", True),
        ("a.b.wild.internal", False),
        ("wild.internal", False),
        ("spiffe://cluster.local/ns/default/sa/web", True),
        ("spiffe://cluster.local/ns/default/sa/other", False),
        ("10.0.0.1", True),
        ("x", False),
    ],
)
async def test_certificate_needs_one_of_the_subject_names_instead_of_the_server_name(
    name: str, is_taken: bool, tmp_path: Path
) -> None:
    authority = Authority()
    issued = authority.issue(
        "x",
        DNS("web.internal"),
        DNS("*.wild.internal"),
        x509.UniformResourceIdentifier("spiffe://cluster.local/ns/default/sa/web"),
        x509.IPAddress(ipaddress.ip_address("10.0.0.1")),
    )
    tls = BackendTls(
        verify=True, ca_pem=authority.pem.decode(), server_name="sni.internal", subject_names=("no.internal", name)
    )
    async with serving(issued, tmp_path) as (port, _):
        if is_taken:
            assert await greeted(port, upstream(tls)) == b"hello"
            return
        with pytest.raises(ssl.SSLCertVerificationError, match="none of the names"):
            await greeted(port, upstream(tls))


async def test_depth_bounds_the_intermediates(tmp_path: Path) -> None:
    root = Authority("root")
    issued = Authority("between", root).issue("x", DNS("web.internal"))
    tls = BackendTls(verify=True, ca_pem=root.pem.decode(), server_name="web.internal", depth=1)
    async with serving(issued, tmp_path) as (port, _):
        assert await greeted(port, upstream(tls)) == b"hello"
        with pytest.raises(ssl.SSLCertVerificationError, match="more than 0 intermediates"):
            await greeted(port, upstream(tls.model_copy(update={"depth": 0})))


async def test_own_certificate_is_shown(tmp_path: Path) -> None:
    authority = Authority()
    own = authority.issue("gateway")
    tls = BackendTls(
        certificate_pem=own.chain_pem.decode(), private_key=seal(own.key_pem, [KEY.public_key]), min_version="1.3"
    )
    async with serving(Authority().issue("x"), tmp_path, client_ca=authority.pem) as (port, seen):
        assert await greeted(port, upstream(tls)) == b"hello"
        assert dict(part[0] for part in seen[0].getpeercert()["subject"]) == {"commonName": "gateway"}
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            assert await greeted(port, upstream(BackendTls())) == b""
        assert len(seen) == 1


@pytest.mark.parametrize(
    ("protocol", "agreed"),
    [(BackendProtocol.H2, "h2"), (BackendProtocol.HTTPS, "http/1.1"), (BackendProtocol.TLS, None)],
)
async def test_protocol_is_asked_for_by_alpn(protocol: BackendProtocol, agreed: str | None, tmp_path: Path) -> None:
    async with serving(Authority().issue("x"), tmp_path) as (port, seen):
        assert await greeted(port, upstream(None, protocol)) == b"hello"
        assert seen[0].selected_alpn_protocol() == agreed


async def test_ciphers_and_version_are_those_asked_for(tmp_path: Path) -> None:
    async with serving(Authority().issue("x"), tmp_path) as (port, seen):
        await greeted(port, upstream(BackendTls(min_version="1.3")))
        assert seen[0].version() == "TLSv1.3"


def test_plain_upstream_has_no_context() -> None:
    assert contexts().backend_context(upstream(None, BackendProtocol.HTTP)) is None


def test_equal_upstreams_share_a_context_which_ends_with_the_last() -> None:
    held = contexts()
    tls = BackendTls(min_version="1.3")
    one, two = held.backend_context(upstream(tls)), held.backend_context(upstream(tls, host="foo.com"))
    assert one is not None
    assert two is not None
    assert one.context is two.context
    assert (one.server_hostname, two.server_hostname) == (None, "foo.com")
    del one, two
    gc.collect()
    assert len(held) == 0


def test_a_certificate_of_one_cluster_is_not_shown_for_upstreams_of_another() -> None:
    held, sealed = contexts(), seal(OWN.key_pem, [KEY.public_key])
    tls = BackendTls(certificate_pem=OWN.chain_pem.decode(), private_key=sealed)
    shown = held.backend_context(upstream(tls))
    assert shown is not None
    with pytest.raises(TlsConfigError, match="sealed by cluster 'c1'"):
        held.backend_context(upstream(tls.model_copy(update={"private_key": sealed.of("c2")})))


OWN = Authority().issue("gateway")


@pytest.mark.parametrize(
    ("tls", "problem"),
    [
        (BackendTls(verify=True, ca_pem="nothing"), "tls.ca_pem: not certificates in PEM"),
        (BackendTls(ciphers="NO-SUCH"), "tls.ciphers: 'NO-SUCH' names no cipher"),
        (BackendTls(certificate_pem=OWN.pem.decode()), "tls.private_key: missing"),
        (
            BackendTls(certificate_pem=OWN.pem.decode(), private_key=seal(b"x", [PrivateKey.generate().public_key])),
            "tls.private_key: cannot be opened",
        ),
        (
            BackendTls(certificate_pem=OWN.pem.decode(), private_key=seal(b"x", [KEY.public_key])),
            "tls.certificate_pem: no pair with private_key",
        ),
    ],
)
def test_what_cannot_be_loaded_is_refused_by_name(tls: BackendTls, problem: str) -> None:
    with pytest.raises(TlsConfigError) as caught:
        contexts().backend_context(upstream(tls))
    assert str(caught.value).startswith(problem)
