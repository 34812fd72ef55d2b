"""What all table values have in common."""

from pydantic import BaseModel, ConfigDict


class Entry(BaseModel):
    """Base of all table values."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Provenance(Entry):
    """The object, and the place in it, that an entry comes from."""

    cluster: str
    kind: str
    namespace: str
    name: str
    rule: str = ""
    """Field path within the object: `spec.rules[0].http.paths[1]`."""
    resource_version: str = ""

    @property
    def owner(self) -> str:
        """Cluster and namespace, neither of which an object can choose; names of both have no `/`."""
        return f"{self.cluster}/{self.namespace}"

    def __str__(self) -> str:
        where = f"{self.kind} {self.namespace}/{self.name}"
        return f"{where} {self.rule}" if self.rule else where
