"""Plain HTTP, HTTPS and streams on one entry point: the same routers in Traefik and in ours, the same connections."""

import contextlib
import ssl
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography import x509

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import Client
from fakes.gateway.served import Served, asking, read_answer
from fakes.gateway.tls import Authority, unverified
from fakes.peers.traefik import ENTRY_POINT, needs_traefik, traefik
from fakes.translator.applied import World, world
from fakes.translator.traefik import route as http_route
from fakes.translator.traefik import rule as http_rule
from fakes.translator.traefik_streams import rule, tcp
from headgate.translator.world.entry_points import OWN_ENTRY_POINTS, EntryPoint
from headgate.translator.world.settings import TranslationSettings

pytestmark = needs_traefik

NAMES = ("a.test", "b.test", "c.test")
NONE = "none"


class Router(NamedTuple):
    """A router whose name is its Service's, too."""

    rule: str
    protocol: str = "http"
    has_tls: bool = False


class Asked(NamedTuple):
    """A request for a host."""

    host: str = NAMES[0]
    has_tls: bool = True
    alpn: tuple[str, ...] = ()


HTTPS_A = Router("Host(`a.test`)", has_tls=True)
REST = Router("HostSNI(`*`)", "tcp", has_tls=True)
OVER_TLS = [Asked(name) for name in NAMES]
CASES: dict[str, tuple[list[Router], list[Asked]]] = {
    "http and https": ([Router("Host(`a.test`)"), HTTPS_A], [Asked(has_tls=False), Asked()]),
    "a stream for the rest leaves hosts alone": ([HTTPS_A, REST], OVER_TLS),
    "a rule for any host goes before the rest": ([Router("PathPrefix(`/`)", has_tls=True), REST], OVER_TLS),
    "server names": ([HTTPS_A, Router("HostSNI(`b.test`)", "tcp", has_tls=True)], OVER_TLS[:2]),
    "plain streams go before http": (
        [Router("HostSNI(`*`)", "tcp"), Router("Host(`a.test`)"), HTTPS_A],
        [Asked(has_tls=False), Asked()],
    ),
    "protocols": (
        [
            Router("HostSNI(`a.test`) && ALPN(`db`)", "tcp", has_tls=True),
            Router("HostSNI(`a.test`)", "tcp", has_tls=True),
        ],
        [Asked(alpn=("db",)), Asked()],
    ),
}


async def _winner(proxy: Served, port: int, asked: Asked) -> str:
    context = None
    if asked.has_tls:
        context = unverified()
        context.set_alpn_protocols([*asked.alpn, "http/1.1"])
    with contextlib.suppress(OSError, EOFError, ssl.SSLError):
        client: Client = await proxy.connect(context, asked.host, port)
        await client.send(asking(host=asked.host))
        got = await read_answer(client)
        return got.body.decode() if got.status == 200 else NONE
    return NONE


def _ours(routers: list[Router]) -> list[Any]:
    made = []
    for number, (text, protocol, has_tls) in enumerate(routers):
        to, spec = {"name": f"r{number}", "port": 80}, {"entryPoints": ["api"], **({"tls": {}} if has_tls else {})}
        name = f"one-{number}"
        made.append(
            tcp(rule(text, to), name=name, **spec)
            if protocol == "tcp"
            else http_route(http_rule(text, to), name=name, spec=spec)
        )
    return made


def _theirs(routers: list[Router], made: World) -> Any:
    dynamic: dict[str, Any] = {}
    for number, (text, protocol, has_tls) in enumerate(routers):
        key, at = f"r{number}", f"127.0.0.1:{made.port(f'r{number}')}"
        part = dynamic.setdefault(protocol, {"routers": {}, "services": {}})
        router = {"rule": text, "entryPoints": [ENTRY_POINT], "service": key}
        part["routers"][key] = {**router, "tls": {}} if has_tls else router
        server = {"address": at} if protocol == "tcp" else {"url": f"http://{at}"}
        part["services"][key] = {"loadBalancer": {"servers": [server]}}
    return dynamic


@pytest.mark.parametrize("name", CASES)
async def test_the_same_router_takes_a_connection(tmp_path: Path, name: str) -> None:
    routers, asked = CASES[name]
    api = free_port()
    settings = TranslationSettings(entry_points=(*OWN_ENTRY_POINTS, EntryPoint("api", "tcp", api)))
    async with world(*(f"r{number}" for number in range(len(routers))), settings=settings) as made:
        proxy = made.proxy.proxy
        for each in NAMES:
            proxy.present(each, Authority("gateway").issue(each, x509.DNSName(each)))
        made.proxy.apply(*_ours(routers))
        async with traefik(tmp_path, _theirs(routers, made)) as running:
            found = [
                (each.host, each.has_tls, await _winner(proxy, running.port, each), await _winner(proxy, api, each))
                for each in asked
            ]
    assert [theirs for *_, theirs, _ in found] == [ours for *_, ours in found], found
    assert any(ours != NONE for *_, ours in found)
