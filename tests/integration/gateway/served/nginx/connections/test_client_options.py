"""What the ConfigMap of ingress-nginx says of clients' connections, proxies in front and the access log, read live.

Files there: `test/e2e/settings/forwarded_headers.go`, `enable_real_ip.go`, `keep-alive.go`, `proxy_protocol.go`,
`log-format.go`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from fakes.gateway.served import HOST, asking, read_answer
from fakes.translator.applied import World, world
from fakes.translator.nginx import headers, nginx_ingress, options
from headgate.gateway.net.proxy_protocol import Addresses, write_proxy_header

FORWARDED = {
    "X_Forwarded_For": "1.2.3.4",
    "X_Forwarded_Proto": "https",
    "X_Forwarded_Port": "1234",
    "X_Forwarded_Host": "myhost",
}


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one` and an Ingress of ingress-nginx."""
    async with world("one") as made:
        made.proxy.apply(nginx_ingress(enable_access_log="true"))
        yield made


async def test_nobody_is_believed_by_default(one: World) -> None:
    assert await one.proxy.status(**FORWARDED) == 200
    got = headers(one)
    assert (got["x-forwarded-for"], got["x-real-ip"]) == ("127.0.0.1", "127.0.0.1")
    assert (got["x-forwarded-proto"], got["x-forwarded-host"]) == ("http", HOST)
    assert got["x-forwarded-port"] != "1234"


async def test_forwarded_headers_are_believed_where_they_are_to_be(one: World) -> None:
    one.proxy.apply(options(use_forwarded_headers="true"))
    assert await one.proxy.status(**FORWARDED) == 200
    got = headers(one)
    assert got["x-forwarded-for"].split(", ")[0] == got["x-real-ip"] == "1.2.3.4"
    assert (got["x-forwarded-proto"], got["x-forwarded-port"]) == ("https", "1234")
    assert got["x-forwarded-host"] == "myhost"
    one.proxy.apply(options(use_forwarded_headers="false"))
    assert await one.proxy.status(**FORWARDED) == 200
    assert headers(one)["x-forwarded-for"] == "127.0.0.1"


async def test_a_request_that_a_proxy_got_over_https_is_not_redirected(one: World) -> None:
    one.proxy.apply(options(use_forwarded_headers="true", force_ssl_redirect="true"))
    assert await one.proxy.status() == 308
    assert await one.proxy.status(X_Forwarded_Proto="https") == 200


async def test_only_proxies_of_the_networks_are_believed(one: World) -> None:
    one.proxy.apply(options(use_forwarded_headers="true", proxy_real_ip_cidr="192.0.2.0/24"))
    assert await one.proxy.status(**FORWARDED) == 200
    assert headers(one)["x-forwarded-for"] == "127.0.0.1"


async def test_real_ip_believes_the_address_and_nothing_else(one: World) -> None:
    one.proxy.apply(options(enable_real_ip="true"))
    assert await one.proxy.status(**FORWARDED) == 200
    got = headers(one)
    assert (got["x-forwarded-for"], got["x-real-ip"]) == ("1.2.3.4", "1.2.3.4")
    assert (got["x-forwarded-proto"], got["x-forwarded-host"]) == ("http", HOST)
    assert got["x-forwarded-port"] != "1234"


async def test_the_address_stands_in_the_header_that_the_option_names(one: World) -> None:
    one.proxy.apply(options(enable_real_ip="true", forwarded_for_header="CF-Connecting-IP"))
    assert await one.proxy.status(CF_Connecting_IP="5.6.7.8", X_Forwarded_For="1.2.3.4") == 200
    assert headers(one)["x-real-ip"] == "5.6.7.8"


@pytest.mark.parametrize(
    ("also", "address"),
    [
        ({}, "203.0.113.9"),
        ({"enable_real_ip": "true"}, "203.0.113.9"),
        ({"use_forwarded_headers": "true"}, "1.2.3.4"),
        ({"use_forwarded_headers": "true", "proxy_real_ip_cidr": "127.0.0.0/8"}, "203.0.113.9"),
    ],
)
async def test_with_proxy_headers_another_header_names_the_client_if_they_name_a_trusted_proxy(
    one: World, also: dict[str, str], address: str
) -> None:
    one.proxy.apply(options(use_proxy_protocol="true", **also))
    client = await one.proxy.proxy.connect()
    await client.send(write_proxy_header(1, Addresses(("203.0.113.9", 1), ("127.0.0.1", 2))))
    await client.send(asking(X_Forwarded_For="1.2.3.4", X_Forwarded_Proto="https"))
    assert (await read_answer(client)).status == 200
    got = headers(one)
    assert (got["x-real-ip"], got["x-forwarded-for"].split(", ")[0]) == (address, address)
    assert got["x-forwarded-proto"] == ("https" if address == "1.2.3.4" else "http")


async def test_a_connection_without_the_proxy_header_is_closed(one: World) -> None:
    one.proxy.apply(options(use_proxy_protocol="true"))
    client = await one.proxy.proxy.connect()
    await client.send(asking())
    with contextlib.suppress(ConnectionResetError):
        assert await asyncio.wait_for(client.reader.read(), 10) == b""


async def test_keep_alive_of_nothing_closes_with_every_answer(one: World) -> None:
    one.proxy.apply(options(keep_alive="0"))
    assert (await one.proxy.get())["connection"] == "close"


async def test_a_connection_has_as_many_requests_as_the_option_says(one: World) -> None:
    one.proxy.apply(options(keep_alive_requests="2"))
    client = await one.proxy.proxy.connect()
    await client.send(asking())
    assert not (await read_answer(client)).all("connection")
    await client.send(asking())
    assert (await read_answer(client))["connection"] == "close"


async def test_a_connection_rests_as_long_as_the_option_says(one: World) -> None:
    one.proxy.apply(options(keep_alive="1"))
    client = await one.proxy.proxy.connect()
    await client.send(asking())
    assert (await read_answer(client)).status == 200
    assert await asyncio.wait_for(client.reader.read(), 20) == b""


async def test_a_head_is_as_long_as_the_buffers(one: World) -> None:
    one.proxy.apply(options(large_client_header_buffers="2 1k"))
    assert await one.proxy.status(X_Long="x" * 1000) == 200
    assert await one.proxy.status(X_Long="x" * 3000) == 431


async def test_names_with_underscores_are_dropped_unless_they_are_wanted(one: World) -> None:
    request = f"GET / HTTP/1.1\r\nHost: {HOST}\r\nx_token: a\r\n\r\n".encode()
    client = await one.proxy.proxy.connect()
    await client.send(request)
    await read_answer(client)
    assert "x_token" not in headers(one)
    one.proxy.apply(options(enable_underscores_in_headers="true"))
    client = await one.proxy.proxy.connect()
    await client.send(request)
    await read_answer(client)
    assert headers(one)["x_token"] == "a"


@pytest.mark.parametrize(
    ("escape", "line"),
    [
        ({}, r'{"a":"say \x22hi\x22", "b":"-"}'),
        ({"log_format_escape_json": "true"}, r'{"a":"say \"hi\"", "b":""}'),
        ({"log_format_escape_none": "true"}, '{"a":"say "hi"", "b":""}'),
        ({"log_format_escape_json": "false", "log_format_escape_none": "false"}, r'{"a":"say \x22hi\x22", "b":"-"}'),
    ],
)
async def test_lines_of_the_access_log_have_the_format(one: World, escape: dict[str, str], line: str) -> None:
    one.proxy.apply(options(log_format_upstream='{"a":"$http_header1", "b":"$http_header2"}', **escape))
    assert await one.proxy.status(header1='say "hi"') == 200
    await asyncio.sleep(0)
    assert one.proxy.proxy.log.lines == [line]


async def test_variables_of_ingress_nginx_have_values(one: World) -> None:
    names = "namespace", "ingress_name", "service_name", "proxy_upstream_name", "the_real_ip"
    one.proxy.apply(options(log_format_upstream=" ".join(f"${name}" for name in names)))
    assert await one.proxy.status() == 200
    assert one.proxy.proxy.log.lines == ["default web one default-one-80 127.0.0.1"]


async def test_an_unknown_variable_is_a_warning_and_a_dash(one: World) -> None:
    changed = options(log_format_upstream="$status $geoip_city $request_method")
    one.proxy.apply(changed)
    assert "$geoip_city" in one.proxy.messages(changed)
    assert one.proxy.errors(changed) == []
    assert await one.proxy.status() == 200
    assert one.proxy.proxy.log.lines == ["200 - GET"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("keep_alive", "long"),
        ("keep_alive", "3601"),
        ("keep_alive_requests", "many"),
        ("proxy_real_ip_cidr", "everywhere"),
        ("forwarded_for_header", "X-A: b"),
        ("large_client_header_buffers", "4"),
        ("log_format_upstream", "$" * 9000),
        ("use_forwarded_headers", "perhaps"),
    ],
)
async def test_a_bad_value_is_named_and_leaves_the_gateways_own(one: World, key: str, value: str) -> None:
    changed = options(**{key: value})
    one.proxy.apply(changed)
    assert f"data[{key.replace('_', '-')}]" in one.proxy.fields(changed)
    assert await one.proxy.status(**FORWARDED) == 200
    assert headers(one)["x-forwarded-for"] == "127.0.0.1"
