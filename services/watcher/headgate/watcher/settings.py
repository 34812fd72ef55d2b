"""Settings of the watcher."""

import re
from pathlib import Path
from typing import Self

from pydantic import Field, field_validator, model_validator

from headgate.common.settings import ServiceSettings

_CLUSTER = _NAMESPACE = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = rf"(?:[a-z0-9][-a-z0-9.]{{0,252}}/)?{_NAME}"
_VALUES = rf"\(\s*(?:{_NAME})?(?:\s*,\s*(?:{_NAME})?)*\s*\)"
_REQUIREMENT = (
    rf"\s*(?:!\s*{_KEY}|{_KEY}(?:\s*(?:==?|!=)\s*(?:{_NAME})?|\s*[<>]\s*[0-9]+|\s+(?:in|notin)\s*{_VALUES})?)\s*"
)
_SELECTOR = re.compile(rf"{_REQUIREMENT}(?:,{_REQUIREMENT})*")
"""Label selectors, as `labels.Parse` of k8s.io/apimachinery takes them."""


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

    @field_validator("namespaces")
    @classmethod
    def _check_namespaces(cls, values: list[str]) -> list[str]:
        for value in values:
            if not _NAMESPACE.fullmatch(value):
                raise ValueError(f"{value!r} is not a namespace's name; several are separated by commas: shop,blog")
        return values

    @field_validator("ingress_selector")
    @classmethod
    def _check_ingress_selector(cls, value: str) -> str:
        if value and not _SELECTOR.fullmatch(value):
            raise ValueError("must be a label selector, such as team=web or team in (web, shop),!internal")
        return value

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        for name in ("kubeconfig", "context", "namespaces", "ingress_selector"):
            if self.manifests and getattr(self, name):
                raise ValueError(f"manifests and {name} exclude each other: one watcher reads one source")
        return self
