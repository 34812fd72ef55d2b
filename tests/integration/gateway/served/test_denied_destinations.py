"""Endpoints that no route may lead to, over every protocol: nothing connects there, and the client hears why."""

import asyncio
import logging

import pytest

from fakes.gateway.proxied import answering
from fakes.gateway.served import HOST, asking, at, named, origins, read_answer, served, site, to
from fakes.kubernetes.forbidden import forbidden, without
from fakes.peers.http2 import http2_client, request
from fakes.peers.name_server import NameServer
from fakes.waiting import until
from headgate.common.table import Endpoint
from headgate.gateway.health.resolve import SystemDns

REASON = "127.0.0.1 is within 127.0.0.0/8 of the setting denied_destinations"


@pytest.mark.parametrize("protocol", ["http", "https", "h2c", "h2", "http, with a PROXY header"])
async def test_a_denied_endpoint_is_a_502_that_names_the_setting(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    kind, _, has_header = protocol.partition(", ")
    async with forbidden() as server:
        upstream = at(server.port, protocol=kind, proxy_protocol=2 if has_header else None)
        async with served(site(), upstream, dialler=without("127.0.0.0/8")) as proxy:
            with caplog.at_level(logging.WARNING):
                got = await proxy.get()
            assert got.status == 502
            assert got["x-headgate-reason"] == f"cannot connect to 127.0.0.1:{server.port}: {REASON}"
    told = [(record.of, record.reason) for record in caplog.records if record.message == "a connection was denied"]
    assert told == [(f"{HOST}|/ to up", REASON)]


async def test_a_websocket_and_a_stream_of_http2_are_refused_likewise() -> None:
    async with forbidden() as server, served(site(), at(server.port), dialler=without("127.0.0.0/8")) as proxy:
        client = await proxy.connect()
        await client.send(asking(Connection="Upgrade", Upgrade="websocket", Sec_WebSocket_Version="13"))
        assert (await read_answer(client)).status == 502
        async with http2_client(proxy.port) as other:
            assert (await other.fetch(request(authority=HOST.encode()))).status == 502


async def test_a_request_goes_to_an_endpoint_that_may_be_connected_to() -> None:
    async with forbidden("127.0.0.2") as server, origins(answering(named(b"good"))) as (good,):
        upstream = at(good.port, Endpoint(address="127.0.0.2", port=server.port))
        async with served(site(), upstream, dialler=without("127.0.0.2")) as proxy:
            assert await proxy.bodies(4) == ["good"] * 4
            assert proxy.stats.retries


async def test_a_name_that_comes_to_mean_loopback_is_refused_from_then_on() -> None:
    records = {("web.example.", "A"): (1, ["127.0.0.2"])}
    async with NameServer(records) as names, forbidden() as server:
        listener = await asyncio.start_server(_serve, "127.0.0.2", server.port)
        upstream = at(Endpoint(address="web.example", port=server.port), max_idle=0)
        query = SystemDns(names.resolver())
        async with served(site(), upstream, query=query, dialler=without("127.0.0.1")) as proxy:
            await until(lambda: bool(proxy.resolver and proxy.resolver.addresses("web.example")))
            assert (await proxy.get()).status == 200
            names.records = {("web.example.", "A"): (1, ["127.0.0.1"])}
            await until(lambda: bool(proxy.resolver and proxy.resolver.addresses("web.example") == ("127.0.0.1",)))
            assert (await proxy.get()).status == 502
        listener.close()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(named(b"web"))
    writer.close()


@pytest.mark.parametrize("kind", ["tcp", "http", "https", "grpc"])
async def test_a_health_check_does_not_connect_either(kind: str) -> None:
    async with forbidden() as server:
        check = {"type": kind, "path": "/", "interval_s": 0.02, "unhealthy_after": 1}
        async with served(site(), at(server.port, active_check=check), dialler=without("127.0.0.0/8")) as proxy:
            await until(lambda: proxy.health.stats.unavailable.get("up") == 1)


async def test_a_mirror_and_what_plugins_ask_are_refused_likewise() -> None:
    async with forbidden("127.0.0.2") as server, origins(answering(named(b"good"))) as (good,):
        url = f"http://127.0.0.2:{server.port}"
        routes = [
            to("up", path="/mirrored", plugins=[("proxy-mirror", {"host": url})]),
            to("up", path="/mirrored-to-upstream", plugins=[("proxy-mirror", {"upstream": "other"})]),
            to("up", path="/guarded", plugins=[("forward-auth", {"uri": url})]),
            to("up", path="/guarded-by-upstream", plugins=[("forward-auth", {"upstream": "other"})]),
        ]
        upstreams = at(good.port), at(Endpoint(address="127.0.0.2", port=server.port), key="other")
        async with served(site(*routes), *upstreams, dialler=without("127.0.0.2")) as proxy:
            statuses = {route.name: (await proxy.get(route.name)).status for route in routes}
            await until(lambda: not any(task.get_name() == "mirrored request" for task in asyncio.all_tasks()))
        assert statuses == {
            "/mirrored": 200,
            "/mirrored-to-upstream": 200,
            "/guarded": 403,
            "/guarded-by-upstream": 403,
        }
