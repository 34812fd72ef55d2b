"""A few manifests to look up, without a world; nothing is recorded."""

from collections.abc import Sequence
from typing import Any


class Known:
    """The part of `Lookups` that finds objects by name."""

    cluster = "a"

    def __init__(self, *manifests: Any, is_assumed: bool = False) -> None:
        self._manifests: Sequence[Any] = manifests
        self.is_assumed = is_assumed

    def get(self, stored: Any, namespace: str, name: str) -> Any:
        wanted = (stored.kind.kind, namespace, name)
        for manifest in self._manifests:
            metadata = manifest["metadata"]
            if (manifest["kind"], metadata.get("namespace", ""), metadata["name"]) == wanted:
                return stored.read(manifest)
        return None

    def versions(self, stored: Any, namespace: str, name: str) -> None:
        return None
