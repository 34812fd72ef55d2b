"""Which router takes a connection: the same rules are given to Traefik, and to a gateway by its table."""

import asyncio
import contextlib
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fakes.gateway.ports import free_port, free_ports
from fakes.gateway.proxied import Client
from fakes.gateway.streams import backend, echo_server, stream, streams
from fakes.gateway.tls import Authority, unverified
from fakes.peers.client_hello import real_hello
from fakes.peers.traefik import ENTRY_POINT, needs_traefik, traefik
from fakes.translator.deltas import tls_secret
from fakes.translator.traefik_streams import Streams, resource
from fakes.translator.traefik_streams import rule as one_rule
from fakes.translator.traefik_streams import tcp as route_of
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


WITHOUT_TLS = {
    "HostSNI(`a.com`)": False,
    "!HostSNI(`a.com`)": True,
    "HostSNIRegexp(`.*`)": True,
    "HostSNIRegexp(`^[a-z]+$`)": False,
    "HostSNIRegexp(`^$|a`)": True,
    "!HostSNIRegexp(`a`)": True,
    "ALPN(`h2`)": False,
    "!ALPN(`h2`)": True,
    "HostSNI(`*`) && ALPN(`h2`)": False,
    "HostSNI(`*`) && !ALPN(`h2`)": True,
    "!ClientIP(`10.0.0.1`)": True,
    "ClientIP(`10.0.0.1`) || HostSNIRegexp(`.*`)": True,
    "HostSNI(`*`) || HostSNI(`a.com`)": True,
    "HostSNI(`a.com`) || HostSNI(`*`)": False,
    "HostSNI(`*`) && !HostSNI(`a.com`)": True,
    "!HostSNI(`*`)": False,
    "ClientIP(`127.0.0.1`) && !HostSNIRegexp(`a`)": True,
    "ClientIP(`127.0.0.1`) && HostSNIRegexp(`a`)": False,
    "ClientIP(`10.0.0.1`) && !HostSNIRegexp(`a`)": False,
    "ClientIP(`127.0.0.1`) || HostSNI(`a.com`)": False,
    "!(HostSNI(`a.com`) || ClientIP(`10.0.0.1`))": True,
}
"""Rules of routes without TLS, and whether they take a connection."""


async def _answers(port: int) -> bool:
    """Tell whether the service answers; connections that no route takes get an answer of HTTP, or end."""
    async with asyncio.timeout(BOUND_S):
        try:
            client = Client(*await asyncio.open_connection("127.0.0.1", port))
        except OSError:
            return False
        try:
            await client.send(b"GET / HTTP/1.1\r\nHost: a.com\r\nConnection: close\r\n\r\n")
            return await client.exactly(2) == b"up"
        except (OSError, asyncio.IncompleteReadError):
            return False
        finally:
            client.close()


async def test_the_same_rules_take_connections_without_tls(tmp_path: Path) -> None:
    theirs, ours = free_ports(len(WITHOUT_TLS)), free_ports(len(WITHOUT_TLS))
    entries = []
    for number, (text, port) in enumerate(zip(WITHOUT_TLS, ours, strict=True)):
        made = Streams(route_of(one_rule(text), name=f"r{number}", entryPoints=["db"])).routes
        there = {"port": port, "backends": stream(port, up="up").backends}
        entries += [route.model_copy(update={**there, "key": f"{route.key}-{port}"}) for route in made]
    async with contextlib.AsyncExitStack() as stack:
        at = await stack.enter_async_context(echo_server(name=b"up"))
        await stack.enter_async_context(streams(*entries, backend(at, key="up")))
        routers = {
            f"r{number}": {"rule": text, "entryPoints": [f"p{number}"], "service": "up"}
            for number, text in enumerate(WITHOUT_TLS)
        }
        services = {"up": {"loadBalancer": {"servers": [{"address": f"127.0.0.1:{at}"}]}}}
        flags = [f"--entrypoints.p{number}.address=127.0.0.1:{port}" for number, port in enumerate(theirs)]
        tcp = {"routers": routers, "services": services}
        await stack.enter_async_context(traefik(tmp_path, {"tcp": tcp}, *flags))
        assert {text: await _answers(port) for text, port in zip(WITHOUT_TLS, theirs, strict=True)} == WITHOUT_TLS
        assert {text: await _answers(port) for text, port in zip(WITHOUT_TLS, ours, strict=True)} == WITHOUT_TLS


@pytest.mark.parametrize(
    "rules",
    [
        ["ClientIP(`127.0.0.1`)", "HostSNIRegexp(`.*`) && !ALPN(`h2`)"],
        ["ClientIP(`127.0.0.1`)", "HostSNI(`*`)"],
        ["ClientIP(`127.0.0.1`) && !ALPN(`h2`)", "HostSNIRegexp(`.*`)", "HostSNI(`*`)"],
        ["ClientIP(`10.0.0.1`)", "!ALPN(`h2`)", "HostSNI(`*`)"],
    ],
)
async def test_the_same_of_several_rules_without_tls_has_a_connection(tmp_path: Path, rules: Sequence[str]) -> None:
    port, names = free_port(), [f"r{number}" for number in range(len(rules))]
    made = Streams(route_of(*map(one_rule, rules), entryPoints=["db"])).routes
    found = []
    for name, route in ((f"r{route.provenance.rule[-2]}", route) for route in made):
        found.append(route.model_copy(update={"port": port, "backends": stream(port, up=name).backends}))
    async with contextlib.AsyncExitStack() as stack:
        ports = [await stack.enter_async_context(echo_server(name=each.encode())) for each in names]
        await stack.enter_async_context(streams(*found, *map(lambda at, key: backend(at, key=key), ports, names)))
        tcp = {
            "routers": {
                key: {"rule": rule, "entryPoints": [ENTRY_POINT], "service": key}
                for key, rule in zip(names, rules, strict=True)
            },
            "services": {
                key: {"loadBalancer": {"servers": [{"address": f"127.0.0.1:{at}"}]}}
                for key, at in zip(names, ports, strict=True)
            },
        }
        running = await stack.enter_async_context(traefik(tmp_path, {"tcp": tcp}))
        assert await _winner(port, "") == await _winner(running.port, "") != NONE


OPTIONS: dict[str, dict[str, Any]] = {
    "modern": {"minVersion": "VersionTLS13"},
    "old": {"maxVersion": "VersionTLS12"},
    "strict": {"clientAuth": {"clientAuthType": "RequireAndVerifyClientCert"}},
    "asking": {"clientAuth": {"clientAuthType": "VerifyClientCertIfGiven"}},
    "any": {"clientAuth": {"clientAuthType": "RequireAnyClientCert"}},
}
CLIENTS = ("strict", "asking")
"""Options that name authorities."""


async def _is_let_in(port: int, server_name: str, context: ssl.SSLContext) -> bool:
    async with asyncio.timeout(BOUND_S):
        try:
            streams_ = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=server_name)
            reader, writer = streams_
            writer.write(b"x")
            found = await reader.readexactly(2)
        except (OSError, asyncio.IncompleteReadError):
            return False
        writer.close()
        return found == b"up"


async def test_the_same_clients_are_let_in_by_options(tmp_path: Path) -> None:
    known, unknown = Authority("clients"), Authority("others")
    (tmp_path / "ca.pem").write_bytes(known.pem)
    contexts = {name: unverified() for name in ("1.2", "1.3", "known", "unknown")}
    contexts["1.2"].maximum_version = contexts["1.3"].minimum_version = ssl.TLSVersion.TLSv1_2
    contexts["1.3"].minimum_version = ssl.TLSVersion.TLSv1_3
    for name, authority in (("known", known), ("unknown", unknown)):
        (tmp_path / name).mkdir()
        contexts[name].load_cert_chain(*authority.issue("client").write(tmp_path / name))
    port = free_port()
    made = [
        resource("TLSOption", name, **_with_authorities(name, spec, {"secretNames": ["clients"]}))
        for name, spec in OPTIONS.items()
    ]
    routes = [
        route_of(one_rule(f"HostSNI(`{name}.test`)"), name=name, entryPoints=["db"], tls={"options": {"name": name}})
        for name in OPTIONS
    ]
    secret = tls_secret("clients", authorities_pem=known.pem.decode())
    entries = [
        route.model_copy(update={"port": port, "backends": stream(port, up="up").backends})
        for route in Streams(secret, *made, *routes).routes
    ]
    async with contextlib.AsyncExitStack() as stack:
        at = await stack.enter_async_context(echo_server(name=b"up"))
        await stack.enter_async_context(streams(*entries, backend(at, key="up")))
        files = {
            name: _with_authorities(name, spec, {"caFiles": [str(tmp_path / "ca.pem")]})
            for name, spec in OPTIONS.items()
        }
        routers = {
            name: {
                "rule": f"HostSNI(`{name}.test`)",
                "entryPoints": [ENTRY_POINT],
                "service": "up",
                "tls": {"options": name},
            }
            for name in OPTIONS
        }
        services = {"up": {"loadBalancer": {"servers": [{"address": f"127.0.0.1:{at}"}]}}}
        configuration = {"tcp": {"routers": routers, "services": services}, "tls": {"options": files}}
        running = await stack.enter_async_context(traefik(tmp_path, configuration))
        asked = [(name, how) for name in OPTIONS for how in contexts]
        theirs = {each: await _is_let_in(running.port, f"{each[0]}.test", contexts[each[1]]) for each in asked}
        ours = {each: await _is_let_in(port, f"{each[0]}.test", contexts[each[1]]) for each in asked}
    assert any(theirs.values())
    assert not all(theirs.values())
    assert ours == theirs


def _with_authorities(name: str, spec: dict[str, Any], authorities: dict[str, Any]) -> dict[str, Any]:
    return spec | {"clientAuth": spec["clientAuth"] | authorities} if name in CLIENTS else spec
