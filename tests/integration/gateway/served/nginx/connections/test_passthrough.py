"""TLS that goes to Services as it is: `test/e2e/settings/ssl_passthrough.go`."""

import ssl
from collections.abc import AsyncIterator

import pytest
from cryptography import x509

from fakes.gateway.proxied import answering
from fakes.gateway.served import Got, asking, named, origins, read_answer
from fakes.gateway.tls import Authority, SelfSigned, unverified
from fakes.translator.applied import Applied, World, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.nginx import NGINX_CLASS, classed
from headgate.translator.world.settings import NginxSettings, TranslationSettings

PASSING = TranslationSettings(
    controller_names=frozenset({"k8s.io/ingress-nginx"}), nginx=NginxSettings(enable_ssl_passthrough=True)
)
PASSED, OTHER = "testpassthrough.com", "noannotationnopassthrough.com"
OF_SERVICE = SelfSigned(PASSED)


@pytest.fixture
async def shop() -> AsyncIterator[World]:
    """A proxy with a certificate for `OTHER`, a plain Service `one`, and `secure`, which speaks TLS itself."""
    async with (
        origins(answering(named(b"secure")), tls=OF_SERVICE.server_context()) as (secure,),
        world("one", settings=PASSING) as made,
    ):
        made.proxy.proxy.present(OTHER, Authority("gateway").issue(OTHER, x509.DNSName(OTHER)))
        made.proxy.apply(NGINX_CLASS, service("secure"), endpoint_slice("secure", "127.0.0.1", port=secure.port))
        yield made


def passed(**more: str) -> object:
    return classed("passed", host=PASSED, to="secure", ssl_passthrough="true", **more)


async def ask(proxy: Applied, name: str, host: str = "", context: ssl.SSLContext | None = None) -> Got:
    """Ask over TLS, with a server name and a host."""
    client = await proxy.proxy.connect(context or unverified(), name)
    await client.send(asking(host=host or name))
    return await read_answer(client)


async def test_annotated_host_is_passed_through_and_others_are_served_here(shop: World) -> None:
    shop.proxy.apply(passed(), classed("other", host=OTHER))
    trusting = OF_SERVICE.client_context()
    assert (await ask(shop.proxy, PASSED, context=trusting)).body == b"secure"
    assert (await ask(shop.proxy, OTHER)).body == b"one"
    assert (await ask(shop.proxy, "unknown.com")).status == 404
    with pytest.raises(ssl.SSLCertVerificationError):
        await ask(shop.proxy, OTHER, context=trusting)


async def test_host_is_passed_through_as_long_as_its_annotation_and_its_ingress_are_there(shop: World) -> None:
    trusting = OF_SERVICE.client_context()
    shop.proxy.apply(classed("passed", host=PASSED))
    assert (await ask(shop.proxy, PASSED)).body == b"one"
    shop.proxy.apply(passed())
    assert (await ask(shop.proxy, PASSED, context=trusting)).body == b"secure"
    shop.proxy.apply(classed("passed", host=PASSED))
    assert (await ask(shop.proxy, PASSED)).body == b"one"
    shop.proxy.apply(passed())
    shop.proxy.delete(passed())
    assert (await ask(shop.proxy, PASSED)).status == 404


async def test_annotation_is_ignored_without_the_setting() -> None:
    settings = TranslationSettings(controller_names=PASSING.controller_names)
    async with world("one", settings=settings) as made:
        manifest = classed("passed", host=PASSED, ssl_passthrough="true")
        made.proxy.apply(NGINX_CLASS, manifest)
        assert (await ask(made.proxy, PASSED)).body == b"one"
        assert "nginx_enable_ssl_passthrough" in made.proxy.messages(manifest)
