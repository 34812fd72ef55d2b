import json
import os
import re

import pytest

from fakes.gateway.proxied import OK, answering, proxied
from headgate.gateway.observability.access_log import AccessLog
from headgate.gateway.observability.log_format import LogFormat
from headgate.gateway.observability.tracing import Tracing
from headgate.gateway.plugins.interface import Plugin, PluginConfig, PluginServices, Request, Response
from headgate.gateway.plugins.runtime.chain import PluginChain
from headgate.gateway.plugins.runtime.run import RoutePlugins
from headgate.gateway.proxy.policies import RoutePolicies

CLOSE = b"Connection: close\r\n\r\n"
REQUEST = (
    b'GET /x?y HTTP/1.1\r\nHost: a\r\nuser-agent: curl "8"\\\r\nReferer: http://b/\r\nX-Request-ID: id-1\r\n'
    b"Connection: close\r\n\r\n"
)


async def logged(
    log_format, request: bytes = REQUEST, plugins: PluginChain | None = None, own: LogFormat | None = None
) -> bytes:
    """Give what the log holds after one request through a proxy."""
    reading, writing = os.pipe()
    log = AccessLog(log_format, writing, own)
    async with proxied(answering(OK)) as proxy:
        if plugins is not None:
            proxy.target.policies = RoutePolicies()
            proxy.target.policies.hooks = RoutePlugins(plugins)
        proxy.server.context.access_log = log
        proxy.server.context.times_endpoints = log.is_detailed
        await proxy.talk(request)
        log.close()
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        return file.read()


async def test_combined_line_is_what_log_analysers_know_and_more() -> None:
    line = (await logged("combined")).decode()
    assert re.fullmatch(
        r'127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000\] "GET /x\?y HTTP/1\.1" 200 2 "http://b/" '
        r'"curl \\x228\\x22\\x5c" \d\.\d{3} "test\|all" "127\.0\.0\.1:\d+" id-1\n',
        line,
    )


async def test_json_line_has_all_that_explains_an_answer() -> None:
    entry = json.loads(await logged("json"))
    assert entry["status"] == 200
    assert entry["bytes"] == 2
    assert entry["host"] == "a"
    assert entry["target"] == "/x?y"
    assert entry["route"] == "test|all"
    assert entry["upstream"] == "test"
    assert entry["endpoint"].startswith("127.0.0.1:")
    assert entry["request_id"] == "id-1"
    assert entry["agent"] == 'curl "8"\\'
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", entry["time"])
    assert "reason" not in entry


async def test_json_line_says_what_the_endpoint_did() -> None:
    entry = json.loads(await logged("json", b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n" + CLOSE + b"hello"))
    assert (entry["request_bytes"], entry["upstream_status"], entry["upstream_bytes"]) == (5, 200, 2)
    assert 0 < entry["upstream_seconds"] <= entry["seconds"]
    assert {"retries", "tls", "trace_id"}.isdisjoint(entry)


async def test_json_line_counts_retries_and_names_the_trace() -> None:
    reading, writing = os.pipe()
    log = AccessLog("json", writing)
    async with proxied(answering(OK), answering(OK)) as proxy:
        await proxy.origins[0].stop()
        proxy.server.context.access_log = log
        proxy.server.context.tracing = Tracing(1.0)
        await proxy.talk(REQUEST)
        log.close()
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        entry = json.loads(file.read())
    assert entry["retries"] == 1
    assert re.fullmatch("[0-9a-f]{32}", entry["trace_id"])


async def test_json_line_of_a_request_that_reached_no_endpoint_says_nothing_of_one() -> None:
    entry = json.loads(await logged("json", b"GET / HTTP/1.1\r\nHost: unknown\r\n" + CLOSE))
    assert {"upstream_status", "upstream_bytes", "upstream_seconds", "upstream", "endpoint"}.isdisjoint(entry)
    assert entry["request_bytes"] == 0


async def test_answer_of_our_own_is_logged_with_its_length() -> None:
    entry = json.loads(await logged("json", b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n"))
    assert entry["bytes"] == len(f"400 Bad Request: {entry['reason']}\n")
    assert "agent" not in entry


@pytest.mark.parametrize("log_format", ["combined", "json"])
async def test_refused_request_is_logged_with_its_reason(log_format) -> None:
    line = await logged(log_format, b"GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n")
    assert b"400" in line
    assert b"space before the colon of a header" in line


async def test_quote_in_a_target_cannot_break_the_line() -> None:
    line = await logged("combined", b'GET /" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    assert b'"GET /\\x22 HTTP/1.1" 200' in line


@pytest.mark.parametrize("log_format", ["combined", "json"])
async def test_every_request_of_a_connection_leaves_its_line(log_format) -> None:
    reading, writing = os.pipe()
    log = AccessLog(log_format, writing)
    async with proxied(answering(OK)) as proxy:
        proxy.server.context.access_log = log
        client = await proxy.connect()
        for _ in range(3):
            await client.send(b"GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: it\r\n\r\n")
            await client.answer()
        log.close()
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        assert file.read().count(b"it") == 3


async def test_closed_output_costs_lines_and_nothing_else() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    log = AccessLog("combined", writing)
    async with proxied(answering(OK)) as proxy:
        proxy.server.context.access_log = log
        for _ in range(2):
            assert (await proxy.talk(REQUEST)).endswith(b"ok")
            log.flush()
        log.close()
    os.close(writing)
    assert log.dropped == 2


async def test_output_that_nobody_reads_delays_nobody() -> None:
    reading, writing = os.pipe()
    log = AccessLog("combined", writing)
    async with proxied(answering(OK)) as proxy:
        proxy.server.context.access_log = log
        client = await proxy.connect()
        for turn in range(2000):
            await client.send(b"GET /" + b"a" * 200 + b" HTTP/1.1\r\nHost: a\r\n\r\n")
            await client.answer()
            if turn % 16 == 0:
                log.flush()
        assert log.dropped > 0
    os.close(reading)
    log.close()
    os.close(writing)


@pytest.mark.parametrize("log_format", ["combined", "json"])
async def test_what_a_reason_quotes_of_a_client_cannot_break_the_line(log_format) -> None:
    class Odd(Plugin[PluginConfig]):
        name = "odd"

        def on_request(self, request: Request) -> Response:
            return Response.refusal(401, 'algorithm "\ud800\n1.2.3.4 - -')

    plugins = PluginChain([(0, Odd(PluginConfig(), PluginServices()))], PluginServices())
    lines = (await logged(log_format, plugins=plugins)).splitlines()
    assert len(lines) == 1
    assert b"ud800" in lines[0]
