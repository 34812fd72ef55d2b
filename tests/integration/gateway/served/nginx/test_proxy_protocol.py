"""PROXY headers that load balancers send ahead of connections: `test/e2e/settings/proxy_protocol.go`."""

from collections.abc import AsyncIterator

import pytest
from cryptography import x509

from fakes.gateway.ports import free_port
from fakes.gateway.served import HOST, Got, asking, read_answer
from fakes.gateway.tls import Authority, unverified
from fakes.translator.applied import World, world
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, headers, options
from fakes.waiting import until

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
