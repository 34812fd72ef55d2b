"""Addresses of Gateways in a cluster: in statuses, on ports, and kept when the log and older Gateways are gone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from fakes.gateway.ports import free_port
from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.store import Resource
from fakes.peers.echo import EchoServer
from fakes.stack import Stack
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.gateway_api import GROUP, gateway, gateway_class, listener, route, to
from fakes.waiting import until
from headgate.common.resources import GATEWAY_KINDS

POOL = "127.11.0.4/31"


def bare(manifest: Any) -> Any:
    """A manifest as somebody applies it, in the version that the server has."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in ("uid", "generation")}
    return {**manifest, "metadata": metadata}


@asynccontextmanager
async def stack_of(api: FakeKubernetes, folder: Path) -> AsyncIterator[Stack]:
    kubeconfig = api.write_kubeconfig(folder / "config")
    async with Stack(kubeconfig=kubeconfig, environment={"HEADGATE_GATEWAY_ADDRESSES": POOL}) as stack:
        yield stack


def addresses(api: FakeKubernetes, name: str) -> list[str]:
    status = api.get("gateways", name).get("status", {})
    return [one["value"] for one in status.get("addresses", ())]


async def address_of(api: FakeKubernetes, name: str) -> str:
    await until(lambda: len(addresses(api, name)) == 1)
    return addresses(api, name)[0]


async def answers(address: str, port: int, name: str) -> None:
    """Wait until a Service answers at an address; ports open a moment behind the status."""

    async def does() -> bool:
        async with aiohttp.ClientSession() as session:
            try:
                async with session.get(f"http://{address}:{port}/", headers={"Host": "foo.com"}) as answer:
                    return answer.status == 200 and (await answer.json())["name"] == name
            except aiohttp.ClientConnectionError:
                return False

    await until(does)


async def test_gateways_keep_their_addresses_when_the_log_and_older_gateways_are_gone(tmp_path: Path) -> None:
    port = free_port("127.11.0.4")
    async with FakeKubernetes(allows_loopback=True) as api, EchoServer("old") as old, EchoServer("young") as young:
        for kind in GATEWAY_KINDS:
            api.install(f"{GROUP}/v1", Resource(kind.group, kind.resource, kind.kind, kind.namespaced, is_custom=True))
        for server in (old, young):
            api.apply(service(server.name))
            api.apply(endpoint_slice(server.name, "127.0.0.1", port=server.port))
            api.apply(bare(route(to(server.name), name=server.name, parents=[{"name": server.name}])))
        api.apply(bare(gateway_class()))
        made = bare(gateway(listener(port=port), name="young"))
        async with stack_of(api, tmp_path):
            # The address that it gets where it may choose, is another one's from now on.
            api.apply(made)
            first = await address_of(api, "young")
            await answers(first, port, "young")
            api.delete("gateways", "young")
            asking = {"addresses": [{"type": "IPAddress", "value": first}]}
            api.apply(bare(gateway(listener(port=port), name="old", spec=asking)))
            await answers(first, port, "old")
            api.apply(made)
            kept = await address_of(api, "young")
            assert kept != first
            await answers(kept, port, "young")
            assert addresses(api, "old") == [first]
        api.delete("gateways", "old")
        async with stack_of(api, tmp_path):
            await answers(kept, port, "young")
            assert addresses(api, "young") == [kept]
