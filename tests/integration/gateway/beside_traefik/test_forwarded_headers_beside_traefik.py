"""What servers hear of the way of a request: the same entry points in Traefik and in a gateway of ours."""

import asyncio
import contextlib
import itertools
import socket
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import Client, Conversation, Origin
from fakes.gateway.served import origins, read_answer
from fakes.gateway.tls import Authority, unverified
from fakes.peers.traefik import ENTRY_POINT, needs_traefik, traefik
from fakes.translator.applied import world
from fakes.translator.traefik import route, rule
from headgate.translator.world.entry_point_settings import EntryPointSettings, read_entry_points
from headgate.translator.world.settings import TranslationSettings

pytestmark = [needs_traefik, pytest.mark.asyncio(loop_scope="module")]

HOST = "foo.test"
TRUST: dict[str, Any] = {
    "nobody": {},
    "all": {"insecure": True},
    "peer": {"trustedIPs": ["127.0.0.1"]},
    "network": {"trustedIPs": ["127.0.0.7/8"]},
    "other": {"trustedIPs": ["10.0.1.100"]},
    "other-network": {"trustedIPs": ["1.2.3.4/24"]},
    "as-it-is": {"insecure": True, "notAppendXForwardedFor": True},
    "nobody-added": {"notAppendXForwardedFor": True},
    "passed": {"insecure": True, "connection": ["foo"]},
}
_NAMES = ("Proto", "Port", "Host", "Uri", "Method", "Prefix", "Tls-Client-Cert", "Tls-Client-Cert-Info")
CLAIMS = (
    "X-Forwarded-For: 10.0.1.0, 10.0.1.12",
    "X-Forwarded-Uri: /bar",
    "X-Forwarded-Method: GET",
    "X-Forwarded-Tls-Client-Cert: Cert",
    "X-Forwarded-Tls-Client-Cert-Info: CertInfo",
    "X-Forwarded-Prefix: /prefix",
)
UNDERSCORES = ("X_forwarded_proto: https", "X_forwarded_for: 10.0.0.1")
SEVERAL = ("X-Forwarded-For: 10.0.0.4, 10.0.0.3", "X-Forwarded-For: 10.0.0.2, 10.0.0.1", "X-Forwarded-For: 10.0.0.0")
CONNECTION = (
    *(f"X-Forwarded-{name}: {'https' if name == 'Proto' else 1234}" for name in _NAMES),
    "X-Forwarded-For: 10.0.0.1",
    "X-Real-Ip: 10.0.0.2",
    f"Connection: {', '.join(f'X-Forwarded-{name}' for name in (*_NAMES, 'For'))}, X-Real-Ip, foo",
    "Foo: bar",
    "Bar: foo",
)
ASKS: dict[str, Sequence[str]] = {
    "nothing": (),
    "claims": CLAIMS,
    "underscores": UNDERSCORES,
    "several": SEVERAL,
    "real": ("X-Real-Ip: 10.0.1.12",),
    "proto": ("X-Forwarded-Proto: https",),
    "port": ("X-Forwarded-Port: 8443",),
    "host": ("X-Forwarded-Host: evil.test:81",),
    "connection": CONNECTION,
    "lower-connection": [line.lower() for line in CONNECTION],
    "wss-proto": ("X-Forwarded-Proto: wss",),
    "unknown-proto": ("X-Forwarded-Proto: foo",),
    "server": ("X-Forwarded-Server: somebody",),
    "connection-of-two": ("Connection: foo, bar", "Foo: bar", "Bar: foo"),
    "no-websocket": ("Connection: foo", "Upgrade: websocket"),
}
OWN = ("x-request-id", "user-agent", "accept-encoding", "connection")
"""Each gateway writes them in its own way."""


class Side(NamedTuple):
    """Ports of one of the two, and the server behind it."""

    ports: dict[str, int]
    server: Origin


async def _serve(conversation: Conversation) -> None:
    while True:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Side, Side]]:
    """Traefik and ours, each with an entry point for each trust, and routes with TLS and without."""
    theirs = {name: free_port("127.0.0.1", socket.SOCK_STREAM) for name in TRUST}
    ours = {name: free_port("127.0.0.1", socket.SOCK_STREAM) for name in TRUST}
    read = {
        name: EntryPointSettings.model_validate({"address": f":{ours[name]}", "forwardedHeaders": trust})
        for name, trust in TRUST.items()
    }
    flags = [f"--entrypoints.{name}.address=127.0.0.1:{port}" for name, port in theirs.items()]
    for name, trust in TRUST.items():
        for field, value in trust.items():
            written = "true" if value is True else ",".join(value)
            flags.append(f"--entrypoints.{name}.forwardedheaders.{field.lower()}={written}")
    router = {"rule": f"Host(`{HOST}`)", "entryPoints": [ENTRY_POINT, *TRUST], "service": "up"}
    async with contextlib.AsyncExitStack() as stack:
        (origin,) = await stack.enter_async_context(origins(_serve))
        http = {
            "routers": {"plain": router, "secured": {**router, "tls": {}}},
            "services": {"up": {"loadBalancer": {"servers": [{"url": f"http://127.0.0.1:{origin.port}"}]}}},
        }
        folder = tmp_path_factory.mktemp("traefik")
        await stack.enter_async_context(traefik(folder, {"http": http}, *flags))
        settings = TranslationSettings(entry_points=read_entry_points(read))
        made = await stack.enter_async_context(world(settings=settings, web=_serve))
        made.proxy.proxy.present(HOST, Authority().issue(HOST))
        points = {"entryPoints": list(TRUST)}
        made.proxy.apply(
            route(rule(f"Host(`{HOST}`)"), name="plain", spec=points),
            route(rule(f"Host(`{HOST}`)"), name="secured", spec={**points, "tls": {}}),
        )
        yield Side(theirs, origin), Side(ours, made.servers["web"])


_MARKS = itertools.count()


async def _heard(side: Side, trust: str, lines: Sequence[str], *, tls: bool, host: str = HOST) -> Any:
    context = unverified() if tls else None
    port = side.ports[trust]
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname=HOST if tls else None
    )
    client = Client(reader, writer)
    mark = f"X-Mark: {next(_MARKS)}"
    head = "\r\n".join(("GET / HTTP/1.1", f"Host: {host}", mark, *lines, "", ""))
    await client.send(head.encode())
    got = await read_answer(client)
    client.close()
    (heard,) = [each for each in side.server.heads if f"{mark}\r\n".encode() in each]
    fields = [line.partition(": ") for line in heard.decode().split("\r\n")[1:] if line]
    return got.status, sorted(
        (name.lower(), value)
        for name, _, value in fields
        if name.lower() not in OWN and "_" not in name and name != "X-Mark"
    )


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("name", ASKS)
@pytest.mark.parametrize("trust", TRUST)
async def test_servers_hear_the_same_of_a_request(trust: str, name: str, tls: bool, both: tuple[Side, Side]) -> None:
    theirs, ours = [await _heard(side, trust, ASKS[name], tls=tls) for side in both]
    assert ours == theirs


WEBSOCKET = ("Connection: upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: AAAA", "Sec-WebSocket-Version: 13")


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("claims", [(), ("X-Forwarded-Proto: wss",), ("X-Forwarded-Proto: https",)])
@pytest.mark.parametrize("trust", ["nobody", "all"])
async def test_servers_hear_the_same_of_a_websocket(
    trust: str, claims: Sequence[str], tls: bool, both: tuple[Side, Side]
) -> None:
    theirs, ours = [await _heard(side, trust, (*WEBSOCKET, *claims), tls=tls) for side in both]
    assert ours == theirs
    assert ("upgrade", "websocket") in ours[1]


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("name", ["nothing", "proto", "port", "host"])
@pytest.mark.parametrize("trust", ["nobody", "all"])
async def test_servers_hear_the_port_of_the_host(trust: str, name: str, tls: bool, both: tuple[Side, Side]) -> None:
    theirs, ours = [await _heard(side, trust, ASKS[name], tls=tls, host=f"{HOST}:8081") for side in both]
    assert ours == theirs
