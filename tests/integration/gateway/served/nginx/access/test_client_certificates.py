"""What the end-to-end tests of ingress-nginx say of client certificates (`test/e2e/annotations/authtls.go`)."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from fakes.gateway.served import HOST, asking, read_answer
from fakes.gateway.tls import Authority, unverified
from fakes.gateway.tls_listener import client_context
from fakes.translator.applied import World, pair, world
from fakes.translator.deltas import tls_secret
from fakes.translator.nginx import nginx_ingress, options

AUTHORITY = Authority()
SECRET = {"auth_tls_secret": "default/authorities"}


def authorities(authority: Authority = AUTHORITY, **more: str) -> Any:
    return tls_secret("authorities", authorities_pem=authority.pem.decode(), **more)


@pytest.fixture
async def shop() -> AsyncIterator[World]:
    """A proxy with a certificate, before a Service `one`, and the Secret with the clients' authority."""
    async with world("one") as made:
        made.proxy.proxy.present(HOST, Authority("server").issue(HOST, x509.DNSName(HOST)))
        made.proxy.apply(authorities())
        yield made


def client(folder: Path, authority: Authority = AUTHORITY, name: str = "authtls") -> ssl.SSLContext:
    """A client with a certificate."""
    return client_context(authority.issue(name).write(folder))


async def status(made: World, context: ssl.SSLContext | None = None) -> int:
    return (await made.proxy.proxy.secure(context)).status


def sent(made: World) -> bytes:
    return made.servers["one"].heads[-1]


async def test_a_certificate_is_needed_and_a_bad_one_or_none_is_a_400(shop: World, tmp_path: Path) -> None:
    shop.proxy.apply(nginx_ingress())
    assert await status(shop) == 200
    shop.proxy.apply(nginx_ingress(**SECRET))
    assert await status(shop) == 400
    assert await status(shop, client(tmp_path, Authority("other"))) == 400
    assert await status(shop, client(tmp_path)) == 200
    assert b"\r\nssl-client-verify: SUCCESS\r\nssl-client-subject-dn: CN=authtls\r\n" in sent(shop)
    assert b"ssl-client-cert" not in sent(shop)


@pytest.mark.parametrize("more", [{}, {"auth_tls_verify_depth": "2"}])
async def test_none_is_needed_if_verification_is_off(shop: World, tmp_path: Path, more: dict[str, str]) -> None:
    shop.proxy.apply(nginx_ingress(**SECRET, auth_tls_verify_client="on", **more))
    assert [await status(shop), await status(shop, client(tmp_path))] == [400, 200]
    shop.proxy.apply(nginx_ingress(**SECRET, auth_tls_verify_client="off", **more))
    assert [await status(shop), await status(shop, client(tmp_path))] == [200, 200]
    shop.proxy.apply(nginx_ingress())
    assert await status(shop) == 200


async def test_an_optional_certificate_may_be_missing_and_must_not_be_bad(shop: World, tmp_path: Path) -> None:
    shop.proxy.apply(nginx_ingress(**SECRET, auth_tls_verify_client="optional"))
    assert await status(shop) == 200
    assert b"\r\nssl-client-verify: NONE\r\n" in sent(shop)
    assert await status(shop, client(tmp_path, Authority("other"))) == 400


async def test_a_certificate_of_unknown_authorities_is_told_with_optional_no_ca(shop: World, tmp_path: Path) -> None:
    shop.proxy.apply(nginx_ingress(**SECRET, auth_tls_verify_client="optional_no_ca"))
    assert await status(shop) == 200
    assert await status(shop, client(tmp_path, Authority("other"))) == 200
    assert b"\r\nssl-client-verify: FAILED:unable to verify the first certificate\r\n" in sent(shop)


async def test_an_unknown_mode_needs_a_certificate(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**SECRET, auth_tls_verify_client="sometimes"))
    assert await status(shop) == 400


async def test_clients_without_a_certificate_are_sent_to_the_error_page(shop: World, tmp_path: Path) -> None:
    shop.proxy.apply(nginx_ingress(**SECRET, auth_tls_error_page="http://a.example/error"))
    got = await shop.proxy.proxy.secure()
    assert (got.status, got["location"]) == (302, "http://a.example/error")
    assert await status(shop, client(tmp_path)) == 200


async def test_the_certificate_is_passed_on_url_encoded(shop: World, tmp_path: Path) -> None:
    shop.proxy.apply(nginx_ingress(**SECRET, auth_tls_pass_certificate_to_upstream="true"))
    assert await status(shop) == 400
    assert await status(shop, client(tmp_path)) == 200
    assert b"\r\nssl-client-cert: -----BEGIN%20CERTIFICATE-----%0A" in sent(shop)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("CN=notgonnamatch", 403), ("CN=authtls", 200), ("CN=(itwillmatch|withthenextoption|authtls)", 200)],
)
async def test_the_subject_has_to_match(shop: World, tmp_path: Path, pattern: str, expected: int) -> None:
    shop.proxy.apply(nginx_ingress(**SECRET, auth_tls_match_cn=pattern))
    assert await status(shop, client(tmp_path)) == expected


async def test_a_changed_pattern_counts_at_once(shop: World, tmp_path: Path) -> None:
    shop.proxy.apply(nginx_ingress(**SECRET, auth_tls_match_cn="CN=notvalid"))
    assert await status(shop, client(tmp_path)) == 403
    shop.proxy.apply(nginx_ingress(**SECRET, auth_tls_match_cn="CN=authtls"))
    assert await status(shop, client(tmp_path)) == 200


@pytest.mark.parametrize("pattern", ["authtls", "CN=(", 'CN=a"; return 200'])
async def test_a_bad_pattern_drops_the_ingress(shop: World, tmp_path: Path, pattern: str) -> None:
    shop.proxy.apply(nginx_ingress(**SECRET, auth_tls_match_cn=pattern))
    assert await status(shop, client(tmp_path)) == 404


@pytest.mark.parametrize(("depth", "expected"), [("1", 400), ("2", 200)])
async def test_a_chain_may_have_as_many_certificates_as_the_depth(
    shop: World, tmp_path: Path, depth: str, expected: int
) -> None:
    shop.proxy.apply(nginx_ingress(**SECRET, auth_tls_verify_depth=depth))
    below = Authority("second", Authority("first", AUTHORITY))
    assert await status(shop, client(tmp_path, below)) == expected


@pytest.mark.parametrize("named", ["default/nowhere", "nowhere", "other/authorities"])
async def test_a_secret_that_cannot_be_used_closes_the_paths(shop: World, tmp_path: Path, named: str) -> None:
    shop.proxy.apply(nginx_ingress(auth_tls_secret=named))
    assert await status(shop, client(tmp_path)) == 503


async def test_a_changed_secret_counts_at_once(shop: World, tmp_path: Path) -> None:
    other = Authority("other")
    shop.proxy.apply(nginx_ingress(**SECRET))
    shop.proxy.apply(authorities(other))
    assert [await status(shop, client(tmp_path)), await status(shop, client(tmp_path, other))] == [400, 200]


async def test_ciphers_of_the_host_are_those_that_are_said(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(ssl_ciphers="ECDHE-ECDSA-AES256-GCM-SHA384"))
    context = client_context(maximum_version=ssl.TLSVersion.TLSv1_2)
    connection = await shop.proxy.proxy.connect(context)
    assert connection.writer.get_extra_info("cipher")[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"


async def test_a_bad_list_of_ciphers_drops_the_ingress(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(ssl_ciphers="a b"))
    assert await status(shop) == 404


async def test_plain_http_is_redirected_but_for_orders_of_certificates(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**SECRET))
    got = await shop.proxy.get("/x?a=b", host=f"{HOST}:80")
    assert (got.status, got["location"]) == (308, f"https://{HOST}/x?a=b")
    assert await shop.proxy.status("/.well-known/acme-challenge/token") == 200
    for path in ("/other/.well-known/acme-challenge/token", "/.well-known/acme-challenge/token/x"):
        assert await shop.proxy.status(path) == 308


async def test_plain_http_is_refused_where_it_is_not_redirected(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**SECRET, ssl_redirect="false"))
    assert await shop.proxy.status() == 400


async def test_an_ingress_of_the_host_that_says_nothing_leaves_the_certificate_needed(
    shop: World, tmp_path: Path
) -> None:
    versions = options(ssl_protocols="TLSv1.3")
    older = nginx_ingress("older", path="/older", created="2020-01-01T00:00:00Z", enable_access_log="true")
    needing = nginx_ingress(**SECRET, created="2021-01-01T00:00:00Z")
    shop.proxy.apply(versions, older, needing)
    assert shop.proxy.errors(needing) == []
    assert [await status(shop), await status(shop, client(tmp_path))] == [400, 200]
    assert (await shop.proxy.proxy.secure(path="/older")).status == 400


async def test_other_settings_of_tls_leave_the_certificate_needed(shop: World, tmp_path: Path) -> None:
    versions = options(ssl_protocols="TLSv1.2")
    shop.proxy.apply(versions, nginx_ingress(**SECRET))
    assert [await status(shop), await status(shop, client(tmp_path))] == [400, 200]
    ours = nginx_ingress(**SECRET)
    ours["metadata"]["annotations"]["headgate.dev/min-tls-version"] = "1.3"
    shop.proxy.apply(ours)
    assert [await status(shop), await status(shop, client(tmp_path))] == [400, 200]
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await status(shop, client_context(maximum_version=ssl.TLSVersion.TLSv1_2))


@pytest.mark.parametrize("kind", ["Opaque", "kubernetes.io/tls"])
async def test_one_secret_may_have_the_certificate_of_the_host_and_the_authorities(tmp_path: Path, kind: str) -> None:
    issued = Authority("server").issue(HOST, x509.DNSName(HOST))
    both = pair("both", issued, HOST) | {"type": kind}
    both["sealed"]["authorities_pem"] = AUTHORITY.pem.decode()
    async with world("one") as made:
        ingress = nginx_ingress(auth_tls_secret="default/both")
        ingress["spec"]["tls"] = [{"hosts": [HOST], "secretName": "both"}]
        made.proxy.apply(both, ingress)
        assert made.proxy.problems(ingress) == []
        for context, expected in ((unverified(), 400), (client(tmp_path), 200)):
            connection = await made.proxy.proxy.connect(context)
            presented = connection.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            assert x509.load_der_x509_certificate(presented) == issued.certificate
            await connection.send(asking())
            assert (await read_answer(connection)).status == expected
