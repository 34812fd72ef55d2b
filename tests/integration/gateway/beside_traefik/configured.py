"""One dynamic configuration of Traefik, given to it and, as objects of Kubernetes, to a gateway of ours."""

import asyncio
import contextlib
import copy
import json
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from cryptography import x509

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import Client, Conversation, Script
from fakes.gateway.served import Got, read_answer
from fakes.gateway.tls import Authority, Issued, unverified
from fakes.peers.traefik import ENTRY_POINT, traefik
from fakes.translator.applied import World, world
from headgate.common.secret import Secret
from headgate.gateway.tls import CertificateEntry
from headgate.translator.world.entry_points import OWN_ENTRY_POINTS, EntryPoint
from headgate.translator.world.settings import TranslationSettings
from integration.gateway.beside_traefik.objects import objects_of, servers_of

BOUND_S: Final = 10
_VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
_OWN_ANSWER: Final = frozenset({"connection", "content-length", "date", "server", "x-headgate-reason", "x-request-id"})
"""Headers of answers that each gateway writes in its own way."""
_REFUSED: Final = frozenset({"content-type", "x-content-type-options"})
"""Those of answers that a gateway gives by itself, besides."""
_OWN_REQUEST: Final = frozenset({"accept-encoding", "user-agent", "x-request-id", "connection"})
_OWN_OF_SERVER: Final = {"auth": frozenset({"x-forwarded-server"})}
"""Ours does not tell servers of forwardAuth its own name."""
_NOTHING: Final = frozenset[str]()
_FAILED: Final = OSError, EOFError


class Ask(NamedTuple):
    """A request, as it is sent."""

    at: str = ENTRY_POINT
    """Name of the entry point."""
    host: str = "a.test"
    path: str = "/"
    method: str = "GET"
    headers: tuple[str, ...] = ()
    body: str | None = None
    sni: str | None = None
    """Server name of a connection over TLS; empty for none, None for a plain connection."""
    tls: str = ""
    """The only version that the client speaks."""


class Seen(NamedTuple):
    """What became of a request."""

    status: int
    """0: the connection failed."""
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    """Of a server's answer."""
    served: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = ()
    """Which servers were asked for what, and with which headers."""


@dataclass
class Both:
    """Traefik and ours, running before the same servers."""

    theirs: Mapping[str, int]
    """Ports by entry point."""
    ours: Mapping[str, int]
    heard: list[tuple[str, bytes]]
    """What servers got: their names, and heads."""

    async def ask(self, ask: Ask) -> tuple[Seen, Seen]:
        """Return what Traefik and ours make of a request."""
        return await self._ask(self.theirs[ask.at], ask), await self._ask(self.ours[ask.at], ask)

    async def _ask(self, port: int, ask: Ask) -> Seen:
        self.heard.clear()
        try:
            async with asyncio.timeout(BOUND_S):
                got = await _answer(port, ask)
        except _FAILED:
            return Seen(0)
        is_own = not got["x-origin"]
        headers = _fields(got.head, _OWN_ANSWER | _REFUSED if is_own else _OWN_ANSWER, port)
        served = (
            (
                name,
                head.split(b" HTTP")[0].decode(),
                _fields(head, _OWN_REQUEST | _OWN_OF_SERVER.get(name, _NOTHING), port),
            )
            for name, head in self.heard
        )
        return Seen(got.status, headers, "" if is_own else got.body.decode(), tuple(served))


async def _answer(port: int, ask: Ask) -> Got:
    context = None
    if ask.sni is not None:
        context = unverified()
        if ask.tls:
            context.minimum_version = context.maximum_version = _VERSIONS[ask.tls]
    streams = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=ask.sni)
    client = Client(*streams)
    length = () if ask.body is None else (f"Content-Length: {len(ask.body)}",)
    lines = (f"{ask.method} {ask.path} HTTP/1.1", f"Host: {ask.host}", *ask.headers, *length)
    try:
        await client.send("\r\n".join((*lines, "", ask.body or "")).encode())
        return await read_answer(client, has_body=ask.method != "HEAD")
    finally:
        client.close()


def _fields(head: bytes, own: frozenset[str], port: int) -> tuple[tuple[str, str], ...]:
    lines = [line.partition(": ") for line in head.decode("latin-1").split("\r\n")[1:] if line]
    found = ((name.lower(), value.replace(str(port), "PORT")) for name, _, value in lines)
    return tuple(sorted(each for each in found if each[0] not in own))


@contextlib.asynccontextmanager
async def both(
    folder: Path, dynamic: Mapping[str, Any], entry_points: Sequence[str], certificates: Sequence[str] = ()
) -> AsyncIterator[Both]:
    """Run both, with a server for each service; `{NAME}` in the configuration is the address of one."""
    heard: list[tuple[str, bytes]] = []
    names = servers_of(dynamic)
    further = {name: free_port() for name in entry_points if name not in ("web", "websecure")}
    points = (*OWN_ENTRY_POINTS, *(EntryPoint(name, "tcp", port) for name, port in further.items()))
    theirs = {name: free_port() for name in entry_points if name != ENTRY_POINT}
    pairs = {name: Authority("gateway").issue(name, x509.DNSName(name)) for name in certificates}
    async with contextlib.AsyncExitStack() as stack:
        scripts = {name: _server(name, heard) for name in names}
        settings = TranslationSettings(entry_points=points)
        made = await stack.enter_async_context(world(settings=settings, **scripts))
        made.proxy.proxy.certificates.set_certificates([_entry(name, pair) for name, pair in pairs.items()])
        addresses = {f"{{{name}}}": f"http://127.0.0.1:{made.port(name)}" for name in names}
        dynamic = _with(addresses, dynamic)
        made.proxy.apply(*objects_of(dynamic))
        flags = [f"--entrypoints.{name}.address=127.0.0.1:{port}" for name, port in theirs.items()]
        written = _written(folder, dynamic, made, pairs)
        peer = await stack.enter_async_context(traefik(folder, written, *flags))
        proxy = made.proxy.proxy
        ours = {"web": proxy.port, "websecure": proxy.https_port, **further}
        yield Both({ENTRY_POINT: peer.port, **theirs}, ours, heard)


def _server(name: str, heard: list[tuple[str, bytes]]) -> Script:
    async def serve(conversation: Conversation) -> None:
        while True:
            head, _ = await conversation.request()
            heard.append((name, head))
            await conversation.send(_said(name, head.split(b" ")[1].decode().partition("?")[0], head[:4] == b"HEAD"))

    return serve


def _said(name: str, path: str, is_head: bool) -> bytes:
    """Return the answer of a server to a path: a status by its number, a long text, or one that says no type."""
    status = path[1:] if path[1:].isdecimal() else "200"
    body = "" if status in ("204", "304") else "text " * 800 if path == "/long" else name
    lines = [f"HTTP/1.1 {status} -", f"X-Origin: {name}"]
    lines += [] if path == "/untyped" else ["Content-Type: text/plain"]
    lines += ["X-Custom-Response-Header: own", "X-Frame-Options: OWN"] if path == "/own" else []
    lines += [f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join((*lines, "", "" if is_head else body)).encode()


def _with(addresses: Mapping[str, str], dynamic: Mapping[str, Any]) -> dict[str, Any]:
    """Write the addresses of servers where a configuration names them in braces."""
    text = json.dumps(dynamic)
    for name, address in addresses.items():
        text = text.replace(name, address)
    written: dict[str, Any] = json.loads(text)
    return written


def _entry(name: str, pair: Issued) -> CertificateEntry:
    return CertificateEntry((name,), pair.chain_pem.decode(), Secret(pair.key_pem), name, name, "")


def _written(folder: Path, dynamic: Mapping[str, Any], made: World, pairs: Mapping[str, Issued]) -> dict[str, Any]:
    """Return the configuration with the addresses of servers and the files of certificates."""
    written = copy.deepcopy(dict(dynamic))
    for part in ("http", "tcp"):
        for name, service in written.get(part, {}).get("services", {}).items():
            if "loadBalancer" in service:
                at = f"127.0.0.1:{made.port(name)}"
                server = {"url": f"http://{at}"} if part == "http" else {"address": at}
                service["loadBalancer"] = {**service["loadBalancer"], "servers": [server]}
    for index, pair in enumerate(pairs.values()):
        (folder / str(index)).mkdir()
        chain, key = pair.write(folder / str(index))
        files = {"certFile": str(chain), "keyFile": str(key)}
        written.setdefault("tls", {}).setdefault("certificates", []).append(files)
    return written
