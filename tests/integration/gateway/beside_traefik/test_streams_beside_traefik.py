"""Which router takes a connection: the same rules are given to Traefik, and to a gateway by its table."""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.streams import backend, echo_server, stream, streams
from fakes.peers.client_hello import real_hello
from fakes.peers.traefik import ENTRY_POINT, needs_traefik, traefik
from headgate.common.table import StreamRoute
from headgate.translator.dialects.traefik.rules import parse_tcp_rule, stream_alternatives

pytestmark = needs_traefik

BOUND_S = 10
NONE = "none"
"""No router takes the connection."""

CASES: dict[str, tuple[Sequence[str], Sequence[tuple[str, str]]]] = {
    "names, wildcards and the rest": (
        ["HostSNI(`Db.Example.com.`)", "HostSNI(`*.example.com`)", "HostSNI(`*`)"],
        [("db.example.com", "r0"), ("x.example.com", "r1"), ("x.y.example.com", "r2"), ("", "r2")],
    ),
    "the longer rule goes first, also with a pattern": (
        ["HostSNI(`a.example.com`)", r"HostSNIRegexp(`^[a-z]+\.example\.com$`)", "HostSNIRegexp(`org`)"],
        [
            ("a.example.com", "r1"),
            ("b.example.com", "r1"),
            ("x.org.net", "r2"),
            ("x.net", NONE),
            ("1.example.com", NONE),
        ],
    ),
    "alternatives and addresses": (
        [
            "HostSNI(`a.com`) || HostSNI(`b.com`)",
            "HostSNI(`c.com`) && ClientIP(`127.0.0.0/8`)",
            "HostSNI(`d.com`) && ClientIP(`10.0.0.0/8`)",
        ],
        [("a.com", "r0"), ("b.com", "r0"), ("c.com", "r1"), ("d.com", NONE)],
    ),
    "what is not so, and one name for several networks": (
        [
            "HostSNI(`a.com`) && ClientIP(`10.0.0.0/8`)",
            "HostSNI(`a.com`)",
            "!HostSNI(`a.com`) && !HostSNI(`b.com`) && ClientIP(`127.0.0.1`)",
            "HostSNI(`c.com`)",
            "HostSNI(`*`)",
        ],
        [("a.com", "r1"), ("b.com", "r4"), ("c.com", "r2"), ("x.com", "r2")],
    ),
}


async def _winner(port: int, server_name: str) -> str:
    async with asyncio.timeout(BOUND_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(real_hello(server_name))
        name = NONE
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            name = (await reader.readexactly(2)).decode()
        writer.close()
    return name if name.startswith("r") else NONE


def routes(rules: Sequence[str], port: int) -> list[StreamRoute]:
    """Return the table that says what rules say."""
    found = []
    for number, text in enumerate(rules):
        rule = parse_tcp_rule(text)
        for names, alpn, when in stream_alternatives(rule):
            common: dict[str, Any] = {"server_names": names, "alpn": alpn, "when": when}
            key = f"{number}-{len(found)}"
            found.append(stream(port, key=key, up=f"r{number}", priority=rule.priority(), protocol="tls", **common))
    return found


@pytest.mark.parametrize("name", CASES)
async def test_the_same_router_takes_a_connection(tmp_path: Path, name: str) -> None:
    rules, asked = CASES[name]
    port = free_port()
    async with contextlib.AsyncExitStack() as stack:
        names = [f"r{number}" for number in range(len(rules))]
        ports = [await stack.enter_async_context(echo_server(name=each.encode())) for each in names]
        upstreams = [backend(at, key=key) for key, at in zip(names, ports, strict=True)]
        await stack.enter_async_context(streams(*routes(rules, port), *upstreams))
        tcp = {
            "routers": {
                key: {"rule": rule, "entryPoints": [ENTRY_POINT], "service": key, "tls": {"passthrough": True}}
                for key, rule in zip(names, rules, strict=True)
            },
            "services": {
                key: {"loadBalancer": {"servers": [{"address": f"127.0.0.1:{at}"}]}}
                for key, at in zip(names, ports, strict=True)
            },
        }
        running = await stack.enter_async_context(traefik(tmp_path, {"tcp": tcp}))
        assert not any((await running.routers("tcp")).values())
        found = [(each, await _winner(running.port, each), await _winner(port, each)) for each, _ in asked]
    assert found == [(each, winner, winner) for each, winner in asked]
