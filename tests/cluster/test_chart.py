"""The chart's pods in a cluster: its gateways take traffic for pods, and lose none while everything changes or dies."""

import asyncio
import base64
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml

from cluster.facts import HELM, Facts
from cluster.pods import IMAGE, backend, backends, is_ready
from cluster.release import COMPONENTS, NAME, PODS, ROLLOUT_S, Release
from cluster.serving import CLASS, apply_ingress, is_refused, plain
from fakes.gateway.tls import SelfSigned, unverified
from fakes.kubernetes.real import RealCluster, eventually
from fakes.peers.steady_client import SteadyClient
from fakes.translator.deltas import ingress
from stack.engine import ROOT

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(1800)]
HOST = "steady.example"
REQUESTS = 300
"""Asked by each client after each change: a second or two, and more where the machine is slow."""
BOUND_S = 120.0
CLAIMS = {f"data-{NAME}-nats-{number}" for number in range(PODS["nats"])}
KILL = """
import os, pathlib, sys
killed = 0
for folder in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        if sys.argv[1] in (folder / "cgroup").read_text():
            os.kill(int(folder.name), 9)
            killed += 1
    except (FileNotFoundError, ProcessLookupError):
        pass
sys.exit(not killed)
"""
"""Ends all processes of a container, as the kernel does it."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def release(hands: RealCluster, facts: Facts, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Release]:
    """The chart in a namespace that enforces the restricted Pod Security Standard, with two backends behind it."""
    if not shutil.which(HELM):
        pytest.skip("helm is not installed: HELM names it where it is not in the PATH")
    if not facts.nodes:
        pytest.skip("the cluster has no node that runs pods")
    await hands.apply(namespace(hands.namespace, "restricted"))
    for name in ("red", "blue"):
        await hands.apply(backends(name))
        await hands.apply(backend(name, name))
    release = Release(hands, facts, tmp_path_factory.mktemp("release"))
    try:
        for name in ("red", "blue"):
            await eventually(lambda name=name: is_ready(hands, name))
        await release.install()
        if not await is_reached(release):
            pytest.skip(f"ports of the node {release.address} cannot be reached from this machine")
        await apply_ingress(hands, HOST.partition(".")[0], "red")
        await eventually(lambda: answers_are(release, HOST, "red"), BOUND_S)
        yield release
    finally:
        await release.uninstall()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def killers(kubeconfig: Path) -> AsyncIterator[RealCluster]:
    """A namespace for pods that may end others' processes."""
    async with RealCluster(kubeconfig) as cluster:
        await cluster.apply(namespace(cluster.namespace, "privileged"))
        yield cluster


def namespace(name: str, standard: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"pod-security.kubernetes.io/enforce": standard}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def killer(container_id: str) -> dict[str, Any]:
    container = {
        "name": "killer",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["python3", "-c", KILL, container_id],
        "securityContext": {"runAsUser": 0, "privileged": True},
    }
    spec = {"hostPID": True, "restartPolicy": "Never", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"killer-{container_id[:12]}"}, "spec": spec}


async def crash(release: Release, killers: RealCluster, name: str) -> None:
    """Kill the processes of a pod's container, and wait until it was started again and is ready."""
    (before,) = (await release.cluster.get("pods", name))["status"]["containerStatuses"]
    pod = killer(before["containerID"].partition("://")[2])
    await killers.apply(pod)

    async def is_back() -> bool:
        assert (await killers.get("pods", pod["metadata"]["name"]))["status"]["phase"] != "Failed"
        (now,) = (await release.cluster.get("pods", name))["status"]["containerStatuses"]
        return bool(now["restartCount"] > before["restartCount"] and now["ready"])

    await eventually(is_back, ROLLOUT_S)


@asynccontextmanager
async def load(release: Release, host: str = HOST, patience_s: float = 0.0) -> AsyncIterator[list[SteadyClient]]:
    """Clients of kept connections and of one for each request; no request of any may fail."""
    async with (
        release.client(host, patience_s=patience_s) as kept,
        release.client(host, patience_s=patience_s, keep_alive=False) as fresh,
    ):
        yield [kept, fresh]
        for client in (kept, fresh):
            await client.wait_for_more(REQUESTS, within_s=BOUND_S)
    for client in (kept, fresh):
        assert not client.failures, f"{len(client.failures)} of {client.count}: {client.failures[:5]}"
    asked, retries = kept.count + fresh.count, kept.retries + fresh.retries
    slowest_s = max(kept.longest_s, fresh.longest_s)
    print(f"  {asked} requests, none failed, {retries} asked again; slowest {slowest_s:.2f} s")


async def is_reached(release: Release) -> bool:
    try:
        async with asyncio.timeout(10):
            _, writer = await asyncio.open_connection(release.address, release.http_port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def answers_are(release: Release, host: str, name: str) -> bool:
    """Whether a backend answers all of ten requests, each with a connection of its own."""
    url, headers = f"http://{release.address}:{release.http_port}/", {"Host": host, "Connection": "close"}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=BOUND_S)) as session:
        for _ in range(10):
            async with session.get(url, headers=headers) as answer:
                if answer.status != 200 or (await answer.json())["name"] != name:
                    return False
    return True


@pytest.mark.parametrize("mode", ["all-in-one", "all-in-one-console", "central", "edge", "edge-leaf", "tenant"])
async def test_rendered_manifests_are_accepted_by_the_server(hands: RealCluster, mode: str) -> None:
    for manifest in yaml.safe_load_all((ROOT / "deploy" / "manifests" / f"{mode}.yaml").read_text()):
        manifest["metadata"].pop("namespace", None)
        await hands.try_out(manifest)


async def test_all_pods_run_where_the_restricted_standard_is_enforced(release: Release) -> None:
    with pytest.raises(Exception, match="violates PodSecurity"):
        await release.cluster.try_out(killer("none"))
    assert {component: len(await release.pods(component)) for component in COMPONENTS} == PODS


async def test_only_the_watcher_has_a_token(release: Release) -> None:
    has_token: dict[str, bool] = {}
    for pod in await release.pods():
        mounts = [each["mountPath"] for one in pod["spec"]["containers"] for each in one.get("volumeMounts", ())]
        component = pod["metadata"]["labels"]["app.kubernetes.io/component"]
        has_token[component] = any(mount.startswith("/var/run/secrets/kubernetes.io") for mount in mounts)
    has_token.pop("secrets", None)  # The Job that made passwords, while it is kept.
    assert has_token == {component: component == "watcher" for component in COMPONENTS}


async def test_an_ingress_that_changes_under_load_fails_no_request(release: Release) -> None:
    host = await apply_ingress(release.cluster, "changing", "red")
    await eventually(lambda: answers_are(release, host, "red"))
    async with load(release, host) as clients:
        await apply_ingress(release.cluster, "changing", "blue")
        await eventually(lambda: answers_are(release, host, "blue"))
        for client in clients:
            await client.wait_for_answer("blue", within_s=BOUND_S)


async def test_a_certificate_of_the_namespace_is_presented(release: Release) -> None:
    """Its key crosses NATS sealed, for a pair of keys that the release made."""
    host, pair = "secure.example", SelfSigned("secure.example")
    await release.cluster.apply(pair.secret("default", "pair"))
    secured = ingress("secure", host=host, service="red", class_name=CLASS)
    secured["spec"]["tls"] = [{"hosts": [host], "secretName": "pair"}]
    await release.cluster.apply(plain(secured))
    await eventually(lambda: is_presented(release, host))


async def is_presented(release: Release, host: str) -> bool:
    """Whether gateways present what the Secret `pair` holds."""
    pair = (await release.cluster.get("secrets", "pair"))["data"]
    _, writer = await asyncio.open_connection(
        release.address, release.https_port, ssl=unverified(), server_hostname=host
    )
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return ssl.DER_cert_to_PEM_cert(found).encode() == base64.b64decode(pair["tls.crt"])


async def test_scaling_gateways_to_three_and_back_fails_no_request(release: Release) -> None:
    await release.scale("gateway", 1)
    async with load(release) as clients:
        await release.scale("gateway", 3)
        for client in clients:
            await client.wait_for_more(REQUESTS, within_s=BOUND_S)
        await release.scale("gateway", 1)
    await release.scale("gateway", 2)


@pytest.mark.parametrize("component", COMPONENTS)
async def test_a_rolling_restart_fails_no_request(release: Release, component: str) -> None:
    async with load(release):
        await release.restart(component)
        await check_that_changes_arrive(release, f"restarted-{component}")


@pytest.mark.parametrize("component", ["nats", "translator", "watcher"])
async def test_killing_each_control_plane_pod_fails_no_request(
    release: Release, killers: RealCluster, component: str
) -> None:
    async with load(release):
        for number, pod in enumerate(await release.pods(component)):
            await crash(release, killers, pod["metadata"]["name"])
            await check_that_changes_arrive(release, f"killed-{component}-{number}")


async def test_killing_each_gateway_fails_no_request_that_is_made_again(release: Release, killers: RealCluster) -> None:
    async with load(release, patience_s=BOUND_S):
        for pod in await release.pods("gateway"):
            await crash(release, killers, pod["metadata"]["name"])


async def check_that_changes_arrive(release: Release, name: str) -> None:
    host = await apply_ingress(release.cluster, name, "blue")
    await eventually(lambda: answers_are(release, host, "blue"), BOUND_S)


async def test_an_upgrade_brings_the_webhook_which_refuses_mistakes(release: Release) -> None:
    async with load(release):
        await release.upgrade("admission.enabled=true")
        rival = plain(ingress("rival", host=HOST, class_name=CLASS))
        await eventually(lambda: is_refused(release.cluster, rival, "belongs to Ingress"), BOUND_S)
        bad = plain(ingress("bad", host="bad.example", class_name=CLASS))
        bad["metadata"]["annotations"] = {"headgate.dev/plugins": "cors, gzip"}
        assert await is_refused(release.cluster, bad, "headgate.dev/plugins")
        await check_that_changes_arrive(release, "let-in")


async def test_an_upgrade_brings_an_account_whose_passwords_the_job_makes(release: Release) -> None:
    """It changes the Job, and exchanges all NATS servers."""
    async with load(release):
        await release.upgrade("nats.tenants[0].name=team-a", "nats.tenants[0].maxFile=100M", "admission.enabled=true")
        made = (await release.cluster.get("secrets", f"{NAME}-generated"))["data"]
        assert {"watcher-team-a-password", "translator-team-a-password", "gateway-team-a-password"} <= made.keys()
        await check_that_changes_arrive(release, "with-a-tenant")


async def test_uninstalling_leaves_nothing_but_volumes(release: Release) -> None:
    await check_that_it_goes(release)
    assert await release.claims() == (CLAIMS if release.has_storage else set())


async def test_a_release_of_the_same_name_takes_up_the_volumes_and_takes_them_away_if_asked(release: Release) -> None:
    """Its passwords and its key pair are others than those of the release before."""
    if not release.has_storage:
        pytest.skip("the cluster has no default StorageClass")
    await release.install()
    await eventually(lambda: answers_are(release, HOST, "red"), BOUND_S)
    await eventually(lambda: is_presented(release, "secure.example"), BOUND_S)
    await release.upgrade("nats.storage.deleteWithRelease=true")
    assert await release.claims() == CLAIMS
    await check_that_it_goes(release)

    async def has_no_claims() -> bool:
        return await release.claims() == set()

    await eventually(has_no_claims, BOUND_S)


async def check_that_it_goes(release: Release) -> None:
    manifest = await release.manifest()
    assert {"ClusterRole", "ClusterRoleBinding", "IngressClass", "Deployment"} <= {one["kind"] for one in manifest}
    await release.uninstall()
    for one in manifest:
        await eventually(lambda one=one: release.is_gone(one), ROLLOUT_S)
    await eventually(lambda: has_no_pods(release), ROLLOUT_S)
    names = [one["metadata"]["name"] for one in await release.cluster.all("secrets")]
    assert set(names) <= {"pair"}  # A test of ours made it.


async def has_no_pods(release: Release) -> bool:
    return await release.pods() == []
