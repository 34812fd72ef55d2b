"""Canaries are spoken to as the main Ingress says, as the location of ingress-nginx is the main one's."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from fakes.gateway.proxied import answering
from fakes.gateway.served import HOST, named, origins
from fakes.gateway.tls import Authority, SelfSigned
from fakes.translator.applied import World, pair, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, headers

AUTHORITY = Authority()
SELF_SIGNED = SelfSigned(HOST)
MUTUAL = {"proxy_ssl_secret": "default/mutual", "proxy_ssl_verify": "on", "proxy_ssl_name": HOST}


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[World]:
    """Services `one` and `two` over plain HTTP, and `tls-one` and `tls-two` over TLS."""
    context = SELF_SIGNED.server_context()
    async with (
        origins(answering(named(b"tls-one")), tls=context) as (first,),
        origins(answering(named(b"tls-two")), tls=context) as (second,),
        world("one", "two", settings=ADOPTED) as made,
    ):
        made.proxy.proxy.present(HOST, AUTHORITY.issue(HOST, x509.DNSName(HOST)))
        made.proxy.apply(NGINX_CLASS)
        for name, server in (("tls-one", first), ("tls-two", second)):
            made.proxy.apply(service(name), endpoint_slice(name, "127.0.0.1", port=server.port))
        yield made


def main(**more: Any) -> Any:
    return classed(**{"to": "tls-one", **more})


def canary(**more: Any) -> Any:
    return classed("canary", **{"to": "tls-two", "canary": "true", "canary_by_header": "Test", **more})


async def answers(made: World, path: str = "/") -> list[str]:
    """Return who answers a request for the main Ingress, and one for its canary; `502` where the gateway does."""
    found = [await made.proxy.get(path, Test=value) for value in ("never", "always")]
    return [got.body.decode() if got.status == 200 else str(got.status) for got in found]


@pytest.mark.parametrize("canary_first", [False, True])
async def test_a_canary_is_spoken_to_over_tls_if_the_main_one_is(both: World, canary_first: bool) -> None:
    order = [main(backend_protocol="HTTPS"), canary()]
    for made in reversed(order) if canary_first else order:
        both.proxy.apply(made)
    assert await answers(both) == ["tls-one", "tls-two"]


async def test_the_protocol_of_a_canary_itself_does_not_count(both: World) -> None:
    both.proxy.apply(main(to="one"), canary(to="two", backend_protocol="HTTPS"))
    assert await answers(both) == ["one", "two"]


async def test_a_canary_follows_a_main_ingress_that_changes(both: World) -> None:
    both.proxy.apply(main(backend_protocol="HTTPS"), canary())
    both.proxy.apply(main(to="one"), canary(to="two"))
    assert await answers(both) == ["one", "two"]
    both.proxy.apply(main(backend_protocol="HTTPS"), canary())
    assert await answers(both) == ["tls-one", "tls-two"]
    both.proxy.delete(main())
    assert await answers(both) == ["404", "404"]


async def test_each_path_of_a_canary_follows_the_ingress_that_has_it(both: World) -> None:
    both.proxy.apply(main(path="/tls", backend_protocol="HTTPS"), classed("plain", path="/plain", to="one"))
    backends = {"/tls": "tls-two", "/plain": "two"}
    paths = [
        {"path": path, "pathType": "Prefix", "backend": {"service": {"name": name, "port": {"number": 80}}}}
        for path, name in backends.items()
    ]
    both.proxy.apply(canary(spec={"ingressClassName": "nginx", "rules": [{"host": HOST, "http": {"paths": paths}}]}))
    assert [await answers(both, path) for path in backends] == [["tls-one", "tls-two"], ["one", "two"]]


async def test_an_ingress_of_another_host_says_nothing_of_a_canary(both: World) -> None:
    both.proxy.apply(main(to="one"), main(name="other", host="other.example", backend_protocol="HTTPS"))
    both.proxy.apply(canary(to="two"))
    assert await answers(both) == ["one", "two"]


async def test_a_canary_of_a_default_backend_follows_it(both: World) -> None:
    def default(name: str) -> dict[str, Any]:
        return {"ingressClassName": "nginx", "defaultBackend": {"service": {"name": name, "port": {"number": 80}}}}

    both.proxy.apply(main(spec=default("tls-one"), backend_protocol="HTTPS"), canary(spec=default("tls-two")))
    assert await answers(both) == ["tls-one", "tls-two"]


async def test_a_canary_of_auto_http_is_spoken_to_as_the_client_speaks(both: World) -> None:
    both.proxy.apply(main(to="one", backend_protocol="AUTO_HTTP", ssl_redirect="false"), canary(to="two"))
    assert await answers(both) == ["one", "two"]
    both.proxy.apply(main(backend_protocol="AUTO_HTTP", ssl_redirect="false"), canary())
    assert (await both.proxy.proxy.secure(Test="always")).body == b"tls-two"
    assert (await both.proxy.proxy.secure(Test="never")).body == b"tls-one"


async def test_a_canary_gets_the_host_that_the_main_one_says(both: World) -> None:
    both.proxy.apply(main(to="one", upstream_vhost="inner.example"), canary(to="two", upstream_vhost="other.example"))
    assert await answers(both) == ["one", "two"]
    assert [headers(both, name)["host"] for name in ("one", "two")] == ["inner.example", "inner.example"]


async def test_a_canarys_certificate_is_checked_as_the_main_ones(both: World) -> None:
    made = pair("mutual", AUTHORITY.issue("gateway", x509.DNSName("gateway")), "gateway")
    made["sealed"]["authorities_pem"] = AUTHORITY.pem.decode()
    both.proxy.apply(made, main(backend_protocol="HTTPS", **MUTUAL), canary())
    assert await answers(both) == ["502", "502"]
    both.proxy.apply(main(backend_protocol="HTTPS"), canary(**MUTUAL))
    assert await answers(both) == ["tls-one", "tls-two"]
