"""Configurations of Traefik's own integration tests, in it and in a gateway of ours, and the same requests to both."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from fakes.peers.traefik import needs_traefik
from integration.gateway.beside_traefik.configured import Ask, Both, both

pytestmark = needs_traefik

_CASES = Path(__file__).parent / "cases"
_OPTIONS = {"old": {"maxVersion": "VersionTLS12"}, "new": {"minVersion": "VersionTLS13"}}


def _read(file: str) -> dict[str, Any]:
    cases: dict[str, Any] = yaml.safe_load((_CASES / file).read_text())
    return cases


TLS = _read("tls.yaml")


@pytest.mark.parametrize("name", TLS)
async def test_a_request_over_tls_becomes_the_same(tmp_path: Path, name: str) -> None:
    case = TLS[name]
    routers = {name: {"service": name, **router} for name, router in case["routers"].items()}
    services = {router["service"]: {"loadBalancer": {}} for router in routers.values()}
    options = {**_OPTIONS, **case.get("options", {})}
    dynamic = {"http": {"routers": routers, "services": services}, "tls": {"options": options}}
    async with both(tmp_path, dynamic, ("web", "websecure", "second"), ["*.www.test"]) as gateways:
        for said in case["asks"]:
            ask = Ask(**{"at": "websecure", **said})
            theirs, ours = await gateways.ask(ask)
            assert ours == theirs, ask


STREAMS = _read("streams.yaml")


@pytest.mark.parametrize("name", STREAMS)
async def test_a_connection_to_a_port_of_streams_becomes_the_same(tmp_path: Path, name: str) -> None:
    case = STREAMS[name]
    dynamic: dict[str, Any] = {"tls": {"options": _OPTIONS}}
    for part in ("tcp", "http"):
        routers = {key: {"entryPoints": ["db"], "service": key, **each} for key, each in case.get(part, {}).items()}
        if routers:
            dynamic[part] = {"routers": routers, "services": {key: {"loadBalancer": {}} for key in routers}}
    async with both(tmp_path, dynamic, ("web", "db"), ["*.www.test"]) as gateways:
        for said in case["asks"]:
            ask = Ask(**{"at": "db", **said})
            theirs, ours = await gateways.ask(ask)
            assert ours == theirs, ask


MIDDLEWARES = _read("middlewares.yaml")


def _host(name: str) -> str:
    return f"case-{list(MIDDLEWARES).index(name)}.test"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def examples(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Both]:
    """Both, with a host for each example of a middleware."""
    http: dict[str, Any] = {"services": {name: {"loadBalancer": {}} for name in ("web", "pages", "auth")}}
    routers, middlewares = http.setdefault("routers", {}), http.setdefault("middlewares", {})
    for name, case in MIDDLEWARES.items():
        key = _host(name).removesuffix(".test")
        own = {f"{key}-{index}": each for index, each in enumerate(case["middlewares"])}
        middlewares |= own | case.get("further", {})
        routers[key] = {"rule": f"Host(`{_host(name)}`)", "service": "web", "middlewares": list(own)}
    async with both(tmp_path_factory.mktemp("traefik"), {"http": http}, ["web"]) as gateways:
        yield gateways


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", MIDDLEWARES)
async def test_an_example_of_a_middleware_does_the_same(name: str, examples: Both) -> None:
    for said in MIDDLEWARES[name]["asks"]:
        ask = Ask(**{"host": _host(name), **said})
        theirs, ours = await examples.ask(ask)
        assert ours == theirs, ask
