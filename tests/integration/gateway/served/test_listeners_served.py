"""Listeners of a table: ports that open and close, and which routes, certificates and peers count on them."""

import asyncio
import re
import socket
import ssl
from pathlib import Path

import pytest

from fakes.gateway.ports import free_port, free_ports
from fakes.gateway.proxied import OK, Client, Conversation, answering
from fakes.gateway.served import HOST, Got, Served, asking, at, named, origins, read_answer, served, to
from fakes.gateway.table import listener
from fakes.gateway.tls import Authority, unverified
from fakes.gateway.tls_listener import asking as asking_clients
from fakes.gateway.tls_listener import client_context, entry
from fakes.peers.http2 import http2_client, request
from headgate.common.plugins.transformation.echo import EchoConfig
from headgate.common.plugins.transformation.response_rewrite import ResponseRewriteConfig
from headgate.common.table import (
    HttpsRedirect,
    Listener,
    ListenerDefaults,
    PluginUse,
    Route,
    Timeouts,
    TlsPolicy,
    VirtualHost,
)
from headgate.gateway.net import port_set
from headgate.gateway.net.proxy_protocol import Addresses, write_proxy_header
from headgate.gateway.plugins.runtime.preview import preview_plugins
from headgate.gateway.table.explaining.explain import explain
from headgate.gateway.table.view import CompilerView, EntryView

BOUND_S = 20.0


def on(*listeners: str, host: str = HOST, routes: tuple[Route, ...] = (), tls: TlsPolicy | None = None) -> VirtualHost:
    return VirtualHost(host=host, routes=routes or (to("up"),), listeners=listeners, tls=tls)


async def ask(proxy: Served, port: int, path: str = "/", *, host: str = HOST, tls: str = "", **headers: str) -> Got:
    """Ask on a connection of its own; `tls` is the server name."""
    client = await proxy.connect(unverified() if tls else None, tls, port)
    await client.send(asking(path, host=host, **headers))
    try:
        return await read_answer(client)
    finally:
        client.close()


async def refused(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return True
    writer.close()
    return False


async def test_a_port_opens_and_closes_with_the_table_and_others_go_on() -> None:
    one, two = free_ports(2)
    async with (
        origins(answering(OK)) as (origin,),
        served(listener("gw/one", port=one), on("gw/one"), at(origin.port)) as proxy,
    ):
        assert proxy.listeners.names == (f"http://127.0.0.1:{one}",)
        assert (await ask(proxy, one)).status == 200
        assert (await proxy.get()).status == 404
        proxy.put(listener("gw/two", port=two), on("gw/two", routes=(to("up", path="/two"),)))
        assert (await ask(proxy, two, "/two")).status == 200
        assert (await ask(proxy, two, "/")).status == 404
        assert (await ask(proxy, one, "/")).status == 200
        proxy.remove("listeners", "gw/one")
        assert await refused(one)
        assert (await ask(proxy, two, "/two")).status == 200
        assert proxy.listeners.names == (f"http://127.0.0.1:{two}",)
        proxy.put(listener("gw/one", port=one))
        assert (await ask(proxy, one)).status == 200


async def test_a_request_under_way_on_a_port_that_closes_gets_its_answer_and_the_connection_ends() -> None:
    port, may_answer, is_asked = free_port(), asyncio.Event(), asyncio.Event()

    async def slow(conversation: Conversation) -> None:
        await conversation.request()
        is_asked.set()
        await may_answer.wait()
        await conversation.send(OK)

    async with (
        origins(slow) as (origin,),
        served(listener("gw/a", port=port), on("gw/a"), at(origin.port)) as proxy,
    ):
        client, resting = await proxy.connect(port=port), await proxy.connect(port=port)
        await client.send(asking())
        await asyncio.wait_for(is_asked.wait(), BOUND_S)
        proxy.remove("listeners", "gw/a")
        may_answer.set()
        got = await read_answer(client)
        assert (got.status, got["connection"]) == (200, "close")
        assert await client.rest() == await resting.rest() == b""
        assert not proxy.server.connections


async def test_a_connection_of_a_closed_port_asks_no_table_any_more() -> None:
    port = free_port()
    async with (
        origins(answering(OK)) as (origin,),
        served(listener("gw/a", port=port), on("gw/a"), at(origin.port)) as proxy,
    ):
        client = await proxy.connect(port=port)
        await client.send(asking())
        assert (await read_answer(client)).status == 200
        proxy.remove("listeners", "gw/a")
        await client.send(asking())
        got = await read_answer(client)
        assert (got.status, got["connection"]) == (404, "close")


async def test_a_port_that_cannot_be_bound_costs_its_own_routes_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(port_set, "RETRY_S", 0.05)
    other = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        entries = (listener("gw/a", port=port), on("gw/a"), listener("gw/b", port=other), on("gw/b"))
        async with origins(answering(OK)) as (origin,), served(*entries, at(origin.port)) as proxy:
            assert f"http://127.0.0.1:{port} not open: Address already in use" in proxy.listeners.names
            assert (await ask(proxy, other)).status == 200
            taken.close()
            async with asyncio.timeout(BOUND_S):
                while f"http://127.0.0.1:{port}" not in proxy.listeners.names:  # noqa: ASYNC110 - names have no event
                    await asyncio.sleep(0.01)
            assert (await ask(proxy, port)).status == 200


async def test_a_listener_has_an_address_of_its_own() -> None:
    port = free_port()
    entries = (
        listener("gw/a", port=port),
        listener("gw/b", port=port, address="127.0.0.2"),
        on("gw/a"),
        on("gw/b", routes=(to("other"),)),
    )
    async with (
        origins(answering(named(b"a")), answering(named(b"b"))) as (one, two),
        served(*entries, at(one.port), at(two.port, key="other")) as proxy,
    ):
        assert (await ask(proxy, port)).body == b"a"
        client = Client(*await asyncio.open_connection("127.0.0.2", port))
        await client.send(asking())
        assert (await read_answer(client)).body == b"b"
        client.close()


async def test_listeners_of_one_port_are_told_apart_by_host() -> None:
    port = free_port()
    entries = (
        listener("gw/any", port=port),
        listener("gw/wild", port=port, host="*.example"),
        listener("gw/a", port=port, host=HOST),
        on("gw/any", host="*", routes=(to("up"),)),
        on("gw/wild", host="*.example", routes=(to("up", path="/wild"),)),
        on("gw/a", routes=(to("up", path="/a"),)),
    )
    async with origins(answering(OK)) as (origin,), served(*entries, at(origin.port)) as proxy:
        asked = [
            (HOST, "/a"),
            (HOST, "/wild"),
            (HOST, "/"),
            ("b.example", "/wild"),
            ("b.example", "/a"),
            ("c.org", "/a"),
        ]
        found = [(await ask(proxy, port, path, host=host)).status for host, path in asked]
        assert found == [200, 404, 404, 200, 404, 200]


async def test_a_listener_changes_from_http_to_https_and_back() -> None:
    port = free_port()
    async with (
        origins(answering(OK)) as (origin,),
        served(listener("gw/a", port=port), on("gw/a"), at(origin.port)) as proxy,
    ):
        assert (await ask(proxy, port)).status == 200
        proxy.put(listener("gw/a", port=port, protocol="https"))
        assert (await ask(proxy, port, tls=HOST)).status == 200
        assert proxy.listeners.names == (f"https://127.0.0.1:{port}",)
        proxy.put(listener("gw/a", port=port))
        assert (await ask(proxy, port)).status == 200


def https(key: str, port: int, **fields: object) -> Listener:
    return listener(key, port=port, protocol="https", **fields)


async def presented(port: int, name: str) -> bytes:
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=unverified(), server_hostname=name)
    certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return certificate


async def test_certificates_of_a_listener_are_chosen_by_server_name_among_its_own() -> None:
    port = free_port()
    store = {key: entry(name, key=key) for key, name in (("c/one", HOST), ("c/two", "b.example"), ("c/all", HOST))}
    entries = (
        https("gw/a", port, host="*.example", certificates=("c/two", "c/one")),
        https("gw/rest", port, certificates=("c/two",)),
        https("https", 0, certificates=("c/one",)),
    )
    async with served(*entries, on("gw/a")) as proxy:
        proxy.certificates.set_certificates(store.values())
        der = {key: ssl.PEM_cert_to_DER_cert(each.chain_pem) for key, each in store.items()}
        assert await presented(port, HOST) == der["c/one"]
        assert await presented(port, "b.example") == der["c/two"]
        assert await presented(port, "other.example") == der["c/two"]
        assert await presented(port, "c.org") == der["c/two"]
        assert await presented(proxy.https_port, "b.example") == der["c/one"]
        proxy.remove("listeners", "https")
        assert await presented(proxy.https_port, "b.example") == der["c/two"]


async def test_http2_and_http1_obey_a_listener_over_tls() -> None:
    port = free_port()
    entries = (https("gw/a", port, host=HOST), https("gw/b", port), on("gw/a"), on("gw/b", host="b.example"))
    async with origins(answering(OK)) as (origin,), served(*entries, at(origin.port)) as proxy:
        assert (await ask(proxy, port, tls=HOST)).status == 200
        assert (await ask(proxy, port, tls=HOST, host="c.example")).status == 404
        context = unverified()
        context.set_alpn_protocols(["h2"])
        async with http2_client(port, tls=context) as peer:
            for host, status in ((HOST, 200), ("b.example", 200), ("c.example", 404)):
                assert (await peer.fetch(request(b"GET", b"/", authority=host.encode()))).status == status


async def test_the_tls_policy_of_a_listener_holds_for_hosts_without_one() -> None:
    port = free_port()
    entries = (
        https("gw/a", port, tls=TlsPolicy(min_version="1.3")),
        on("gw/a"),
        on("gw/a", host="old.example", tls=TlsPolicy(min_version="1.2")),
    )
    old = client_context(maximum_version=ssl.TLSVersion.TLSv1_2)
    async with served(*entries) as proxy:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await proxy.connect(old, HOST, port)
        (await proxy.connect(old, "old.example", port)).close()


async def test_client_validation_of_a_listener_guards_all_its_routes_and_no_others(tmp_path: Path) -> None:
    authority, port = Authority(), free_port()
    entries = (
        https("gw/a", port, host=HOST, tls=asking_clients(authority.pem)),
        https("gw/b", port),
        on("gw/a", "https"),
        on("gw/a", host=HOST, routes=(to("up", path="/own"),), tls=TlsPolicy(min_version="1.3")),
        on("gw/b", host="b.example"),
    )
    alice = client_context(authority.issue("alice").write(tmp_path))
    async with origins(answering(OK)) as (origin,), served(*entries, at(origin.port)) as proxy:
        with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
            await ask(proxy, port, tls=HOST)
        client = await proxy.connect(alice, HOST, port)
        for path in ("/", "/own"):
            await client.send(asking(path))
            assert (await read_answer(client)).status == 200
        # By the name of a listener that asks for nothing, requests come to no route of the one that does.
        for path in ("/", "/own"):
            assert (await ask(proxy, port, path, tls="b.example")).status in (400, 421)
        assert (await ask(proxy, port, tls="b.example", host="b.example")).status == 200
        assert (await ask(proxy, proxy.https_port, tls=HOST)).status == 200


async def test_trusted_proxies_of_a_listener_are_believed_there_only() -> None:
    port = free_port()
    entries = (listener("gw/a", port=port, trusted_proxies=("127.0.0.0/8",)), on("gw/a", "http"))

    async with origins(answering(OK)) as (origin,), served(*entries, at(origin.port)) as proxy:
        forged = {"X-Forwarded-For": "203.0.113.9"}
        await ask(proxy, port, **forged)
        await ask(proxy, proxy.port, **forged)
        proxy.put(listener("gw/a", port=port, trusted_proxies=()), listener("http", trusted_proxies=("127.0.0.1",)))
        await ask(proxy, port, **forged)
        await ask(proxy, proxy.port, **forged)
        proxy.remove("listeners", "http")
        await ask(proxy, proxy.port, **forged)
        seen = [re.search(rb"X-Real-IP: (.*)\r", head)[1] for head in origin.heads]  # type: ignore[index]
        assert seen == [b"203.0.113.9", b"127.0.0.1", b"127.0.0.1", b"203.0.113.9", b"127.0.0.1"]


async def test_proxy_headers_are_expected_of_trusted_peers_where_a_listener_says_so() -> None:
    port = free_port()
    entries = (listener("gw/a", port=port, proxy_protocol=True), on("gw/a"))
    header = write_proxy_header(2, Addresses(("203.0.113.9", 1), ("198.51.100.1", 80)))

    async def with_header(proxy: Served) -> Got:
        client = await proxy.connect(port=port)
        await client.send(header + asking())
        return await read_answer(client)

    async with origins(answering(OK)) as (origin,), served(*entries, at(origin.port)) as proxy:
        assert (await with_header(proxy)).status == 200
        assert b"X-Real-IP: 203.0.113.9" in origin.heads[-1]
        proxy.put(listener("gw/a", port=port, proxy_protocol=True, trusted_proxies=("10.0.0.0/8",)))
        assert (await ask(proxy, port)).status == 200
        assert (await with_header(proxy)).status == 400
        proxy.put(listener("gw/a", port=port))
        assert (await ask(proxy, port)).status == 200


# Defaults

MARKING = PluginUse.of(ResponseRewriteConfig(headers={"set": {"X-Listener": "yes"}}))
OWN = ("response-rewrite", {"headers": {"set": {"X-Own": "yes"}}})


async def test_plugins_of_a_listener_run_for_routes_without_one_of_the_same_name() -> None:
    port = free_port()
    routes = (to("up"), to("up", path="/own", plugins=[OWN]))
    entries = (
        listener("gw/a", port=port, defaults=ListenerDefaults(plugins=(MARKING,))),
        on("gw/a", "http", routes=routes),
    )
    async with origins(answering(OK)) as (origin,), served(*entries, at(origin.port)) as proxy:
        assert (await ask(proxy, port))["x-listener"] == "yes"
        assert (await ask(proxy, proxy.port))["x-listener"] == ""
        own = await ask(proxy, port, "/own")
        assert (own["x-listener"], own["x-own"]) == ("", "yes")
        proxy.put(on("gw/a", "http", routes=(to("up", path="/new"),)))
        assert (await ask(proxy, port, "/new"))["x-listener"] == "yes"
        assert (await ask(proxy, port)).status == 404
        proxy.put(listener("gw/a", port=port))
        assert (await ask(proxy, port, "/new"))["x-listener"] == ""


async def test_limits_of_a_listener_hold_for_routes_that_set_none() -> None:
    port, never = free_port(), asyncio.Event()

    async def silent(conversation: Conversation) -> None:
        await conversation.request()
        await never.wait()

    defaults = ListenerDefaults(max_body=3, timeouts=Timeouts(read_s=0.1))
    routes = (to("up"), to("up", path="/own", max_body=5), to("silent", path="/silent"))
    entries = (listener("gw/a", port=port, defaults=defaults), on("gw/a", "http", routes=routes))

    async def post(proxy: Served, at_port: int, path: str) -> int:
        client = await proxy.connect(port=at_port)
        await client.send(asking(path, "POST", body=b"four"))
        return (await read_answer(client)).status

    async with (
        origins(answering(OK), silent) as (origin, slow),
        served(*entries, at(origin.port), at(slow.port, key="silent")) as proxy,
    ):
        assert await post(proxy, port, "/") == 413
        assert await post(proxy, port, "/own") == await post(proxy, proxy.port, "/") == 200
        assert (await ask(proxy, port, "/silent")).status == 504


async def test_a_listener_redirects_plain_requests_whatever_routes_there_are() -> None:
    port = free_port()
    entries = (
        listener("gw/a", port=port, https_redirect=HttpsRedirect(port=8443), trusted_proxies=("127.0.0.1",)),
        on("gw/a", "http", "https"),
    )
    async with origins(answering(OK)) as (origin,), served(*entries, at(origin.port)) as proxy:
        got = await ask(proxy, port, "/x?y", host="any.org")
        assert (got.status, got["location"]) == (301, "https://any.org:8443/x?y")
        assert (await ask(proxy, port, X_Forwarded_Proto="https")).status == 200
        assert (await ask(proxy, proxy.port)).status == (await ask(proxy, proxy.https_port, tls=HOST)).status == 200
        assert "listener gw/a" in {route for route, _ in proxy.stats.routes}
        url = f"{HOST}:{port}"
        told = explain(CompilerView(proxy.compiler), "POST", url, "/")
        assert told.verdict == "308: listener gw/a redirects all requests over plain HTTP"
        other = explain(CompilerView(proxy.compiler), "GET", url, "/", scheme="https")
        assert other.verdict == f"404: no listener of port {port} takes https requests for '{HOST}'"


async def test_explaining_asks_the_plugins_of_the_listener_too() -> None:
    told = PluginUse.of(EchoConfig(body="hello"))
    entries = (listener("http", defaults=ListenerDefaults(plugins=(told,))), on("http"), at(1))
    found = explain(
        EntryView(entries), "GET", HOST, "/", preview=lambda route, facts, scope: preview_plugins(route, facts, scope)
    )
    assert [plugin.name for plugin in found.plugins] == ["echo"]
