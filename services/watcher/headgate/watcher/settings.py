"""Settings of the watcher."""

import re
from pathlib import Path
from typing import Self

from pydantic import Field, field_validator, model_validator

from headgate.common.settings import ServiceSettings

_CLUSTER = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")


class WatcherSettings(ServiceSettings):
    """What a watcher can be told."""

    cluster: str = Field(
        default="local", description="Name that the cluster has in routes, revisions and metrics; local by default."
    )
    manifests: list[Path] = Field(
        default=[],
        description="Folders of manifests to follow instead of a cluster; none by default: an API server is read.",
    )
    kubeconfig: Path | None = Field(
        default=None,
        description="File that names the API server; by default KUBECONFIG, the pod's service account, or "
        "~/.kube/config.",
    )
    context: str = Field(default="", description="Context of the kubeconfig; its current one by default.")
    namespaces: list[str] = Field(
        default=[], description="Read these namespaces only, so that Roles are enough; all by default."
    )
    ingress_selector: str = Field(
        default="", description="Label selector for Ingresses, as kubectl takes it; all by default."
    )
    sealing_public_keys: list[str] = Field(
        default=[],
        description="Public keys of the gateways, to which Secrets are sealed: in base64, or files that hold one and "
        "are waited for; by default gateway.pub in the data directory.",
    )

    @field_validator("cluster")
    @classmethod
    def _check_cluster(cls, value: str) -> str:
        if not _CLUSTER.fullmatch(value):
            raise ValueError("must be a name of at most 63 lower-case letters, digits and -, such as paris-1")
        return value

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        for name in ("kubeconfig", "context", "namespaces", "ingress_selector"):
            if self.manifests and getattr(self, name):
                raise ValueError(f"manifests and {name} exclude each other: one watcher reads one source")
        return self
