"""A real cluster, as the kubeconfig that `KUBECONFIG` names has it.

    async with RealCluster(Path(os.environ["KUBECONFIG"])) as cluster:
        await cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {...}})

Others may work in it: everything is made in a namespace of its own, which manifests call `default`; what is
cluster-scoped has a name that begins with that of the namespace, and IngressClasses a controller of their own. All of
it is taken away again.
"""

import asyncio
import contextlib
import copy
import os
import socket
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import yaml

from headgate.common.resources import ALL_KINDS
from headgate.watcher.api.kinds import group_path
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.api.wire import decode_object
from headgate.watcher.errors import Absent

JsonObject = dict[str, Any]
MANAGER = "cluster-test"
PREFIX = "headgate-test-"
BOUND_S = 90.0
_KINDS: dict[str, tuple[str, str, bool]] = {
    "ServiceAccount": ("v1", "serviceaccounts", True),
    "ConfigMap": ("v1", "configmaps", True),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims", True),
    "Node": ("v1", "nodes", False),
    "Deployment": ("apps/v1", "deployments", True),
    "StatefulSet": ("apps/v1", "statefulsets", True),
    "Job": ("batch/v1", "jobs", True),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets", True),
    "StorageClass": ("storage.k8s.io/v1", "storageclasses", False),
    "NetworkPolicy": ("networking.k8s.io/v1", "networkpolicies", True),
    "Event": ("events.k8s.io/v1", "events", True),
    "Lease": ("coordination.k8s.io/v1", "leases", True),
    "Role": ("rbac.authorization.k8s.io/v1", "roles", True),
    "RoleBinding": ("rbac.authorization.k8s.io/v1", "rolebindings", True),
    "ClusterRole": ("rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": ("rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1", "customresourcedefinitions", False),
    "ValidatingWebhookConfiguration": (
        "admissionregistration.k8s.io/v1",
        "validatingwebhookconfigurations",
        False,
    ),
} | {
    kind.kind: (f"{kind.group}/{kind.versions[0]}".lstrip("/"), kind.resource, kind.namespaced)
    for kind in ALL_KINDS.readable
    if kind.stands_in_for is None
}
_BY_PLURAL = {plural: (version, namespaced) for version, plural, namespaced in _KINDS.values()}


class RealCluster:
    """An administrator's hands in a cluster."""

    def __init__(self, kubeconfig: Path, *, has_controllers: bool = True) -> None:
        """Choose the cluster; nothing is done before `async with`.

        Args:
            kubeconfig: its file, or several joined with `:`.
            has_controllers: whether somebody empties a namespace that is deleted; else it is done here.
        """
        self.kubeconfig = kubeconfig
        self.namespace = PREFIX + uuid.uuid4().hex[:8]
        self.transport = KubernetesTransport(kubeconfig)
        self.address = ""
        self.has_controllers = has_controllers
        self._made: dict[str, None] = {}

    @property
    def environment(self) -> Mapping[str, str]:
        return {"HEADGATE_NAMESPACES": self.namespace, "HEADGATE_CONTROLLER_NAMES": self.controller}

    @property
    def controller(self) -> str:
        """Of our IngressClasses."""
        return f"headgate.dev/{self.namespace}"

    def write_kubeconfig(self, path: Path) -> Path:
        return self.kubeconfig

    def write_kubeconfig_of(self, path: Path, token: str) -> Path:
        """Write the kubeconfig of somebody who has a bearer token; returns the path."""
        files = [Path(one) for one in str(self.kubeconfig).split(os.pathsep)]
        config = next(found for one in files if (found := yaml.safe_load(one.read_text())).get("current-context"))
        context = next(one for one in config["contexts"] if one["name"] == config["current-context"])
        config["users"] = [{"name": "somebody", "user": {"token": token}}]
        config["contexts"] = [{"name": context["name"], "context": {**context["context"], "user": "somebody"}}]
        path.write_text(yaml.safe_dump(config))
        return path

    async def __aenter__(self) -> Self:
        await self.transport.prepare()
        server = urlsplit(self.transport.description.split()[0])
        self.address = machine_address(server.hostname or "192.0.2.1", server.port or 443)
        await self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        within = f"/namespaces/{self.namespace}"
        for path in reversed(self._made):
            if within not in path or path.endswith(within) or not self.has_controllers:
                with contextlib.suppress(Absent):
                    await self.request("DELETE", path)
        if not self.has_controllers:
            with contextlib.suppress(Absent):
                empty = {"metadata": {"name": self.namespace}, "spec": {"finalizers": []}}
                await self.request("PUT", f"/api/v1{within}/finalize", empty)
        await self.transport.close()

    async def apply(self, manifest: JsonObject, manager: str = MANAGER) -> JsonObject:
        """Apply by the server, in place of all that this manager said before. Raises `ApiStatusError`."""
        placed = self.place(manifest)
        path = self.path_of(placed)
        self._made[path] = None
        query = {"fieldManager": manager, "force": "true"}
        return await self.request("PATCH", path, placed, query, "application/apply-patch+yaml")

    async def try_out(self, manifest: JsonObject) -> None:
        """Have the server check an object without keeping it. Raises `ApiStatusError`."""
        placed = self.place(manifest)
        query = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": MANAGER, "force": "true"}
        await self.request("PATCH", self.path_of(placed), placed, query, "application/apply-patch+yaml")

    async def merge(self, resource: str, name: str, patch: JsonObject, manager: str = MANAGER) -> JsonObject:
        """Change an object by a merge patch."""
        query = {"fieldManager": manager}
        return await self.request("PATCH", self._path(resource, name), patch, query, "application/merge-patch+json")

    async def delete(self, resource: str, name: str) -> None:
        path = self._path(resource, name)
        self._made.pop(path, None)
        await self.request("DELETE", path)

    async def get(self, resource: str, name: str) -> JsonObject:
        return await self.request("GET", self._path(resource, name))

    async def all(self, resource: str) -> list[JsonObject]:
        """Return the objects of a kind: those of our namespace where it has namespaces."""
        items: list[JsonObject] = (await self.request("GET", self._path(resource)))["items"]
        return items

    async def token_of(self, account: str) -> str:
        """Ask for a token of a service account of our namespace."""
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        given = await self.request("POST", f"{self._path('serviceaccounts', account)}/token", asked)
        return str(given["status"]["token"])

    async def request(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> JsonObject:
        """Ask the API server; returns the object that it answers with. Raises `ApiStatusError`."""
        answer = await self.transport.request(method, path, query=query, body=body, content_type=content_type)
        return decode_object(answer)

    # Where things are

    def scoped(self, name: str) -> str:
        """Our name for something cluster-scoped."""
        return name if name.startswith(self.namespace) else f"{self.namespace}-{name}"

    def place(self, manifest: JsonObject) -> JsonObject:
        """Return a manifest as it is applied: in our namespace, and under our names where there is none."""
        placed = copy.deepcopy(manifest)
        metadata, kind = placed["metadata"], placed["kind"]
        if kind in ("Namespace", "CustomResourceDefinition"):
            return placed
        if not _KINDS[kind][2]:
            metadata["name"] = self.scoped(metadata["name"])
        elif metadata.get("namespace", "default") == "default":
            metadata["namespace"] = self.namespace
        if kind == "IngressClass":
            placed["spec"]["controller"] = self.controller
        elif kind == "Ingress" and placed["spec"].get("ingressClassName"):
            placed["spec"]["ingressClassName"] = self.scoped(placed["spec"]["ingressClassName"])
        return placed

    def path_of(self, manifest: JsonObject) -> str:
        """Return the path of a placed manifest's object."""
        version, metadata = manifest["apiVersion"], manifest["metadata"]
        _, plural, namespaced = _KINDS[manifest["kind"]]
        within = f"/namespaces/{metadata['namespace']}" if namespaced else ""
        return f"{group_path(version)}{within}/{plural}/{metadata['name']}"

    def _path(self, resource: str, name: str = "") -> str:
        version, namespaced = _BY_PLURAL[resource]
        within = f"/namespaces/{self.namespace}" if namespaced else ""
        unchanged = namespaced or resource in ("namespaces", "nodes", "customresourcedefinitions")
        last = name if unchanged or not name else self.scoped(name)
        return f"{group_path(version)}{within}/{resource}" + (f"/{last}" if last else "")


def machine_address(server: str, port: int) -> str:
    """An address of this machine, not a loopback one: that from which the API server is reached, if possible."""
    for target in ((server, port), ("192.0.2.1", 9)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
            probe.connect(target)  # sends nothing
            if not (found := str(probe.getsockname()[0])).startswith("127."):
                return found
    return ""


async def eventually(condition: Any, within_s: float = BOUND_S) -> None:
    """Wait until an async condition holds; raises `TimeoutError` when it does not come true in time."""
    async with asyncio.timeout(within_s):
        while not await condition():  # noqa: ASYNC110 - what is waited for is in another process
            await asyncio.sleep(0.1)
