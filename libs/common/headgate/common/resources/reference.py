"""How one object is referred to, and how its manifest is held."""

from typing import Any, NamedTuple

JsonObject = dict[str, Any]
"""A decoded JSON object, as a Kubernetes manifest is one."""


class ObjectRef(NamedTuple):
    """One object in one cluster. Namespace is empty for cluster-scoped objects."""

    cluster: str
    group: str
    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.cluster}: {self.resource} {where}"
