"""What a cluster has: asked once, so that what cannot be run there is left out with its reason."""

import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fakes.kubernetes.real import MANAGER, RealCluster, eventually
from headgate.common.resources import APISIX_GROUP
from headgate.watcher.errors import Absent, ApiStatusError

CRDS = Path(__file__).parents[2] / "crds"
DEFINITIONS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HELM = os.environ.get("HELM") or "helm"
CONTROLLERS_S = 10.0
OURS = "ours, as in crds/, for as long as the tests run"
OTHERS = "there were some before; they stay as they are"


@dataclass(frozen=True)
class Facts:
    """Of one cluster."""

    version: str
    nodes: tuple[str, ...]
    """Those that are ready, and what their kubelets are."""
    node_address: str
    """Of one of them, for ports of nodes; empty: there is none."""
    storage_class: str
    """The default one; empty: there is none."""
    has_controllers: bool
    """Whether new namespaces get their service account, so that those which are deleted will be emptied."""
    address: str
    """Of this machine, where backends are; empty: there is none but loopback."""
    definitions: str
    """Of APISIX' kinds: `OURS`, `OTHERS`, or why there are none."""
    judges: tuple[str, ...]
    """Others' webhooks that are asked about APISIX' kinds."""
    tools: tuple[str, ...]

    @property
    def has_definitions(self) -> bool:
        return self.definitions in (OURS, OTHERS)

    @property
    def lines(self) -> Iterator[str]:
        """What there is, in words."""
        yield f"API server: {self.version}"
        yield f"nodes that run pods: {', '.join(self.nodes) or 'none'}"
        yield f"default StorageClass: {self.storage_class or 'none; the NATS server of the chart keeps nothing'}"
        yield f"controllers: {'yes' if self.has_controllers else 'none; the tests empty their namespaces'}"
        yield f"backends of this machine: {self.address or 'no address but loopback'}"
        yield f"definitions of {APISIX_GROUP}: {self.definitions}"
        yield f"webhooks that judge them: {', '.join(self.judges) or 'none'}"
        yield f"tools: {', '.join(self.tools) or 'neither kubectl nor helm'}"


async def find_out(kubeconfig: Path) -> Facts:
    """Ask a cluster what it has, and install the definitions of `crds/` where there are none.

    Raises:
        ApiError, ClusterConfigError: it cannot be asked.
    """
    async with RealCluster(kubeconfig) as cluster:
        version = (await cluster.request("GET", "/version"))["gitVersion"]
        nodes = [node for node in await cluster.all("nodes") if _is_ready(node)]
        has_controllers = await _gets_its_account(cluster)
        cluster.has_controllers = has_controllers
        return Facts(
            version=version,
            nodes=tuple(f"{one['metadata']['name']} {one['status']['nodeInfo']['kubeletVersion']}" for one in nodes),
            node_address=next((address for one in nodes if (address := _internal_address(one))), ""),
            storage_class=next(
                (one["metadata"]["name"] for one in await cluster.all("storageclasses") if _is_default(one)), ""
            ),
            has_controllers=has_controllers,
            address=cluster.address,
            definitions=await _install(cluster),
            judges=tuple(
                one["metadata"]["name"]
                for one in await cluster.all("validatingwebhookconfigurations")
                if any(_judges(rule) for webhook in one.get("webhooks", ()) for rule in webhook.get("rules", ()))
            ),
            tools=tuple(tool for tool in ("kubectl", HELM) if shutil.which(tool)),
        )


async def uninstall(kubeconfig: Path) -> None:
    """Take the definitions away that `find_out` installed, unless somebody else has changed them since."""
    async with RealCluster(kubeconfig) as cluster:
        for definition in crds():
            path = f"{DEFINITIONS_PATH}/{definition['metadata']['name']}"
            with contextlib.suppress(Absent):
                if _is_ours(await cluster.request("GET", path)):
                    await cluster.request("DELETE", path)


def crds() -> list[dict[str, Any]]:
    """Return the definitions in `crds/`."""
    return [one for path in sorted(CRDS.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())]


@asynccontextmanager
async def without_definition(cluster: RealCluster, name: str) -> AsyncIterator[None]:
    """Take one of our definitions away while the block lasts."""
    path = f"{DEFINITIONS_PATH}/{name}"
    await cluster.request("DELETE", path)
    await eventually(lambda: _is_gone(cluster, path))
    try:
        yield
    finally:
        await install_one(cluster, next(one for one in crds() if one["metadata"]["name"] == name))


async def install_one(cluster: RealCluster, definition: dict[str, Any]) -> None:
    """Apply a definition and wait until its objects are served, and discovery says so, which is later."""
    path = f"{DEFINITIONS_PATH}/{definition['metadata']['name']}"
    query = {"fieldManager": MANAGER, "force": "true"}
    await cluster.request("PATCH", path, definition, query, "application/apply-patch+yaml")

    names, group = definition["spec"]["names"], definition["spec"]["group"]
    groups = [f"/apis/{group}/{version['name']}" for version in definition["spec"]["versions"]]

    async def is_served() -> bool:
        try:
            found = [await cluster.request("GET", one) for one in groups]
            for one in groups:
                await cluster.request("GET", f"{one}/{names['plural']}", query={"limit": "1"})
        except Absent:
            return False
        return all(names["plural"] in {one["name"] for one in each["resources"]} for each in found)

    await eventually(is_served)


async def _install(cluster: RealCluster) -> str:
    definitions = crds()
    names = {one["metadata"]["name"] for one in definitions}
    try:
        there = (await cluster.request("GET", DEFINITIONS_PATH))["items"]
        if any(one["metadata"]["name"] in names and not _is_ours(one) for one in there):
            return OTHERS
        for definition in definitions:
            await install_one(cluster, definition)
    except ApiStatusError as error:
        return f"none, as they cannot be installed: {error}"
    return OURS


def _is_ours(definition: dict[str, Any]) -> bool:
    """Whether nobody but these tests wrote it; a run that was broken off may have left it."""
    fields = definition["metadata"]["managedFields"]
    return {one["manager"] for one in fields if not one.get("subresource")} == {MANAGER}


async def _is_gone(cluster: RealCluster, path: str) -> bool:
    try:
        await cluster.request("GET", path)
    except Absent:
        return True
    return False


async def _gets_its_account(cluster: RealCluster) -> bool:
    async def is_there() -> bool:
        with contextlib.suppress(Absent):
            return bool(await cluster.get("serviceaccounts", "default"))
        return False

    try:
        await eventually(is_there, CONTROLLERS_S)
    except TimeoutError:
        return False
    return True


def _is_ready(node: dict[str, Any]) -> bool:
    return ("Ready", "True") in {(one["type"], one["status"]) for one in node["status"].get("conditions", [])}


def _internal_address(node: dict[str, Any]) -> str:
    addresses = {one["type"]: one["address"] for one in node["status"]["addresses"]}
    return str(addresses.get("InternalIP", ""))


def _judges(rule: dict[str, Any]) -> bool:
    return not {APISIX_GROUP, "*"}.isdisjoint(rule["apiGroups"])


def _is_default(storage_class: dict[str, Any]) -> bool:
    annotations = storage_class["metadata"].get("annotations", {})
    return bool(annotations.get("storageclass.kubernetes.io/is-default-class") == "true")
