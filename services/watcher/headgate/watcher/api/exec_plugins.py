"""Exec plugins that ask for their cluster (`provideClusterInfo`) get it in KUBERNETES_EXEC_INFO, as client-go has it.

kubernetes_asyncio runs plugins without it; this puts what is missing into the environment that it prepares. Fields are
those of `Cluster` in client.authentication.k8s.io/v1.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from kubernetes_asyncio.config import kube_config
from kubernetes_asyncio.config.exec_provider import ExecProvider

from headgate.common.resources import JsonObject

_EXTENSION = "client.authentication.k8s.io/exec"
_COPIED = (
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "certificate-authority-data",
    "proxy-url",
    "disable-compression",
)
_cluster: ContextVar[JsonObject | None] = ContextVar("cluster of the kubeconfig that is being loaded", default=None)


class _InformedEnvironment(dict[str, str]):
    """Adds the cluster to what the plugin is told."""

    def __init__(self, others: Mapping[str, str], cluster: JsonObject) -> None:
        super().__init__(others)
        self._cluster = cluster

    def __setitem__(self, name: str, value: str) -> None:
        if name == "KUBERNETES_EXEC_INFO":
            info = json.loads(value)
            info["spec"]["cluster"] = self._cluster
            value = json.dumps(info)
        super().__setitem__(name, value)


class _InformedProvider(ExecProvider):
    def __init__(self, exec_config: Any) -> None:
        super().__init__(exec_config)
        cluster = _cluster.get()
        if cluster is not None and exec_config.safe_get("provideClusterInfo"):
            self.env = _InformedEnvironment(self.env, cluster)


kube_config.ExecProvider = _InformedProvider  # type: ignore[attr-defined]


@contextmanager
def informed_plugins(path: str, context: str | None) -> Iterator[None]:
    """Let a plugin that is run meanwhile know the cluster of this context of a kubeconfig, if it wants to."""
    token = _cluster.set(_cluster_info(kube_config.KubeConfigMerger(path).config, context))
    try:
        yield
    finally:
        _cluster.reset(token)


def _cluster_info(config: Any, context: str | None) -> JsonObject | None:
    if config is None:
        return None
    chosen = config["contexts"].get_with_name(context or config["current-context"])["context"]["cluster"]
    found = config["clusters"].get_with_name(chosen)["cluster"]
    told = {name: found.value[name] for name in _COPIED if name in found.value}
    if (file := found.value.get("certificate-authority")) and "certificate-authority-data" not in told:
        folder = Path(found.path or "").parent
        told["certificate-authority-data"] = base64.b64encode((folder / file).read_bytes()).decode()
    for extension in found.value.get("extensions") or ():
        if extension.get("name") == _EXTENSION:
            told["config"] = extension.get("extension")
    return told
