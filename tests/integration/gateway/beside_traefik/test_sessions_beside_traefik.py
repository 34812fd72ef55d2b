"""Sessions go on where a client goes from one gateway to the other: the same servers are given to both."""

import asyncio
from pathlib import Path

from fakes.gateway.proxied import Client
from fakes.gateway.served import HOST, Got, asking, read_answer
from fakes.peers.traefik import needs_traefik, traefik
from fakes.translator.applied import world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.traefik import ANY, resource, route, rule

pytestmark = needs_traefik

STICKY = {"cookie": {"name": "kept"}}


async def _ask(port: int, **headers: str) -> Got:
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    await client.send(asking(**headers))
    got = await read_answer(client)
    client.close()
    return got


async def _check_that_sessions_go_on(*ports: int) -> None:
    for first, second in (ports, ports[::-1]):
        for _ in range(6):
            begun = await _ask(first)
            went_on = await _ask(second, Cookie=begun.cookie)
            assert (went_on.body, went_on.cookie) == (begun.body, "")


async def test_a_session_goes_on_behind_the_other_gateway(tmp_path: Path) -> None:
    async with world("one", "two", "three") as made:
        slices = [endpoint_slice("all", "127.0.0.1", name=name, port=made.port(name)) for name in made.servers]
        services = {"name": "all", "port": 80, "sticky": STICKY}
        made.proxy.apply(service("all"), *slices, route(rule(ANY, services)))
        servers = [{"url": f"http://127.0.0.1:{server.port}"} for server in made.servers.values()]
        dynamic = {
            "http": {
                "routers": {"all": {"rule": f"Host(`{HOST}`)", "service": "all"}},
                "services": {"all": {"loadBalancer": {"servers": servers, "sticky": STICKY}}},
            }
        }
        async with traefik(tmp_path, dynamic) as theirs:
            await _check_that_sessions_go_on(theirs.port, made.proxy.proxy.port)


async def test_a_session_with_a_weighted_service_goes_on_behind_the_other_gateway(tmp_path: Path) -> None:
    async with world("one", "two") as made:
        names = {name: f"default-{name}-80" for name in made.servers}
        services = [{"name": name, "port": 80} for name in names]
        made.proxy.apply(resource("TraefikService", "all", {"weighted": {"services": services, "sticky": STICKY}}))
        made.proxy.apply(route(rule(ANY, {"name": "all", "kind": "TraefikService"})))
        alone = {
            known: {"loadBalancer": {"servers": [{"url": f"http://127.0.0.1:{made.port(name)}"}]}}
            for name, known in names.items()
        }
        weighted = {"services": [{"name": known, "weight": 1} for known in names.values()], "sticky": STICKY}
        dynamic = {
            "http": {
                "routers": {"all": {"rule": f"Host(`{HOST}`)", "service": "all"}},
                "services": {"all": {"weighted": weighted}, **alone},
            }
        }
        async with traefik(tmp_path, dynamic) as theirs:
            await _check_that_sessions_go_on(theirs.port, made.proxy.proxy.port)
