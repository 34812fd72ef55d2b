"""Redis over TLS: who is believed, and who is let in. TLS ends before the server, so every build of it will do."""

import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography.x509 import DNSName, GeneralName, IPAddress

from fakes.gateway.tls import Authority
from fakes.stores.redis import Relay, linked, real_redis
from fakes.waiting import until
from headgate.common.service.settings import load_settings
from headgate.common.snapshot import Manifest, Version
from headgate.common.stores.redis.link import RedisLink
from headgate.common.stores.redis.stores import tables_on
from headgate.common.stores.redis.target import RedisTarget
from headgate.common.stores.settings import StoreSettings

LOOPBACK = IPAddress(ip_address("127.0.0.1"))
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority()
    (tmp_path / "ca.pem").write_bytes(made.pem)
    return made


@asynccontextmanager
async def front(
    folder: Path, authority: Authority, name: GeneralName = LOOPBACK, *, asks: bool = False
) -> AsyncIterator[str]:
    """A server behind TLS; its URL."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    (folder / "server").mkdir()
    context.load_cert_chain(*authority.issue("redis.test", name).write(folder / "server"))
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=authority.pem.decode())
    async with real_redis() as server, Relay(server.port, context) as relay:
        yield f"rediss://127.0.0.1:{relay.port}"


def target(url: str, *flags: str) -> RedisTarget:
    settings = load_settings(StoreSettings, [f"--store={url}", *flags], program="test", summary="")
    assert settings.redis is not None
    return settings.redis


async def why_refused(place: RedisTarget) -> str:
    link = await RedisLink.connect(place, name="test", wait_s=0.5)
    try:
        # On a busy machine the first attempt may take longer than that.
        await until(lambda: "not connected yet" not in str(link.readiness()))
        return str(link.readiness())
    finally:
        await link.close()


async def test_tables_are_written_and_followed_over_tls(tmp_path: Path, authority: Authority) -> None:
    async with front(tmp_path, authority) as url, linked(target(url, f"--store-ca-file={tmp_path / 'ca.pem'}")) as link:
        store = tables_on(link).snapshots
        first = await store.commit(Manifest(table="default", version=Version(1, 1), created_at=NOW, chunks=()), None)
        async with aclosing(store.follow("default")) as pointers:  # type: ignore[type-var]
            assert await anext(pointers) == first
            second = Manifest(table="default", version=Version(1, 2), created_at=NOW, chunks=())
            assert await store.commit(second, first) == await anext(pointers)


async def test_a_certificate_of_an_authority_that_is_not_trusted_is_refused(
    tmp_path: Path, authority: Authority
) -> None:
    other = tmp_path / "other.pem"
    other.write_bytes(Authority("Other CA").pem)
    async with front(tmp_path, authority) as url:
        assert "certificate verify failed" in await why_refused(target(url))
        assert "certificate verify failed" in await why_refused(target(url, f"--store-ca-file={other}"))


async def test_a_certificate_for_another_name_is_refused(tmp_path: Path, authority: Authority) -> None:
    async with front(tmp_path, authority, DNSName("elsewhere.test")) as url:
        assert "not valid for '127.0.0.1'" in await why_refused(target(url, f"--store-ca-file={tmp_path / 'ca.pem'}"))


async def test_a_server_that_asks_for_a_certificate_gets_ours(tmp_path: Path, authority: Authority) -> None:
    chain, key = authority.issue("headgate").write(tmp_path)
    ca = f"--store-ca-file={tmp_path / 'ca.pem'}"
    async with front(tmp_path, authority, asks=True) as url:
        assert "not connected" in await why_refused(target(url, ca))
        async with linked(target(url, ca, f"--store-certificate-file={chain}", f"--store-key-file={key}")) as link:
            assert await tables_on(link).heartbeats.live() == []


async def test_a_file_that_is_not_there_is_named(tmp_path: Path, authority: Authority) -> None:
    async with front(tmp_path, authority) as url:
        assert "absent.pem for TLS to Redis cannot be read" in await why_refused(
            target(url, f"--store-ca-file={tmp_path / 'absent.pem'}")
        )
