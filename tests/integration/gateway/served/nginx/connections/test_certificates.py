"""Certificates that come, change and go under connections (`test/e2e/lua/dynamic_certificates.go`, `ssl/*.go`,
`settings/default_ssl_certificate.go`).

For names without one the gateway presents a certificate of its own, as ingress-nginx does.
"""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest
from cryptography import x509

from fakes.gateway.served import Served, asking, read_answer
from fakes.gateway.tls import Authority, unverified
from fakes.translator.applied import World, pair, world
from fakes.translator.deltas import tls_secret
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, options
from headgate.gateway.tls import FALLBACK_NAME
from headgate.translator.world.settings import NginxSettings, TranslationSettings

HOST = "foo.example"
AUTHORITY = Authority()


class Presented(NamedTuple):
    """A certificate that a client got, and the status of its request."""

    name: str
    serial: int
    status: int


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`, which has adopted the class of ingress-nginx."""
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS)
        yield made


async def presented(proxy: Served, name: str = HOST, host: str = "") -> Presented:
    client = await proxy.connect(unverified(), name)
    der = client.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    await client.send(asking(host=host or name))
    certificate = x509.load_der_x509_certificate(der)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    status = (await read_answer(client)).status
    return Presented(names.get_values_for_type(x509.DNSName)[0], certificate.serial_number, status)


def with_tls(host: str = HOST, **annotations: str) -> Any:
    made = classed(host=host, **annotations)
    made["spec"]["tls"] = [{"hosts": [HOST], "secretName": "cert"}]
    return made


def certificate(*names: str) -> Any:
    names = names or (HOST,)
    return pair("cert", AUTHORITY.issue(names[0], *map(x509.DNSName, names)), *names)


async def name_and_status(made: World, name: str = HOST) -> tuple[str, int]:
    found = await presented(made.proxy.proxy, name)
    return found.name, found.status


async def test_a_certificate_comes_with_the_tls_entry(one: World) -> None:
    one.proxy.apply(classed(host=HOST))
    assert await one.proxy.status(host=HOST) == 200
    one.proxy.apply(certificate(), with_tls())
    assert await name_and_status(one) == (HOST, 200)


async def test_a_secret_may_come_after_its_ingress(one: World) -> None:
    manifest = with_tls()
    one.proxy.apply(manifest)
    assert await name_and_status(one) == (FALLBACK_NAME, 200)
    assert one.proxy.errors(manifest) == ["SecretNotFound"]
    one.proxy.apply(certificate())
    assert await name_and_status(one) == (HOST, 200)
    assert one.proxy.errors(manifest) == []


async def test_a_name_may_end_with_a_dot(one: World) -> None:
    one.proxy.apply(certificate(), with_tls())
    assert await name_and_status(one, f"{HOST}.") == (HOST, 200)


async def test_a_certificate_that_is_renewed_is_presented_to_the_next_connection(one: World) -> None:
    one.proxy.apply(certificate(), with_tls())
    before = await presented(one.proxy.proxy)
    one.proxy.apply(certificate())
    after = await presented(one.proxy.proxy)
    assert (before.name, before.status) == (after.name, after.status) == (HOST, 200)
    assert before.serial != after.serial


async def test_connections_outlive_the_certificate_that_they_began_with(one: World) -> None:
    one.proxy.apply(certificate(), with_tls())
    client = await one.proxy.proxy.connect(unverified(), HOST)
    for _ in range(3):
        await client.send(asking(host=HOST))
        assert (await read_answer(client)).status == 200
        one.proxy.apply(certificate())
    one.proxy.delete(certificate())
    await client.send(asking(host=HOST))
    assert (await read_answer(client)).status == 200


async def test_a_secret_that_is_deleted_leaves_the_gateways_own_certificate(one: World) -> None:
    one.proxy.apply(certificate(), with_tls())
    assert await name_and_status(one) == (HOST, 200)
    one.proxy.delete(certificate())
    assert await name_and_status(one) == (FALLBACK_NAME, 200)


async def test_a_host_that_changes_leaves_the_certificate_to_the_one_before(one: World) -> None:
    one.proxy.apply(certificate(), with_tls())
    one.proxy.apply(with_tls("foo2.example"))
    assert await name_and_status(one, "foo2.example") == (FALLBACK_NAME, 200)
    assert await one.proxy.status(host=HOST) == 404


async def test_without_the_tls_entry_plain_requests_are_served_again(one: World) -> None:
    one.proxy.apply(certificate(), with_tls())
    assert await one.proxy.status(host=HOST) == 308
    one.proxy.apply(classed(host=HOST))
    assert await one.proxy.status(host=HOST) == 200
    assert await name_and_status(one) == (FALLBACK_NAME, 200)


# ssl/*.go, defaultbackend/ssl.go


async def test_plain_requests_are_redirected_without_the_secret_too(one: World) -> None:
    one.proxy.apply(with_tls())
    got = await one.proxy.get(host=HOST)
    assert (got.status, got["location"]) == (308, f"https://{HOST}")


async def test_a_slash_at_the_end_is_kept_if_that_is_wanted(one: World) -> None:
    one.proxy.apply(with_tls(ssl_redirect="true", preserve_trailing_slash="true"))
    assert (await one.proxy.get(host=HOST))["location"] == f"https://{HOST}/"
    one.proxy.apply(with_tls(), options(preserve_trailing_slash="true"))
    assert (await one.proxy.get("/a/?b", host=HOST))["location"] == f"https://{HOST}/a/?b"


async def test_a_secret_that_cannot_be_used_is_named(one: World) -> None:
    manifest = with_tls()
    one.proxy.apply(tls_secret("cert", HOST, problem="has no tls.crt"), manifest)
    assert await name_and_status(one) == (FALLBACK_NAME, 200)
    assert "Secret default/cert cannot be used: has no tls.crt" in one.proxy.messages(manifest)


async def test_a_secret_that_nothing_refers_to_changes_nothing(one: World) -> None:
    one.proxy.apply(certificate(), with_tls())
    before = await presented(one.proxy.proxy)
    dummy = {**tls_secret("dummy", HOST, problem="has no tls.crt"), "type": "Opaque"}
    one.proxy.apply(dummy)
    one.proxy.apply({**dummy, "sealed": {"values": {}}})
    assert await presented(one.proxy.proxy) == before
    assert one.proxy.messages(with_tls()) == ""


@pytest.mark.parametrize("name", ["127.0.0.1", "foo.bar.example"])
async def test_names_of_no_ingress_get_the_gateways_own_certificate(one: World, name: str) -> None:
    one.proxy.apply(certificate(), with_tls())
    assert await name_and_status(one, name) == (FALLBACK_NAME, 404)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("host", ["127.0.0.1", "foo.bar.example"])
@pytest.mark.parametrize("path", ["/", "/demo"])
async def test_hosts_of_no_ingress_are_a_404(one: World, method: str, host: str, path: str) -> None:
    asked = {"path": path, "method": method, "host": host}
    assert (await one.proxy.get(**asked)).status == 404
    assert (await one.proxy.proxy.secure(**asked)).status == 404


@pytest.mark.parametrize(
    "entry", [{"secretName": "cert"}, {"hosts": [HOST]}, {"hosts": ["other.example"], "secretName": "cert"}]
)
async def test_any_tls_entry_redirects_all_hosts_of_its_ingress(one: World, entry: dict[str, Any]) -> None:
    made = classed(host=HOST)
    made["spec"]["rules"] += classed(host="second.example")["spec"]["rules"]
    one.proxy.apply(made, classed("third", host="other.example"))
    assert [await one.proxy.status(host=host) for host in (HOST, "second.example", "other.example")] == [200] * 3
    made["spec"]["tls"] = [entry]
    one.proxy.apply(made)
    assert [await one.proxy.status(host=host) for host in (HOST, "second.example", "other.example")] == [308, 308, 200]


async def test_an_ingress_without_a_host_is_not_redirected(one: World) -> None:
    made = classed(host="")
    made["spec"]["tls"] = [{"secretName": "cert"}]
    one.proxy.apply(certificate(), made)
    assert await one.proxy.status(host=HOST) == 200
    assert await name_and_status(one) == (HOST, 200)


# default-ssl-certificate

DEFAULT = TranslationSettings(
    controller_names=ADOPTED.controller_names, nginx=NginxSettings(default_certificate="default/my-custom-cert")
)
CUSTOM = "custom.example"


@pytest.fixture
async def custom() -> AsyncIterator[World]:
    """A proxy with a default certificate, before a Service `one`."""
    async with world("one", settings=DEFAULT) as made:
        secret = pair("my-custom-cert", AUTHORITY.issue(CUSTOM, x509.DNSName(CUSTOM)), CUSTOM)
        made.proxy.apply(NGINX_CLASS, options(), secret)
        yield made


async def test_the_default_certificate_is_presented_without_any_ingress_and_for_one_of_all_hosts(custom: World) -> None:
    assert await name_and_status(custom) == (CUSTOM, 404)
    backend = {"service": {"name": "one", "port": {"number": 80}}}
    custom.proxy.apply(classed("catch-all", spec={"defaultBackend": backend}))
    assert await name_and_status(custom) == (CUSTOM, 200)


async def test_the_default_certificate_is_presented_where_that_of_the_host_is_for_other_names(custom: World) -> None:
    custom.proxy.apply(certificate("not.example"), with_tls())
    assert await name_and_status(custom) == (CUSTOM, 200)
    assert "the default certificate is presented instead" in custom.proxy.messages(with_tls())
    custom.proxy.apply(certificate("not.example", HOST))
    assert await name_and_status(custom) == ("not.example", 200)
    custom.proxy.delete(certificate())
    assert await name_and_status(custom) == (CUSTOM, 200)
