"""What upstreams are told of a request, and what clients claim of it: `test/e2e/settings/enable_real_ip.go`."""

from collections.abc import AsyncIterator

import pytest

from fakes.translator.applied import World, world
from fakes.translator.deltas import ingress
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, headers, options
from headgate.gateway.proxy.config import ProxyConfig

CLAIMS = {
    "X_Forwarded_Port": "1234",
    "X_Forwarded_Proto": "myproto",
    "X_Forwarded_For": "1.2.3.4",
    "X_Forwarded_Host": "myhost",
}
FORGED = {"X_Scheme": "gopher", "X_Forwarded_Scheme": "gopher", "X_Original_Forwarded_For": "6.6.6.6"}


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`, with an Ingress of ingress-nginx."""
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS, classed(ssl_redirect="false"))
        yield made


@pytest.mark.parametrize("more", [{}, FORGED])
@pytest.mark.parametrize("annotations", [{}, {"enable_cors": "true"}])
async def test_what_a_client_claims_is_told_as_its_claim_alone(
    one: World, more: dict[str, str], annotations: dict[str, str]
) -> None:
    one.proxy.apply(options(enable_real_ip="false"), classed(**annotations))
    assert await one.proxy.status(**CLAIMS, **more) == 200
    sent = headers(one)
    expected = {
        "host": "a.example",
        "x-forwarded-host": "a.example",
        "x-forwarded-for": "127.0.0.1",
        "x-forwarded-port": str(one.proxy.proxy.port),
        "x-forwarded-proto": "http",
        "x-forwarded-scheme": "http",
        "x-scheme": "http",
        "x-original-forwarded-for": "1.2.3.4",
        "x-original-forwarded-host": "myhost",
    }
    assert {name: sent[name] for name in expected} == expected
    assert b"gopher" not in one.servers["one"].heads[-1]


async def test_claims_are_left_out_where_there_are_none(one: World) -> None:
    assert (await one.proxy.proxy.secure(**FORGED)).status == 200
    sent = headers(one)
    assert (sent["x-scheme"], sent["x-forwarded-scheme"]) == ("https", "https")
    assert not [name for name in sent if name.startswith("x-original-")]


async def test_claims_of_trusted_proxies_are_told_too() -> None:
    async with world("one", settings=ADOPTED, config=ProxyConfig(trusted_proxies=("127.0.0.0/8",))) as made:
        made.proxy.apply(NGINX_CLASS, classed(ssl_redirect="false"))
        await made.proxy.status(X_Forwarded_Proto="https", X_Forwarded_For="1.2.3.4", X_Scheme="gopher")
        sent = headers(made)
        assert (sent["x-scheme"], sent["x-forwarded-scheme"], sent["x-forwarded-proto"]) == ("https",) * 3
        assert sent["x-original-forwarded-for"] == "1.2.3.4"
        assert made.servers["one"].heads[-1].lower().count(b"x-scheme") == 1


async def test_other_ingresses_have_no_such_headers() -> None:
    async with world("one") as made:
        made.proxy.apply(ingress("plain", host="a.example", service="one"))
        await made.proxy.status(**CLAIMS, **FORGED)
        assert not [
            name for name in headers(made) if name.startswith(("x-original-", "x-scheme", "x-forwarded-scheme"))
        ]


# use-forwarded-headers


@pytest.mark.parametrize(
    ("claimed", "host"),
    [("myhost", "myhost"), ("myhost.com, another.host,example.net", "myhost.com"), ("my host", "a.example")],
)
async def test_first_forwarded_host_goes_to_the_upstream_and_the_requests_own_chooses_the_route(
    one: World, claimed: str, host: str
) -> None:
    one.proxy.apply(options(use_forwarded_headers="true"))
    assert await one.proxy.status(X_Forwarded_Host=claimed, X_Forwarded_Port="1234", X_Forwarded_For="1.2.3.4") == 200
    sent = headers(one)
    assert (sent["host"], sent["x-forwarded-host"], sent["x-original-forwarded-host"]) == (host, host, claimed)
    assert (sent["x-forwarded-port"], sent["x-forwarded-for"].split(", ")[0]) == ("1234", "1.2.3.4")
    one.proxy.apply(options(use_forwarded_headers="false"))
    await one.proxy.status(X_Forwarded_Host=claimed)
    assert (headers(one)["host"], headers(one)["x-forwarded-host"]) == ("a.example", "a.example")


async def test_redirects_to_https_name_the_forwarded_host_without_its_port(one: World) -> None:
    one.proxy.apply(options(use_forwarded_headers="true"), classed(force_ssl_redirect="true"))
    got = await one.proxy.get(X_Forwarded_Host="example.com:80")
    assert (got.status, got["location"]) == (308, "https://example.com")


async def test_vhost_of_an_ingress_goes_before_the_forwarded_host(one: World) -> None:
    one.proxy.apply(options(use_forwarded_headers="true"), classed(upstream_vhost="v.example"))
    await one.proxy.get(X_Forwarded_Host="example.com")
    assert (headers(one)["host"], headers(one)["x-forwarded-host"]) == ("v.example", "example.com")


async def test_real_ip_believes_the_address_alone(one: World) -> None:
    one.proxy.apply(options(enable_real_ip="true"))
    assert await one.proxy.status(**CLAIMS) == 200
    sent = headers(one)
    assert (sent["host"], sent["x-forwarded-host"], sent["x-forwarded-proto"]) == ("a.example", "a.example", "http")
    assert (sent["x-forwarded-for"], sent["x-forwarded-port"]) == ("1.2.3.4", str(one.proxy.proxy.port))
