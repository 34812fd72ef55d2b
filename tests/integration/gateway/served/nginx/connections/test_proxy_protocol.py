"""PROXY headers that load balancers send ahead of connections: `test/e2e/settings/proxy_protocol.go`."""

from collections.abc import AsyncIterator

import pytest
from cryptography import x509

from fakes.gateway.ports import free_port
from fakes.gateway.served import HOST, Got, asking, read_answer
from fakes.gateway.tls import Authority, unverified
from fakes.translator.applied import World, world
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, headers, nginx_ingress, options
from fakes.waiting import until
from headgate.gateway.proxy.config import ProxyConfig

LINE = b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 %d\r\n"


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy with a certificate, before a Service `one` with an Ingress; its connections begin with PROXY headers."""
    async with world("one", settings=ADOPTED) as made:
        made.proxy.proxy.present(HOST, Authority("server").issue(HOST, x509.DNSName(HOST)))
        made.proxy.apply(NGINX_CLASS, classed(), options(use_proxy_protocol="true"))
        yield made


async def ask(made: World, port: int, **more: str) -> Got:
    """Ask over a connection that a client made to a port of the load balancer."""
    client = await made.proxy.proxy.connect()
    await client.send(LINE % port + asking(**more))
    return await read_answer(client)


@pytest.mark.parametrize(("port", "scheme"), [(1234, "http"), (80, "http"), (443, "https")])
async def test_upstream_is_told_the_port_and_the_scheme_that_goes_with_it(one: World, port: int, scheme: str) -> None:
    assert (await ask(one, port)).status == 200
    sent = headers(one)
    assert (sent["host"], sent["x-forwarded-port"], sent["x-forwarded-proto"]) == (HOST, str(port), scheme)
    assert (sent["x-forwarded-for"], sent["x-real-ip"]) == ("192.168.0.1", "192.168.0.1")


async def test_connections_over_tls_begin_with_the_header_too(one: World) -> None:
    client = await one.proxy.proxy.connect(port=one.proxy.proxy.https_port)
    await client.send(LINE % 1234)
    await client.writer.start_tls(unverified(), server_hostname=HOST)
    await client.send(asking())
    assert (await read_answer(client)).status == 200
    sent = headers(one)
    assert (sent["x-forwarded-port"], sent["x-forwarded-proto"], sent["x-scheme"]) == ("1234", "https", "https")
    assert (sent["host"], sent["x-forwarded-for"]) == (HOST, "192.168.0.1")


async def test_requests_that_came_to_port_443_are_not_redirected_to_it(one: World) -> None:
    one.proxy.apply(classed(force_ssl_redirect="true"))
    assert [(await ask(one, port)).status for port in (80, 443)] == [308, 200]


async def test_port_443_counts_as_https_whatever_is_forwarded(one: World) -> None:
    one.proxy.apply(options(use_proxy_protocol="true", use_forwarded_headers="true"))
    for port, scheme in ((443, "https"), (80, "http")):
        assert (await ask(one, port, X_Forwarded_Proto="http", X_Forwarded_For="1.2.3.4")).status == 200
        sent = headers(one)
        assert (sent["x-forwarded-proto"], sent["x-scheme"], sent["x-real-ip"]) == (scheme, scheme, "1.2.3.4")


async def test_claims_of_clients_are_told_as_such(one: World) -> None:
    assert (await ask(one, 80, X_Forwarded_For="1.2.3.4", X_Forwarded_Host="myhost")).status == 200
    sent = headers(one)
    assert (sent["x-forwarded-for"], sent["x-forwarded-host"]) == ("192.168.0.1", HOST)
    assert (sent["x-original-forwarded-for"], sent["x-original-forwarded-host"]) == ("1.2.3.4", "myhost")


@pytest.mark.parametrize("line", [b"PROXY UNKNOWN\r\n", LINE % 80, LINE % 443])
async def test_a_plain_connection_is_https_only_if_its_header_names_port_443(line: bytes) -> None:
    async with world("one", proxy_protocol=True) as made:
        made.proxy.apply(nginx_ingress())
        client = await made.proxy.proxy.connect(
            port=await made.proxy.proxy.server.listen_http("127.0.0.1", 0, public_port=443)
        )
        await client.send(line + asking())
        assert (await read_answer(client)).status == 200
        assert headers(made)["x-forwarded-proto"] == ("https" if b" 443" in line else "http")


async def test_clients_that_the_header_names_have_the_limit_of_a_client() -> None:
    async with world("one", config=ProxyConfig(max_connections_per_client=1)) as made:
        made.proxy.apply(nginx_ingress(), options(use_proxy_protocol="true"))
        for number in (1, 2):
            other = b"PROXY TCP4 192.168.0.%d 192.168.0.11 56324 80\r\n" % number
            first, second = await made.proxy.proxy.connect(), await made.proxy.proxy.connect()
            await first.send(other + asking())
            assert (await read_answer(first)).status == 200
            await second.send(other + asking())
            assert await second.rest() == b""


@pytest.mark.parametrize(
    ("networks", "address"),
    [
        ("10.0.0.0/8,127.0.0.0/8", "192.168.0.1"),
        ("10.0.0.0/8,127.0.0.0/8,192.168.0.1/32", "192.168.0.111"),
    ],
)
async def test_forwarded_for_is_believed_of_clients_that_are_trusted(one: World, networks: str, address: str) -> None:
    told = {"use_proxy_protocol": "true", "use_forwarded_headers": "true", "proxy_real_ip_cidr": networks}
    one.proxy.apply(options(**told))
    assert (await ask(one, 1234, X_Forwarded_For="192.168.0.111")).status == 200
    sent = headers(one)
    assert (sent["host"], sent["x-forwarded-port"], sent["x-forwarded-proto"]) == (HOST, "1234", "http")
    assert (sent["x-real-ip"], sent["x-forwarded-for"].split(", ")[0]) == (address, address)


async def test_tcp_services_take_the_header_and_log_the_client(one: World) -> None:
    port = free_port()
    metadata = {"name": "tcp-services", "namespace": "ingress-nginx"}
    data = {str(port): "default/one:80:PROXY"}
    one.proxy.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    client = await one.proxy.proxy.connect(port=port)
    await client.send(LINE % 8080 + asking(host="proxy-protocol"))
    assert (await read_answer(client)).body == b"one"
    assert one.servers["one"].heads == [asking(host="proxy-protocol")]
    client.close()
    await until(lambda: bool(one.proxy.proxy.stream_records))
    assert one.proxy.proxy.stream_records[0].client == "192.168.0.1"
