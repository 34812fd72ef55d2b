"""`kubectl apply -k deploy/manifests`, which needs no Helm, and again with another Job and other NATS servers."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from deploy.manifests.render import MANIFESTS, render

from cluster.facts import HELM, Facts
from cluster.pods import TAG, backend, backends, ready
from cluster.release import PODS, ROLLOUT_S
from cluster.serving import plain
from fakes.kubernetes.real import RealCluster, eventually
from fakes.peers.steady_client import SteadyClient
from fakes.translator.deltas import ingress
from stack.engine import run

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(1800)]
NAMESPACE = "headgate"
"""As the rendered manifests have it."""
HOST = "applied.example"
REQUESTS = 100
BOUND_S = 120.0


class Applied:
    """The manifests of mode all-in-one, by kubectl, with the images that are on the node."""

    def __init__(self, cluster: RealCluster, facts: Facts, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self._address = facts.node_address

    async def kubectl(self, *words: str, within_s: float = ROLLOUT_S) -> str:
        return await run("kubectl", f"--kubeconfig={self.cluster.kubeconfig}", *words, within_s=within_s)

    async def write(self, all_in_one: str) -> None:
        """Lay a kustomization of ours over the repository's, with these manifests in it."""
        base = self.folder / "manifests"
        base.mkdir(exist_ok=True)
        for name in ("kustomization.yaml", "namespace.yaml"):
            shutil.copy(MANIFESTS / name, base)
        (base / "all-in-one.yaml").write_text(all_in_one)
        names = ("headgate", "watcher", "translator", "gateway")
        images = [{"name": f"headgate/{name}", "newTag": TAG} for name in names]
        (self.folder / "kustomization.yaml").write_text(yaml.safe_dump({"resources": ["manifests"], "images": images}))

    async def apply(self) -> None:
        """Apply what was written, and wait until all pods have it."""
        await self.kubectl("apply", "-k", str(self.folder))
        await eventually(self.is_rolled_out, ROLLOUT_S)

    async def is_rolled_out(self) -> bool:
        workloads = await self._list("deployments,statefulsets")
        pods = [one for one in await self._list("pods") if one["spec"]["restartPolicy"] == "Always"]
        return all(
            one["status"].get("updatedReplicas", 0) == one["spec"]["replicas"]
            and one["status"].get("observedGeneration", 0) >= one["metadata"]["generation"]
            for one in workloads
        ) and ([ready(pod) for pod in pods] == [True] * sum(PODS.values()))

    async def generations(self) -> dict[str, int]:
        """How often the spec of each object was changed, by its uid."""
        found = await self._list("pods,jobs,services,networkpolicies,poddisruptionbudgets,deployments,statefulsets")
        return {one["metadata"]["uid"]: one["metadata"].get("generation", 0) for one in found}

    async def jobs(self) -> dict[str, bool]:
        """The Jobs that make secrets, and whether each has done its work."""
        return {one["metadata"]["name"]: one["status"].get("succeeded") == 1 for one in await self._list("jobs")}

    async def passwords(self) -> set[str]:
        (found,) = [one for one in await self._list("secrets") if one["metadata"]["name"] == "headgate-generated"]
        return {name for name in found["data"] if name.endswith("-password")}

    async def claims(self) -> int:
        return len(await self._list("persistentvolumeclaims"))

    async def client(self) -> SteadyClient:
        (service,) = [one for one in await self._list("services") if one["metadata"]["name"] == "headgate-gateway"]
        return SteadyClient(service["spec"]["ports"][0]["nodePort"], HOST, address=self._address)

    async def _list(self, kinds: str) -> list[dict[str, Any]]:
        found = json.loads(await self.kubectl("--namespace", NAMESPACE, "get", kinds, "--output=json"))
        return list(found["items"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def applied(hands: RealCluster, facts: Facts, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Applied]:
    """Applied once, with a backend behind it."""
    for needed, lack in (
        (shutil.which("kubectl"), "kubectl is not installed"),
        (facts.nodes, "the cluster has no node that runs pods"),
        (facts.storage_class, "the cluster has no default StorageClass"),
    ):
        if not needed:
            pytest.skip(lack)
    applied = Applied(hands, facts, tmp_path_factory.mktemp("applied"))
    if await applied.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found"):
        pytest.skip(f"the cluster has a namespace {NAMESPACE}, which the manifests are for")
    await applied.write((MANIFESTS / "all-in-one.yaml").read_text())
    try:
        await applied.apply()
        await hands.apply(backends("web"))
        await hands.apply(backend("red", "web"))
        served = ingress("web", namespace=hands.namespace, host=HOST, class_name="headgate")
        path = applied.folder / "ingress.json"
        path.write_text(json.dumps(plain(served)))
        await applied.kubectl("apply", "--filename", str(path))
        yield applied
    finally:
        await applied.kubectl("delete", "-k", str(applied.folder), "--ignore-not-found")


async def test_an_ingress_is_served(applied: Applied) -> None:
    async with await applied.client() as client:
        await client.wait_for_answer("red", within_s=BOUND_S)


async def test_the_same_manifests_once_more_change_nothing(applied: Applied) -> None:
    """No matter what kubectl says, which takes fields that the server has filled in for changes."""
    before = await applied.generations()
    assert list((await applied.jobs()).values()) == [True]
    await applied.kubectl("apply", "-k", str(applied.folder))
    assert await applied.generations() == before


async def test_manifests_with_another_job_are_applied_under_load(applied: Applied) -> None:
    if not (helm := shutil.which(HELM)):
        pytest.skip("helm is not installed: HELM names it where it is not in the PATH")
    before = await applied.jobs()
    async with await applied.client() as client:
        tenant = ("--set", "nats.tenants[0].name=team-a,nats.tenants[0].maxFile=100M")
        await applied.write(await asyncio.to_thread(render, helm, "all-in-one", *tenant))
        await applied.apply()
        await client.wait_for_more(REQUESTS, within_s=BOUND_S)
    assert not client.failures, f"{len(client.failures)} of {client.count}: {client.failures[:5]}"
    print(f"  {client.count} requests, none failed, {client.retries} asked again")
    after = await applied.jobs()
    assert len(after.keys() - before.keys()) == 1
    assert all(after.values())
    assert "gateway-team-a-password" in await applied.passwords()


async def test_deleting_all_but_the_namespace_leaves_the_volumes(applied: Applied) -> None:
    await applied.kubectl("delete", "--filename", str(applied.folder / "manifests" / "all-in-one.yaml"))
    assert await applied.claims() == PODS["nats"]
