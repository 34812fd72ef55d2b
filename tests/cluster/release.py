"""The Helm chart, installed in a cluster as its users install it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from cluster.facts import HELM, Facts
from cluster.pods import TAG, ready
from cluster.serving import CLASS
from fakes.kubernetes.real import RealCluster, eventually
from fakes.peers.steady_client import SteadyClient
from headgate.watcher.errors import Absent
from stack.engine import ROOT, run

NAME = "headgate"
COMPONENTS = {"gateway": "deployments", "translator": "deployments", "watcher": "deployments", "nats": "statefulsets"}
PODS = {"gateway": 2, "translator": 2, "watcher": 2, "nats": 3}
"""Of each component, as the chart's defaults have it."""
ROLLOUT_S = 400.0
"""For what takes half a minute on an idle machine."""
DRAIN_S = 15
"""Until every node has heard that a pod ends; five seconds are too few where the nodes' proxies get no processor."""
JsonObject = dict[str, Any]


class Release:
    """Mode all-in-one in the namespace of `cluster`, reached by the ports that it has on a node."""

    def __init__(self, cluster: RealCluster, facts: Facts, folder: Path) -> None:
        self.cluster = cluster
        self.address = facts.node_address
        self.http_port = self.https_port = 0
        self._values = folder / "values.yaml"
        self.has_storage = bool(facts.storage_class)

    async def install(self) -> None:
        """`helm install`, and wait for its pods. Skips the test where images are missing."""
        values: JsonObject = {
            "image": {"tag": TAG, "pullPolicy": "Never"},
            "ingressClass": {"name": self.cluster.scoped(CLASS)},
            # The classes of other Headgates are adopted too: what is in other namespaces is left to them.
            "translator": {"settings": {"namespaces": [self.cluster.namespace]}},
            "gateway": {
                "service": {"type": "NodePort", "externalTrafficPolicy": "Cluster"},
                "drainDelaySeconds": DRAIN_S,
            },
            "nats": {"storage": {"enabled": self.has_storage}},
        }
        for component in COMPONENTS:
            values.setdefault(component, {})["resources"] = {"requests": {"cpu": "10m"}}
        self._values.write_text(yaml.safe_dump(values))
        await self.helm("install", NAME, str(ROOT / "deploy/helm/headgate"), "--skip-crds", f"--values={self._values}")
        await self.wait_until_rolled_out()
        ports = (await self.cluster.get("services", f"{NAME}-gateway"))["spec"]["ports"]
        self.http_port, self.https_port = (one["nodePort"] for one in ports[:2])

    async def upgrade(self, *settings: str) -> None:
        """`helm upgrade` with further `--set`, and wait for the pods."""
        more = [f"--set={setting}" for setting in settings]
        await self.helm("upgrade", NAME, str(ROOT / "deploy/helm/headgate"), f"--values={self._values}", *more)
        await self.wait_until_rolled_out()

    async def claims(self) -> set[str]:
        """Names of the volumes that NATS' servers asked for."""
        return {one["metadata"]["name"] for one in await self.cluster.all("persistentvolumeclaims")}

    async def manifest(self) -> list[JsonObject]:
        """All objects of the release."""
        return [one for one in yaml.safe_load_all(await self.helm("get", "manifest", NAME)) if one]

    async def uninstall(self) -> None:
        """`helm uninstall`, unless that was done."""
        await self.helm("uninstall", NAME, "--ignore-not-found")

    async def helm(self, *words: str) -> str:
        """Run helm in the namespace; what it prints."""
        return await run(HELM, f"--namespace={self.cluster.namespace}", *words, KUBECONFIG=str(self.cluster.kubeconfig))

    async def pods(self, component: str = "") -> list[JsonObject]:
        """Pods of a component or of all, those that end included."""
        found = []
        for pod in await self.cluster.all("pods"):
            labels = pod["metadata"].get("labels", {})
            of_it = labels.get("app.kubernetes.io/component", "")
            if labels.get("app.kubernetes.io/instance") == NAME and component in ("", of_it):
                found.append(pod)
        return found

    async def scale(self, component: str, replicas: int) -> None:
        """Change a Deployment's number of pods, and wait until there are so many, all of them ready."""
        await self.cluster.merge(COMPONENTS[component], f"{NAME}-{component}", {"spec": {"replicas": replicas}})
        await self.wait_until_rolled_out()

    async def restart(self, component: str) -> None:
        """What `kubectl rollout restart` does, and wait until new pods have taken over."""
        before = {pod["metadata"]["uid"] for pod in await self.pods(component)}
        annotation = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": datetime.now(UTC).isoformat()}}}
        await self.cluster.merge(COMPONENTS[component], f"{NAME}-{component}", {"spec": {"template": annotation}})
        await self.wait_until_rolled_out()
        assert before.isdisjoint({pod["metadata"]["uid"] for pod in await self.pods(component)})

    async def wait_until_rolled_out(self) -> None:
        """Until every component has its pods, all of the newest revision and ready, and no other."""

        async def are_all() -> bool:
            return all([await self._is_rolled_out(component) for component in COMPONENTS])

        try:
            await eventually(are_all, ROLLOUT_S)
        except TimeoutError:
            stuck = [(pod["metadata"]["name"], pod["status"]) for pod in await self.pods() if not ready(pod)]
            raise AssertionError(f"not rolled out within {ROLLOUT_S} s; pods that are not ready: {stuck}") from None

    async def _is_rolled_out(self, component: str) -> bool:
        found = await self.cluster.get(COMPONENTS[component], f"{NAME}-{component}")
        status, wanted = found["status"], found["spec"]["replicas"]
        pods = await self.pods(component)
        return (
            all([ready(pod) for pod in pods])
            and len(pods) == wanted == status.get("updatedReplicas", 0)
            and status.get("observedGeneration", 0) >= found["metadata"]["generation"]
        )

    def client(self, host: str, **how: Any) -> SteadyClient:
        """A client of the gateways' Service."""
        return SteadyClient(self.http_port, host, address=self.address, **how)

    async def is_gone(self, manifest: JsonObject) -> bool:
        """Whether an object of the release is no more."""
        try:
            await self.cluster.request("GET", self.cluster.path_of(manifest))
        except Absent:
            return True
        return False
