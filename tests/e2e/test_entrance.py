"""The entrance of the compose stack before a gateway: HTTP/3 comes through, and the gateway knows its clients."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio
import yaml

from fakes.gateway.ports import free_ports
from fakes.peers.http3 import http3_client
from fakes.stack import Stack

ROOT = Path(__file__).parents[2]
HOST = "demo.localhost"
GATEWAY = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["gateway"]["environment"]
pytestmark = pytest.mark.asyncio(loop_scope="module")


class Entered(NamedTuple):
    gateway: Stack
    http_port: int
    https_port: int


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def entered(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Entered]:
    """examples/stack behind deploy/stack/entrance, with other ports and one gateway on this machine."""
    routes, streams = tmp_path_factory.mktemp("routes"), tmp_path_factory.mktemp("streams")
    red, blue, http, https = free_ports(4)
    there = (ROOT / "examples" / "stack" / "demo.yaml").read_text()
    for number, port in ((9101, red), (9102, blue)):
        there = there.replace(str(number), str(port))
    (routes / "demo.yaml").write_text(re.sub(r"\w+\.stack\.internal", "localhost", there))
    gateway = Stack(
        manifests=routes,
        extra=[f"--demo-backend=red={red}", f"--demo-backend=blue={blue}"],
        environment={
            "HEADGATE_HTTP3": "true",
            "HEADGATE_PROXY_PROTOCOL": GATEWAY["HEADGATE_PROXY_PROTOCOL"],
            "HEADGATE_PROXY_PROTOCOL_NETWORKS": "127.0.0.0/8",
        },
        wait_until_ready=False,
    )
    here = (ROOT / "deploy" / "stack" / "entrance" / "streams.yaml").read_text()
    for before, after in (
        ('stream-port: "8080"', f'stream-port: "{http}"'),
        ('stream-port: "8443"', f'stream-port: "{https}"'),
        ("port: 8080 }", f"port: {gateway.http_port} }}"),
        ("[{ port: 8443", f"[{{ port: {gateway.https_port}"),
        ('"9080"', f'"{gateway.admin_port}"'),
        ("gateway.stack.internal", "localhost"),
    ):
        assert before in here
        here = here.replace(before, after)
    (streams / "streams.yaml").write_text(here)
    # A name of a cluster's objects is not followed to this machine unless it is allowed.
    allowed = {"HEADGATE_ALLOWED_DESTINATIONS": "127.0.0.0/8"}
    async with gateway, Stack(manifests=streams, environment=allowed, wait_until_ready=False) as entrance:
        for stack in (gateway, entrance):
            await stack.wait_for_log("ready: traffic is served")
        yield Entered(gateway, http, https)


async def test_http3_comes_through_and_the_gateway_knows_its_client(entered: Entered) -> None:
    async with http3_client(entered.https_port, HOST) as client:
        answer = await client.ask(host=HOST)
        assert answer.status == 200
        told = {name.lower(): value for name, value in json.loads(answer.body)["headers"].items()}
        # The gateway's own ports have other numbers; this one is in the PROXY header of each datagram.
        assert told["x-forwarded-port"] == str(entered.https_port)
