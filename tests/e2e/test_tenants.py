"""Two tenants who share a NATS server and nothing else: `examples/tenants/` as it is, and from a cluster with Roles."""

import asyncio
import json
import re
import ssl
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
import yaml

from fakes.command import headgate
from fakes.gateway.ports import free_ports
from fakes.gateway.tls import SelfSigned, unverified
from fakes.kubernetes.api import FakeKubernetes, Resource
from fakes.kubernetes.rights import RoleHolder
from fakes.stack import Stack
from fakes.stores.nats_servers import NatsServer
from fakes.translator.deltas import deleted
from headgate.common.bus.access import NatsAccess
from headgate.common.bus.connection import Bus
from headgate.common.resources import APISIX_KINDS
from headgate.common.stores.nats import NatsStores, Upkeep

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "tenants"
ROLE = ROOT / "deploy" / "tenant" / "watcher.yaml"
PORTS = ("4322", "8081", "8451", "9081", "9111", "8082", "8452", "9082", "9112")
TENANTS = ("team-a", "team-b")
SHARED = "shop.example"
BOUND_S = 60.0


class Entrance(NamedTuple):
    """Where a tenant's gateway is."""

    http: int
    admin: int


async def name(entrance: Entrance, host: str, path: str = "/", **headers: str) -> str:
    """Who answers, or the status."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{entrance.http}{path}", headers={"Host": host, **headers}) as answer,
    ):
        return str((await answer.json())["name"]) if answer.status == 200 else str(answer.status)


async def until_served(entrance: Entrance, tenant: str) -> None:
    found = ""
    async with asyncio.timeout(BOUND_S):
        while found != tenant:
            try:
                found = await name(entrance, SHARED, "/orders", apikey=f"clerk-of-{tenant}")
                found = found if found != tenant else await name(entrance, f"{tenant}.example")
            except aiohttp.ClientError as error:
                found = str(error)
            await asyncio.sleep(0.05)


async def check_that_tenants_do_not_meet(entrances: Mapping[str, Entrance]) -> None:
    """Each entrance serves its own: a claims hosts of b and has them at its own entrance only."""
    ours, theirs = entrances["team-a"], entrances["team-b"]
    assert await name(ours, SHARED) == "team-a"
    assert await name(theirs, SHARED) == "team-b"
    assert await name(ours, "team-b.example") == "team-a"
    assert await name(theirs, "team-b.example") == "team-b"
    assert await name(theirs, "team-a.example") == "404"
    assert await name(ours, SHARED, "/orders", apikey="clerk-of-team-b") == "401"
    assert await name(theirs, SHARED, "/orders", apikey="clerk-of-team-a") == "401"
    for tenant, other in (TENANTS, TENANTS[::-1]):
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{entrances[tenant].admin}/table") as answer,
        ):
            table = await answer.json(content_type=None)
        routes = [route for host in table["hosts"] for route in host["routes"]]
        assert {(one["provenance"]["kind"], one["provenance"]["namespace"]) for one in routes} == {
            ("Ingress", tenant),
            ("ApisixRoute", tenant),
        }
        text = json.dumps(table).replace("team-b.example", "")  # which a claims
        assert tenant in text
        assert other not in text


# On one machine


class Machine(NamedTuple):
    nats_url: str
    entrances: Mapping[str, Entrance]

    @asynccontextmanager
    async def connect(self, tenant: str) -> AsyncIterator[NatsStores]:
        """The stores as a tenant finds them."""
        bus = await Bus.connect(
            NatsAccess(self.nats_url, user=tenant, password=f"a password of {tenant}"), name="a test"
        )
        try:
            yield await NatsStores.open(bus, upkeep=Upkeep(makes_streams=False))
        finally:
            await bus.close()


@asynccontextmanager
async def example(folder: Path) -> AsyncIterator[Machine]:
    """Run `serve.py` on a copy with other ports."""
    ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
    for source in EXAMPLE.rglob("*.*"):
        if source.suffix in (".py", ".conf", ".yaml"):
            text = re.sub(r"\b(?:" + "|".join(PORTS) + r")\b", lambda found: ports[found[0]], source.read_text())
            copy = folder / source.relative_to(EXAMPLE)
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(text)
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(sys.executable, "serve.py", cwd=folder, stdout=log, stderr=log)
    try:
        yield Machine(
            f"nats://127.0.0.1:{ports['4322']}",
            {
                "team-a": Entrance(int(ports["8081"]), int(ports["9081"])),
                "team-b": Entrance(int(ports["8082"]), int(ports["9082"])),
            },
        )
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        print((folder / "log").read_text(errors="replace"))
    assert process.returncode == 0


@pytest.mark.slow
async def test_the_example_gives_each_tenant_what_is_its_own_and_no_more(tmp_path: Path) -> None:
    async with example(tmp_path) as machine:
        for tenant, entrance in machine.entrances.items():
            await until_served(entrance, tenant)
        await check_that_tenants_do_not_meet(machine.entrances)

        # What the user of NATS sees and writes is in its own account, whatever cluster or table it names.
        ingress = yaml.safe_load((EXAMPLE / "team-b" / "web.yaml").read_text().split("---")[0])
        async with machine.connect("team-a") as ours, machine.connect("team-b") as theirs:
            before = await theirs.log_writer.read_state("team-b")
            pointer = await theirs.snapshots.read_pointer("team-b")
            assert before
            assert pointer
            assert not await ours.log_writer.read_state("team-b")
            assert await ours.snapshots.read_pointer("team-b") is None
            assert {beat.table for beat in await ours.heartbeats.live()} == {"team-a"}
            assert [one.cluster for one in await ours.log_reader.announcements()] == ["team-a"]
            await ours.log_writer.append(deleted(ingress, "team-b"))
            assert await theirs.log_writer.read_state("team-b") == before
            assert await theirs.snapshots.read_pointer("team-b") == pointer
        assert await name(machine.entrances["team-b"], "team-b.example") == "team-b"

        access = {"HEADGATE_NATS_USER": "team-a", "HEADGATE_NATS_PASSWORD": "a password of team-a"}
        asked = ("--json", f"--nats-url={machine.nats_url}")
        consumers = await headgate("consumers", "--table=team-a", *asked, environment=access)
        assert "team-a" in consumers.out
        assert "team-b" not in consumers.out
        wrong = {**access, "HEADGATE_NATS_USER": "team-b"}
        assert (await headgate("routes", *asked, environment=wrong, code=None)).code == 3


# From a cluster


def objects(tenant: str, port: int, certificate: SelfSigned) -> list[Any]:
    """What the example has of a tenant, with a certificate for the host that both want."""
    text = re.sub(r"\b911[12]\b", str(port), (EXAMPLE / tenant / "web.yaml").read_text())
    found = list(yaml.safe_load_all(text))
    for each in found:
        if each["kind"] == "Ingress":
            each["spec"] |= {"ingressClassName": "headgate", "tls": [{"hosts": [SHARED], "secretName": "shop"}]}
    return [*found, certificate.secret(tenant, "shop")]


def stack_of(tenant: str, api: FakeKubernetes, folder: Path, nats_url: str, port: int) -> Stack:
    """Everything of one tenant, with its service account and its user of NATS."""
    return Stack(
        kubeconfig=api.write_kubeconfig(folder / f"{tenant}.config", user={"token": tenant}),
        publish_address="192.0.2.10",
        extra=[f"--cluster={tenant}", f"--nats-url={nats_url}", f"--demo-backend={tenant}={port}"],
        environment={
            "HEADGATE_NAMESPACES": tenant,
            "HEADGATE_WATCH_CLUSTER_SCOPED": "false",
            "HEADGATE_TABLE": tenant,
            "HEADGATE_NATS_USER": tenant,
            "HEADGATE_NATS_PASSWORD": f"a password of {tenant}",
        },
    )


async def shown(port: int) -> bytes:
    """The certificate that a gateway shows for the host that both want, PEM."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=unverified(), server_hostname=SHARED)
    try:
        certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    finally:
        writer.close()
    return ssl.DER_cert_to_PEM_cert(certificate).encode()


@pytest.mark.slow
async def test_tenants_of_one_cluster_need_a_role_each_and_do_not_meet(tmp_path: Path) -> None:
    certificates = {tenant: SelfSigned(SHARED) for tenant in TENANTS}
    backends = dict(zip(TENANTS, free_ports(2), strict=True))
    config = re.sub(r"(?m)^(host|port): .*$", "", (EXAMPLE / "nats.conf").read_text())
    async with FakeKubernetes(allows_loopback=True) as api, NatsServer(tmp_path / "nats", config) as nats:
        for kind in APISIX_KINDS:
            resource = Resource(kind.group, kind.resource, kind.kind, kind.namespaced, is_custom=True)
            api.install(f"{kind.group}/{kind.versions[0]}", resource)
        for tenant in TENANTS:
            api.accounts[tenant] = RoleHolder.of(ROLE, tenant)
            for each in objects(tenant, backends[tenant], certificates[tenant]):
                api.apply(each)
        url = f"nats://127.0.0.1:{nats.port}"
        a, b = (stack_of(tenant, api, tmp_path, url, backends[tenant]) for tenant in TENANTS)
        async with a, b:
            entrances = {tenant: Entrance(s.http_port, s.admin_port) for tenant, s in zip(TENANTS, (a, b), strict=True)}
            for tenant, entrance in entrances.items():
                await until_served(entrance, tenant)
            await check_that_tenants_do_not_meet(entrances)
            for tenant, stack in zip(TENANTS, (a, b), strict=True):
                assert await shown(stack.https_port) == certificates[tenant].certificate_pem
            async with asyncio.timeout(BOUND_S):
                while not all(_is_told(api, tenant) for tenant in TENANTS):  # noqa: ASYNC110 - has no event
                    await asyncio.sleep(0.05)
            for tenant in TENANTS:
                account = api.accounts[tenant]
                assert account.outside == account.refused == []


def _is_told(api: FakeKubernetes, tenant: str) -> bool:
    """Whether a tenant's objects have the status that its own stack wrote."""
    addresses = api.get("ingresses", "web", tenant).get("status", {}).get("loadBalancer", {}).get("ingress")
    conditions = api.get("apisixroutes", "orders", tenant).get("status", {}).get("conditions", [])
    programmed = any(each["type"] == "Programmed" and each["status"] == "True" for each in conditions)
    return bool(addresses) and programmed
