"""The profile `kubeconfig`, on the cluster that KUBECONFIG names: `make stack-test`. Left out where there is none.

What the stack serves is made in a namespace of that cluster; the endpoints in it are the containers red and blue.
"""

import os
from pathlib import Path

import pytest
import yaml

from fakes.kubernetes.real import RealCluster
from fakes.translator.deltas import ingress_class
from stack.engine import BUILD_S, ROOT, eventually, run
from stack.running import Stack, answered_by_red_alone, crash, load

CLASS = "web"
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(BUILD_S)]


async def test_a_cluster_is_followed_in_place_of_manifests_also_after_its_watcher_was_killed(
    stack: Stack, tmp_path: Path
) -> None:
    named = os.environ.get("KUBECONFIG")
    if not named:
        pytest.skip("KUBECONFIG is not set: it names a cluster whose API server containers of this machine reach")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(await run("kubectl", "config", "view", "--raw", "--flatten", "--minify"))
    async with RealCluster(Path(named)) as cluster:
        await cluster.apply(ingress_class(CLASS))
        for each in yaml.safe_load_all((ROOT / "examples" / "stack" / "demo.yaml").read_text()):
            if each["kind"] == "Ingress":
                each["spec"]["ingressClassName"] = CLASS
            await cluster.apply(each)
        await stack.start(profiles="kubeconfig", HEADGATE_KUBECONFIG=str(kubeconfig), **cluster.environment)
        assert await stack.containers("watcher") == []
        (watcher,) = await stack.containers("watcher-kubernetes")
        (gateway,) = await stack.wait_for_gateways(1)
        async with load(stack, gateway):
            await set_blue(cluster, ready=False)
            await eventually("only red answers", lambda: answered_by_red_alone(gateway))
            await crash(watcher)
            await set_blue(cluster, ready=True)

            async def answers_again() -> bool:
                return not await answered_by_red_alone(gateway)

            await eventually("blue answers again", answers_again)


async def set_blue(cluster: RealCluster, ready: bool) -> None:
    endpoint = {"addresses": ["blue.stack.internal"], "conditions": {"ready": ready}}
    await cluster.merge("endpointslices", "demo-blue", {"endpoints": [endpoint]})
