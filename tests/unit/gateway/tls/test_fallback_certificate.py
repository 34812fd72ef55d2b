"""The certificate for names that have none, when certificates end, and what is counted."""

import asyncio
import contextlib
import logging
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from prometheus_client import CollectorRegistry, generate_latest

from fakes.gateway.tls import Authority, Issued
from fakes.gateway.tls_listener import client_context, entry, tls_listener
from fakes.waiting import until
from headgate.common.errors import SettingsError
from headgate.common.table import OTHER_NAMES
from headgate.gateway.observability.metrics import ProxyCollector
from headgate.gateway.settings import GatewaySettings
from headgate.gateway.tls import FALLBACK_NAME, CertificateStore
from headgate.gateway.tls.fallback_files import FallbackFiles
from headgate.gateway.tls.metrics import TlsFamilies


async def presented(store: CertificateStore, name: str | None) -> str:
    async with tls_listener(store) as listener:
        _, writer = await listener.open(name)
        certificate = x509.load_der_x509_certificate(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        writer.close()
    return certificate.subject.rfc4514_string().removeprefix("CN=")


def exposed(store: CertificateStore) -> str:
    registry = CollectorRegistry()
    registry.register(ProxyCollector(TlsFamilies(store)))
    return generate_latest(registry).decode()


async def test_certificate_of_the_table_can_be_the_fallback() -> None:
    store = CertificateStore(default_key="c1/default/wild")
    assert await presented(store, "bar.com") == FALLBACK_NAME
    store.set_certificates([entry("foo.com", key="c1/default/foo"), entry("wild.com", key="c1/default/wild")])
    assert await presented(store, "bar.com") == "wild.com"
    store.set_certificates([entry("foo.com", key="c1/default/foo")])
    assert await presented(store, "bar.com") == FALLBACK_NAME


async def test_a_certificate_for_other_names_is_the_fallback_unless_the_gateway_has_one_of_its_own() -> None:
    store, own = CertificateStore(), CertificateStore(default_key="c1/default/b")
    for each in (store, own):
        each.set_certificates([entry("foo.com", OTHER_NAMES, key="c1/default/a"), entry("b.com", key="c1/default/b")])
    assert await presented(store, "bar.com") == "foo.com"
    assert await presented(store, "b.com") == "b.com"
    assert await presented(own, "bar.com") == "b.com"


@pytest.mark.parametrize("name", ["bar.com", None])
async def test_the_gateways_own_settings_go_before_the_tables_certificate_for_other_names(name: str | None) -> None:
    issued = Authority().issue("given")
    store = CertificateStore(default_key="c1/default/b")
    others = [entry("one", OTHER_NAMES, key="c1/default/one"), entry("two", OTHER_NAMES, key="c1/default/two")]
    assert await presented(store, name) == FALLBACK_NAME
    store.set_certificates(reversed(others))
    assert await presented(store, name) == "one"
    store.set_certificates(others[1:])
    assert await presented(store, name) == "two"
    store.set_fallback(issued.chain_pem, issued.key_pem)
    assert await presented(store, name) == "given"
    store.set_certificates([*others, entry("own", key="c1/default/b")])
    assert await presented(store, name) == "own"
    store.set_certificates([])
    assert await presented(store, name) == "given"


def test_the_end_of_the_tables_certificate_for_other_names_is_told_once() -> None:
    store = CertificateStore()
    store.set_certificates([entry("a", OTHER_NAMES, key="c1/d/a"), entry("b", OTHER_NAMES, key="c1/d/b")])
    assert sorted((name, key) for name, key, _ in store.not_after_by_name()) == [
        ("", "c1/d/a"),
        ("a", "c1/d/a"),
        ("b", "c1/d/b"),
    ]


async def test_unusable_fallback_of_the_table_leaves_the_gateways_own() -> None:
    store = CertificateStore(default_key="c1/default/wild")
    store.set_certificates([entry("wild.com", key_of=b"no key", key="c1/default/wild")])
    assert await presented(store, "bar.com") == FALLBACK_NAME


async def test_files_are_loaded_again_when_they_change(tmp_path: Path) -> None:
    authority, store = Authority(), CertificateStore()
    files = FallbackFiles(store, *authority.issue("one").write(tmp_path), look_s=0.01)
    files.load()
    assert await presented(store, "bar.com") == "one"
    watching = asyncio.create_task(files.run())
    try:
        authority.issue("two").write(tmp_path)
        before = store.fallback
        await until(lambda: store.fallback is not before)
        assert await presented(store, "bar.com") == "two"
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


async def test_files_that_fit_no_more_leave_the_certificate_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority, store = Authority(), CertificateStore()
    chain, key = authority.issue("one").write(tmp_path)
    files = FallbackFiles(store, chain, key, look_s=0.01)
    files.load()
    watching = asyncio.create_task(files.run())
    try:
        with caplog.at_level(logging.WARNING):
            key.write_bytes(authority.issue("two").key_pem)
            await until(lambda: "fallback certificate not loaded" in caplog.text)
        assert await presented(store, "bar.com") == "one"
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


def test_files_that_are_no_pair_stop_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="default_certificate_file"):
        FallbackFiles(CertificateStore(), tmp_path / "absent", tmp_path / "absent").load()


def test_file_settings_go_together() -> None:
    with pytest.raises(ValueError, match="go together"):
        GatewaySettings(default_certificate_file=Path("chain.pem"))


def test_end_of_each_certificate_is_exposed() -> None:
    ends = datetime(2030, 1, 2, tzinfo=UTC)
    issued: Issued = Authority().issue("own", ends=ends)
    store = CertificateStore()
    store.set_certificates([entry("foo.com", key="c1/default/foo", not_after="2031-01-01T00:00:00Z")])
    store.set_fallback(issued.chain_pem, issued.key_pem)
    registry = CollectorRegistry()
    registry.register(ProxyCollector(TlsFamilies(store)))
    found = {
        key: registry.get_sample_value("headgate_certificate_not_after_seconds", {"certificate": key})
        for key in ("c1/default/foo", "default")
    }
    assert found == {"c1/default/foo": datetime(2031, 1, 1, tzinfo=UTC).timestamp(), "default": ends.timestamp()}


async def test_handshakes_are_exposed() -> None:
    store = CertificateStore()
    async with tls_listener(store) as listener:
        await listener.talk("foo.com")
        weak = client_context(maximum_version=ssl.TLSVersion.TLSv1_2)
        weak.set_ciphers("ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await listener.open("foo.com", weak)
    text = exposed(store)
    assert "headgate_tls_handshakes_started_total 2.0" in text
    assert 'headgate_tls_handshakes_total{session="new"} 1.0' in text
    assert 'headgate_tls_handshake_failures_total{reason="NO_SHARED_CIPHER"} 1.0' in text
