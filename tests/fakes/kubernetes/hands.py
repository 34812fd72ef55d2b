"""What tests do in a cluster, be it the fake API server or a real one (`fakes.kubernetes.real`)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from fakes.kubernetes.api import FakeKubernetes, Resource
from headgate.common.resources import APISIX_KINDS

JsonObject = dict[str, Any]


class Hands(Protocol):
    """Hands in one namespace of a cluster, which manifests call `default`, and at its cluster scope."""

    address: str
    """Where backends of this machine are reached; a real API server takes no loopback addresses."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What keeps a stack to what these hands make."""

    async def apply(self, manifest: JsonObject) -> JsonObject:
        """Create or replace an object; returns it as stored."""

    async def delete(self, resource: str, name: str) -> None:
        """Delete an object by plural and name."""

    async def get(self, resource: str, name: str) -> JsonObject:
        """Return an object by plural and name."""

    def write_kubeconfig(self, path: Path) -> Path:
        """Return a file that names the cluster: this one, if it must be written."""


class FakeHands:
    """Of the fake API server, whose namespace is `default`."""

    address = "127.0.0.1"
    environment: Mapping[str, str] = {}

    def __init__(self, api: FakeKubernetes) -> None:
        self.api = api
        for kind in APISIX_KINDS:
            found = Resource(kind.group, kind.resource, kind.kind, kind.namespaced, is_custom=True)
            api.install(f"{kind.group}/{kind.versions[0]}", found)

    async def apply(self, manifest: JsonObject) -> JsonObject:
        return self.api.apply(manifest)

    async def delete(self, resource: str, name: str) -> None:
        self.api.delete(resource, name)

    async def get(self, resource: str, name: str) -> JsonObject:
        return self.api.get(resource, name)

    def write_kubeconfig(self, path: Path) -> Path:
        return self.api.write_kubeconfig(path)
