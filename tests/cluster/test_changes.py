"""What users and controllers do in a real cluster arrives, and what is wrong is told there."""

import asyncio
import json
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from cluster.serving import CLASS, PUBLISHED, apply_ingress, apply_service, plain, serving
from fakes.command import headgate
from fakes.gateway.tls import SelfSigned, unverified
from fakes.kubernetes.real import RealCluster, eventually
from fakes.peers.echo import EchoServer
from fakes.stack import Stack
from fakes.translator.deltas import endpoint_slice, ingress

pytestmark = pytest.mark.asyncio(loop_scope="module")


class World(NamedTuple):
    cluster: RealCluster
    stack: Stack
    one: EchoServer
    two: EchoServer


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(hands: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        one, two = [await stack.enter_async_context(EchoServer(name, hands.address)) for name in ("one", "two")]
        await apply_service(hands, "web", one)
        host = await apply_ingress(hands, "main")
        served = await stack.enter_async_context(serving(hands, tmp_path_factory.mktemp("changes")))
        await served.wait_for_answer(host, "/", name="one")
        yield World(hands, served, one, two)


async def test_endpoints_that_change_take_traffic(world: World) -> None:
    await apply_service(world.cluster, "moving", world.one)
    host = await apply_ingress(world.cluster, "moving", "moving")
    await world.stack.wait_for_answer(host, "/", name="one")
    moved = endpoint_slice("moving", world.cluster.address, name="moving-0", port=world.two.port)
    await world.cluster.apply(moved)
    await world.stack.wait_for_answer(host, "/", name="two")
    await world.cluster.apply({**moved, "endpoints": [{**moved["endpoints"][0], "conditions": {"ready": False}}]})
    await world.stack.wait_for_answer(host, "/", 503)
    await world.cluster.delete("ingresses", "moving")
    await world.stack.wait_for_answer(host, "/", 404)


async def test_address_and_events_are_written(world: World) -> None:
    await apply_ingress(world.cluster, "told")

    async def is_told() -> bool:
        status = (await world.cluster.get("ingresses", "told"))["status"]
        return bool(status["loadBalancer"].get("ingress") == [{"ip": PUBLISHED}])

    await eventually(is_told)
    await eventually(lambda: has_event(world, "told", "Normal", "Accepted"))


async def test_what_is_wrong_is_an_event_and_says_so_once_mended(world: World) -> None:
    await apply_ingress(world.cluster, "astray", "nowhere")
    await eventually(lambda: has_event(world, "astray", "Warning", "ServiceNotFound"))
    await apply_service(world.cluster, "nowhere", world.two)
    await world.stack.wait_for_answer("astray.example", "/", name="two")


async def has_event(world: World, name: str, type_: str, reason: str) -> bool:
    events = await world.cluster.all("events")
    return (name, type_, reason) in {(one["regarding"]["name"], one["type"], one["reason"]) for one in events}


async def test_a_certificate_is_presented_and_renewed(world: World) -> None:
    host = "secure.example"
    first, second = SelfSigned(host), SelfSigned(host)
    await world.cluster.apply(first.secret("default", "pair"))
    secured = ingress("secure", host=host, class_name=CLASS)
    secured["spec"]["tls"] = [{"hosts": [host], "secretName": "pair"}]
    await world.cluster.apply(plain(secured))

    async def is_presented(pair: SelfSigned) -> bool:
        port = world.stack.https_port
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=unverified(), server_hostname=host)
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return ssl.DER_cert_to_PEM_cert(found).encode() == pair.certificate_pem

    await eventually(lambda: is_presented(first))
    await world.cluster.apply(second.secret("default", "pair"))
    await eventually(lambda: is_presented(second))


async def test_history_names_who_wrote_what(world: World) -> None:
    """By field manager: of server-side apply, of a merge patch, of kubectl."""
    await world.cluster.apply(plain(ingress("written", host="a.example", class_name=CLASS)), manager="argo-like")
    await eventually(lambda: is_caused_by(world, "written", "argo-like"))
    await world.cluster.merge("ingresses", "written", {"metadata": {"annotations": {"note": "x"}}}, "kubectl-like")
    await eventually(lambda: is_caused_by(world, "written", "kubectl-like"))


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
async def test_kubectl_writes_and_is_named(world: World, tmp_path: Path) -> None:
    manifest = world.cluster.place(plain(ingress("by-kubectl", host="kubectl.example", class_name=CLASS)))
    path = tmp_path / "ingress.json"
    path.write_text(json.dumps(manifest))
    await kubectl(world, "apply", "-f", str(path))
    await world.stack.wait_for_answer("kubectl.example", "/", name="one")
    await eventually(lambda: is_caused_by(world, "by-kubectl", "kubectl-client-side-apply"))
    await kubectl(world, "annotate", "-n", world.cluster.namespace, "ingress", "by-kubectl", "note=x")
    await eventually(lambda: is_caused_by(world, "by-kubectl", "kubectl-annotate"))
    await kubectl(world, "delete", "-f", str(path), "--wait=false")
    await world.stack.wait_for_answer("kubectl.example", "/", 404)


async def kubectl(world: World, *words: str) -> None:
    process = await asyncio.create_subprocess_exec(
        "kubectl",
        f"--kubeconfig={world.cluster.kubeconfig}",
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0, printed.decode()


async def is_caused_by(world: World, name: str, manager: str) -> bool:
    shown = await headgate("events", "--json", "--name", name, f"--data-dir={world.stack.data_dir}")
    return manager in [one["by"] for one in shown.json_lines]


async def test_an_ingress_that_is_no_longer_ours_loses_its_address(world: World) -> None:
    await apply_ingress(world.cluster, "given")
    await eventually(lambda: addresses_are(world, "given", [{"ip": PUBLISHED}]))
    await world.cluster.merge("ingresses", "given", {"spec": {"ingressClassName": "somebody-elses"}})
    await world.stack.wait_for_answer("given.example", "/", 404)
    await eventually(lambda: addresses_are(world, "given", []))


async def addresses_are(world: World, name: str, wanted: list[dict[str, str]]) -> bool:
    status = (await world.cluster.get("ingresses", name)).get("status", {})
    return bool(status.get("loadBalancer", {}).get("ingress", []) == wanted)
