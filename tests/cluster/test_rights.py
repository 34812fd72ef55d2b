"""A watcher with no rights but those that the documentation names, as a service account of a real cluster."""

import contextlib
from pathlib import Path
from typing import Any

import yaml

from cluster.serving import CLASS, PUBLISHED, apply_ingress, apply_service, serving
from fakes.command import headgate
from fakes.kubernetes.real import RealCluster, eventually
from fakes.peers.echo import EchoServer
from fakes.service_process import running_service
from fakes.stack import Stack
from fakes.stores.nats import real_bus
from headgate.common.sealing import load_or_create_key_pair
from headgate.common.stores.nats import NatsStores
from headgate.watcher.errors import Absent

ROOT = Path(__file__).parents[2]
TENANT = ROOT / "deploy" / "tenant" / "watcher.yaml"
ACCOUNT = "headgate-watcher"
JsonObject = dict[str, Any]


def documented_rules(kind: str) -> list[JsonObject]:
    """The rules of a Role or ClusterRole in docs/kubernetes.md."""
    blocks = (ROOT / "docs" / "kubernetes.md").read_text().split("```yaml\n")[1:]
    documents = [yaml.safe_load(block.partition("```")[0]) for block in blocks]
    (found,) = (one for one in documents if one["kind"] == kind)
    rules: list[JsonObject] = found["rules"]
    return rules


async def make_account(cluster: RealCluster, folder: Path, rules: list[JsonObject]) -> Path:
    """Make a service account with rules for all namespaces; returns its kubeconfig."""
    await cluster.apply(named("v1", "ServiceAccount", ACCOUNT))
    role = named("rbac.authorization.k8s.io/v1", "ClusterRole", ACCOUNT) | {"rules": rules}
    await cluster.apply(role)
    await cluster.apply(binding(cluster, "ClusterRole"))
    return cluster.write_kubeconfig_of(folder / "kubeconfig", await cluster.token_of(ACCOUNT))


def named(version: str, kind: str, name: str) -> JsonObject:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}}


def binding(cluster: RealCluster, kind: str) -> JsonObject:
    """What gives our account a Role or ClusterRole."""
    name = cluster.scoped(ACCOUNT) if kind == "ClusterRole" else ACCOUNT
    return named("rbac.authorization.k8s.io/v1", f"{kind}Binding", ACCOUNT) | {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": cluster.namespace}],
    }


async def check_that_it_serves_and_tells(cluster: RealCluster, kubeconfig: Path, folder: Path, **more: str) -> None:
    """Traffic, addresses and Events arrive; nothing was forbidden."""
    async with EchoServer("one", cluster.address) as server:
        await apply_service(cluster, "web", server)
        host = await apply_ingress(cluster, "main")
        async with serving(cluster, folder, kubeconfig=kubeconfig, environment=more) as stack:
            await stack.wait_for_answer(host, "/", name="one")
            await eventually(lambda: is_told(cluster))
            await eventually(lambda: is_well(stack))
            assert "forbidden" not in stack.log


async def is_well(stack: Stack) -> bool:
    """Whether all is well but for a revision that is just on its way; what is forbidden stays."""
    shown = await headgate("status", f"--data-dir={stack.data_dir}", code=None)
    assert "forbidden" not in shown.out
    return shown.code == 0


async def is_told(cluster: RealCluster) -> bool:
    status = (await cluster.get("ingresses", "main"))["status"]["loadBalancer"]
    noted = {one["regarding"]["name"] for one in await cluster.all("events")}
    return bool(status.get("ingress") == [{"ip": PUBLISHED}] and "main" in noted)


async def test_the_documented_cluster_role_is_enough(cluster: RealCluster, definitions: str, tmp_path: Path) -> None:
    kubeconfig = await make_account(cluster, tmp_path, documented_rules("ClusterRole"))
    # All namespaces, as most clusters have it; whatever others have there is read as well.
    await check_that_it_serves_and_tells(cluster, kubeconfig, tmp_path, HEADGATE_NAMESPACES="")


async def test_the_tenants_role_is_enough_for_its_namespace(cluster: RealCluster, tmp_path: Path) -> None:
    for manifest in yaml.safe_load_all(TENANT.read_text().replace("team-a", cluster.namespace)):
        await cluster.apply(manifest)
    kubeconfig = cluster.write_kubeconfig_of(tmp_path / "kubeconfig", await cluster.token_of(ACCOUNT))
    scope = {"HEADGATE_WATCH_CLUSTER_SCOPED": "false", "HEADGATE_CLASS_NAMES": cluster.scoped(CLASS)}
    await check_that_it_serves_and_tells(cluster, kubeconfig, tmp_path, **scope)


async def test_a_missing_right_shows_and_is_used_when_it_is_given(cluster: RealCluster, tmp_path: Path) -> None:
    rules = documented_rules("ClusterRole")
    without = [rule for rule in rules if "endpointslices" not in rule["resources"]]
    kubeconfig = await make_account(cluster, tmp_path, without)
    async with EchoServer("one", cluster.address) as server:
        await apply_service(cluster, "web", server)
        host = await apply_ingress(cluster, "main")
        async with serving(cluster, tmp_path, kubeconfig=kubeconfig) as stack:

            async def is_said() -> bool:
                shown = await headgate("status", f"--data-dir={stack.data_dir}", code=None)
                return "endpointslices" in shown.out and "forbidden" in shown.out and shown.code == 1

            await eventually(is_said)
            await cluster.apply(named("rbac.authorization.k8s.io/v1", "ClusterRole", ACCOUNT) | {"rules": rules})
            # What is forbidden is asked for again after half a minute at first, later more rarely.
            await stack.wait_for_answer(host, "/", name="one", within_s=240)


async def test_a_pair_with_the_documented_role_takes_over(cluster: RealCluster, tmp_path: Path) -> None:
    """Two watchers of one Lease: one is killed, the other takes it."""
    load_or_create_key_pair(tmp_path / "data")
    kubeconfig = await make_account(cluster, tmp_path, documented_rules("ClusterRole"))
    await cluster.apply(named("rbac.authorization.k8s.io/v1", "Role", ACCOUNT) | {"rules": documented_rules("Role")})
    await cluster.apply(binding(cluster, "Role"))
    async with real_bus() as (server, bus):
        await NatsStores.open(bus)  # which makes the streams, as the translator does
        flags = (
            *(f"--kubeconfig={kubeconfig}", f"--nats-url={server.url}", f"--data-dir={tmp_path / 'data'}"),
            *(f"--namespaces={cluster.namespace}", "--cluster=east"),
            *("--lease-duration-s=3", "--lease-renew-deadline-s=2.5", "--lease-retry-s=0.3"),
        )
        async with (
            running_service("watcher", *flags, "--instance=one", log=tmp_path / "one.log") as one,
            running_service("watcher", *flags, "--instance=two", log=tmp_path / "two.log") as two,
        ):
            await eventually(lambda: is_held(cluster, "one", "two"))
            first = await holder(cluster)
            (one if first == "one" else two).kill()
            await eventually(lambda: is_held(cluster, "two" if first == "one" else "one"))
    assert "forbidden" not in "".join((tmp_path / f"{name}.log").read_text() for name in ("one", "two"))


async def holder(cluster: RealCluster) -> str:
    with contextlib.suppress(Absent):
        return str((await cluster.get("leases", "headgate-watcher-east"))["spec"].get("holderIdentity", ""))
    return ""


async def is_held(cluster: RealCluster, *names: str) -> bool:
    return await holder(cluster) in names
