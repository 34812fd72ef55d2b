"""Where kinds are on a server, and which versions of them it has.

Discovery asks only for the group versions that we understand: a whole discovery document is a hundred times larger,
and one broken aggregated API makes it fail.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

from headgate.common.resources import JsonObject, KindChoice, ResourceKind
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.api.wire import decode_resources
from headgate.watcher.errors import Absent, Forbidden

_KNOWN_FOR_S = 5.0


@dataclass(frozen=True, slots=True)
class WatchTarget:
    """One kind in one version, in one namespace or in all."""

    kind: ResourceKind
    version: str
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    @property
    def api_version(self) -> str:
        """As in objects: `networking.k8s.io/v1`."""
        return api_version(self.kind, self.version)

    @property
    def path(self) -> str:
        """Path of the collection."""
        inside = f"namespaces/{self.namespace}/" if self.namespace and self.kind.namespaced else ""
        return f"{group_path(self.api_version)}/{inside}{self.kind.resource}"

    @property
    def selectors(self) -> dict[str, str]:
        """Query parameters that narrow lists and watches."""
        given = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: value for name, value in given.items() if value}

    def complete(self, item: JsonObject) -> JsonObject:
        """Return an item of a list with what it is: those of typed lists do not say it."""
        return {"apiVersion": self.api_version, "kind": self.kind.kind, **item}

    def __str__(self) -> str:
        return f"{self.kind} in namespace {self.namespace}" if self.namespace else str(self.kind)


def api_version(kind: ResourceKind, version: str) -> str:
    """Return `apiVersion` of objects of a kind."""
    return f"{kind.group}/{version}" if kind.group else version


def group_path(version: str) -> str:
    """Return the path of an `apiVersion`: `/api/v1` for the core group, `/apis/...` for all others."""
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


@dataclass(slots=True)
class Discovery:
    """What one server has; answers are shared for a moment, as several kinds are in one group version."""

    transport: KubernetesTransport
    _known: dict[str, tuple[float, frozenset[str] | None]] = field(default_factory=dict)
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def find(self, choice: KindChoice) -> tuple[ResourceKind, str] | None:
        """Return the first kind and version of a choice that the server has, or None.

        Raises:
            ApiError, ClusterConfigError: it cannot be said now.
        """
        for kind, version in _candidates(choice):
            resources = await self._resources(api_version(kind, version))
            if resources is not None and kind.resource in resources:
                return kind, version
        return None

    async def _resources(self, version: str) -> frozenset[str] | None:
        async with self._asking:
            now = asyncio.get_running_loop().time()
            asked_at, resources = self._known.get(version, (-_KNOWN_FOR_S, None))
            if now - asked_at >= _KNOWN_FOR_S:
                resources = await self._ask(version)
                self._known[version] = (now, resources)
            return resources

    async def _ask(self, version: str) -> frozenset[str] | None:
        try:
            return decode_resources(await self.transport.request("GET", group_path(version)))
        except Absent:
            return None
        except Forbidden:
            return _EVERYTHING  # discovery is locked down; the list itself will tell


class _Everything(frozenset[str]):
    def __contains__(self, item: object) -> bool:
        return True


_EVERYTHING = _Everything()


def _candidates(choice: KindChoice) -> Iterator[tuple[ResourceKind, str]]:
    return ((kind, version) for kind in choice for version in kind.versions)
