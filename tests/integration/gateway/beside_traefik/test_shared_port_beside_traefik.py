"""Who gets a connection to a port that HTTP, HTTPS and streams share: the cases of Traefik's `Test_Routing`, in both.

Options of TLS are told apart by their versions, 1.2 and 1.3: Traefik's own test has 1.0 in the place of 1.3.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import Conversation
from fakes.gateway.tls import Authority, unverified
from fakes.peers.traefik import ENTRY_POINT, needs_traefik, traefik
from fakes.translator.applied import World, world
from fakes.translator.traefik import resource, route, rule
from fakes.translator.traefik_streams import rule as stream_rule
from fakes.translator.traefik_streams import tcp
from headgate.translator.world.entry_points import OWN_ENTRY_POINTS, EntryPoint
from headgate.translator.world.settings import TranslationSettings

pytestmark = needs_traefik

HOST = "foo.bar"
BOUND_S = 0.7
ANY_SNI, SNI = "HostSNI(`*`)", f"HostSNI(`{HOST}`)"
OPTIONS = {"old": {"minVersion": "VersionTLS12", "maxVersion": "VersionTLS12"}, "new": {"minVersion": "VersionTLS13"}}
"""`new` is the default one, too."""
ROUTERS: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "TCP CatchAll": ("tcp", ANY_SNI, None),
    "HTTP": ("http", f"Host(`{HOST}`)", None),
    "TCP TLS CatchAll": ("tcp", ANY_SNI, {"options": "new"}),
    "TCP TLS CatchAll passthrough": ("tcp", ANY_SNI, {"options": "old", "passthrough": True}),
    "TCP TLS": ("tcp", SNI, {"options": "old"}),
    "HTTPS Path prefix": ("http", "PathPrefix(`/`)", {"options": "new"}),
    "HTTPS": ("http", f"Host(`{HOST}`)", {"options": "old"}),
}
CASES: dict[str, Sequence[str]] = {
    "Single TCP CatchAll router": ["TCP CatchAll"],
    "Single HTTP router": ["HTTP"],
    "Single TCP TLS router": ["TCP TLS"],
    "Single TCP TLS CatchAll router": ["TCP TLS CatchAll"],
    "Single HTTPS router": ["HTTPS"],
    "Single HTTPS PathPrefix router": ["HTTPS Path prefix"],
    "TCP TLS passthrough": ["TCP TLS CatchAll passthrough"],
    "TCP CatchAll router && HTTP router": ["TCP CatchAll", "HTTP"],
    "TCP TLS CatchAll router && HTTP router": ["TCP TLS CatchAll", "HTTP"],
    "TCP CatchAll router && HTTPS router": ["TCP CatchAll", "HTTPS"],
    "TCP TLS router && HTTPS router": ["TCP TLS", "HTTPS"],
    "TCP TLS CatchAll router && HTTPS router": ["TCP TLS CatchAll", "HTTPS"],
    "TCP TLS router && HTTPS Path prefix router": ["TCP TLS", "HTTPS Path prefix"],
    "TCP TLS router && TCP TLS CatchAll router": ["TCP TLS", "TCP TLS CatchAll"],
    "HTTPS router && HTTPS CatchAll router": ["HTTPS", "HTTPS Path prefix"],
    "All routers, all checks": [name for name in ROUTERS if "passthrough" not in name],
}


DIFFERENT: dict[str, dict[tuple[str, str], str]] = {
    "Single HTTP router": {("1.3", "request"): "none"},
    "HTTPS router && HTTPS CatchAll router": {("1.2", "request"): "200"},
    "All routers, all checks": {("1.2", "request"): "200"},
}
"""Ours closes TLS connections to a port of plain HTTP, where Traefik answers 404; and options of a rule without a host
concern no other host, where Traefik answers 421."""


async def _web(conversation: Conversation) -> None:
    while True:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nHTTP")


async def _stream(conversation: Conversation) -> None:
    """Wait a while for the client, then speak first."""
    try:
        async with asyncio.timeout(0.2):
            await conversation.reader.read(100)
        await conversation.send(b"TCP-CLIENT-FIRST")
    except TimeoutError:
        await conversation.send(b"TCP-SERVER-FIRST")


def _context(version: ssl.TLSVersion) -> ssl.SSLContext:
    context = unverified()
    context.minimum_version = context.maximum_version = version
    return context


CONTEXTS = {"plain": None, "1.2": _context(ssl.TLSVersion.TLSv1_2), "1.3": _context(ssl.TLSVersion.TLSv1_3)}
REQUEST = f"GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode()
CHECKS = [(version, first) for version in CONTEXTS for first in ("request", "bytes")] + [("plain", "nothing")]


async def _check(port: int, version: str, first: str) -> str:
    """Return who answers a connection."""
    context, name = CONTEXTS[version], HOST if version != "plain" else None
    sent = {"request": REQUEST, "bytes": b"ping\r\n\r\n", "nothing": b""}[first]
    try:
        async with asyncio.timeout(BOUND_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    except (OSError, TimeoutError, ssl.SSLError):
        return "none"
    answer = b""
    with contextlib.suppress(OSError, TimeoutError, ssl.SSLError):
        async with asyncio.timeout(BOUND_S):
            writer.write(sent)
            answer = await reader.read(100)
    writer.transport.abort()
    if answer.startswith(b"TCP-"):
        return answer[:16].decode()
    status = answer[9:12].decode() if answer.startswith(b"HTTP/1.1 ") else "none"
    return "none" if status == "400" else status


def _ours(names: Sequence[str]) -> list[Any]:
    made = []
    for number, name in enumerate(names):
        kind, text, tls = ROUTERS[name]
        said = {} if tls is None else {"tls": {**tls, "options": {"name": tls["options"]}}}
        to, spec = {"name": kind, "port": 80}, {"entryPoints": ["api"], **said}
        if kind == "tcp":
            made.append(tcp(stream_rule(text, to), name=f"one-{number}", **spec))
        else:
            made.append(route(rule(text, to), name=f"one-{number}", spec=spec))
    options = [resource("TLSOption", name, spec) for name, spec in {**OPTIONS, "default": OPTIONS["new"]}.items()]
    return [*options, *made]


def _theirs(names: Sequence[str], made: World, folder: Path) -> Any:
    chain, key = Authority("gateway").issue(HOST, x509.DNSName(HOST)).write(folder)
    dynamic: dict[str, Any] = {
        "tls": {
            "options": {**OPTIONS, "default": OPTIONS["new"]},
            "certificates": [{"certFile": str(chain), "keyFile": str(key)}],
        }
    }
    for number, name in enumerate(names):
        kind, text, tls = ROUTERS[name]
        part = dynamic.setdefault(kind, {"routers": {}, "services": {}})
        router = {"rule": text, "entryPoints": [ENTRY_POINT], "service": kind}
        part["routers"][f"r{number}"] = router if tls is None else {**router, "tls": tls}
        at = f"127.0.0.1:{made.port(kind)}"
        server = {"address": at} if kind == "tcp" else {"url": f"http://{at}"}
        part["services"][kind] = {"loadBalancer": {"servers": [server]}}
    return dynamic


@pytest.mark.parametrize("name", CASES)
async def test_the_same_router_takes_a_connection_to_a_shared_port(tmp_path: Path, name: str) -> None:
    port = free_port()
    settings = TranslationSettings(entry_points=(*OWN_ENTRY_POINTS, EntryPoint("api", "tcp", port)))
    async with contextlib.AsyncExitStack() as stack:
        made = await stack.enter_async_context(world(settings=settings, http=_web, tcp=_stream))
        made.proxy.proxy.present(HOST, Authority("gateway").issue(HOST, x509.DNSName(HOST)))
        made.proxy.apply(*_ours(CASES[name]))
        theirs = await stack.enter_async_context(traefik(tmp_path, _theirs(CASES[name], made, tmp_path)))
        found = {check: [await _check(at, *check) for at in (theirs.port, port)] for check in CHECKS}
    theirs_of = {check: one for check, (one, _) in found.items()}
    assert {check: ours for check, (_, ours) in found.items()} == theirs_of | DIFFERENT.get(name, {})
