"""Configurations of Traefik's own integration tests, in it and in a gateway of ours, and the same requests to both."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.peers.traefik import needs_traefik
from integration.gateway.beside_traefik.configured import Ask, both

pytestmark = needs_traefik

_CASES = Path(__file__).parent / "cases"
_OPTIONS = {"old": {"maxVersion": "VersionTLS12"}, "new": {"minVersion": "VersionTLS13"}}


def _cases(file: str) -> list[Any]:
    cases = yaml.safe_load((_CASES / file).read_text())
    return [pytest.param(case, id=name) for name, case in cases.items()]


@pytest.mark.parametrize("case", _cases("tls.yaml"))
async def test_a_request_over_tls_becomes_the_same(tmp_path: Path, case: Any) -> None:
    routers = {name: {"service": name, **router} for name, router in case["routers"].items()}
    services = {router["service"]: {"loadBalancer": {}} for router in routers.values()}
    options = {**_OPTIONS, **case.get("options", {})}
    dynamic = {"http": {"routers": routers, "services": services}, "tls": {"options": options}}
    async with both(tmp_path, dynamic, ("web", "websecure", "second"), ["*.www.test"]) as gateways:
        for said in case["asks"]:
            ask = Ask(**{"at": "websecure", **said})
            theirs, ours = await gateways.ask(ask)
            assert ours == theirs, ask
