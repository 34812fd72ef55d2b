"""How a cluster takes part in the table, as people decide it: its weight, its rank, whether it is drained.

Such a decision is an object of the delta log like any other, `Cluster` of `headgate.dev`, one for each cluster; no API
server knows it. So it takes effect as any change does, stands in the history with its author, and is undone by the
next.
"""

import re
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from headgate.common.deltas import Author, Delta, Operation
from headgate.common.resources import CLUSTER, JsonObject, ObjectRef
from headgate.common.table import DEFAULT_TABLE

MAX_WEIGHT = 100

_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_GATEWAY = re.compile(r"(https?)://(\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9.-]+):([0-9]{1,5})")


def check_cluster_name(name: str) -> str:
    """Return a cluster's name as it is.

    Raises:
        ValueError: it is none.
    """
    if not _NAME.fullmatch(name):
        raise ValueError("must be a name of at most 63 lower-case letters, digits and -, such as paris-1")
    return name


class Gateway(BaseModel):
    """Where a cluster's own gateways can be reached from other clusters."""

    model_config = ConfigDict(frozen=True)

    scheme: Literal["http", "https"]
    address: str
    port: int

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read `http://203.0.113.7:80`.

        Raises:
            ValueError: it is not of that form.
        """
        found = _GATEWAY.fullmatch(url)
        if found is None or not 0 < int(found[3]) < 65536:
            raise ValueError(f"{url!r} is not of the form http://ADDRESS:PORT or https://ADDRESS:PORT")
        return cls(
            scheme="https" if found[1] == "https" else "http", address=found[2].strip("[]").lower(), port=int(found[3])
        )


def _check_gateway(url: str) -> str:
    Gateway.parse(url)
    return url


class Drain(BaseModel):
    """Why a cluster gets no new requests."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: str
    at: AwareDatetime
    reason: str = ""


class Removal(BaseModel):
    """Why a cluster has no part in any table, until its watchers announce it again after that time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: str
    at: AwareDatetime
    reason: str = ""


class ClusterSettings(BaseModel):
    """The `spec` of a `Cluster`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weight: int | None = Field(default=None, ge=0, le=MAX_WEIGHT)
    """Share of the requests of Services that several clusters have, relative to those of the others; None: as many
    endpoints as it has, so many shares."""
    priority: int = Field(default=0, ge=0, le=127)
    """Clusters of a greater number get requests when too few endpoints of the smaller ones are healthy."""
    gateways: tuple[Annotated[str, AfterValidator(_check_gateway)], ...] = ()
    """The cluster's pods cannot be reached from elsewhere: gateways of other clusters ask these instead, which serve
    the table `default`."""
    table_gateways: dict[str, tuple[Annotated[str, AfterValidator(_check_gateway)], ...]] = {}
    """The same of other tables, by their names. Without any, a table has no way to pods that cannot be reached: a
    gateway of another table would answer by other routes."""
    drained: Drain | None = None
    removed: Removal | None = None

    @property
    def has_local_pods(self) -> bool:
        """Whether no other cluster's gateways reach its pods."""
        return any((self.gateways, *self.table_gateways.values()))

    def of_table(self, table: str) -> Self:
        """Return the settings with the gateways that serve a table as `gateways`."""
        known = {**self.table_gateways, DEFAULT_TABLE: self.gateways}
        return self.model_copy(update={"gateways": known.get(table, ()), "table_gateways": known})

    def with_gateways(self, table: str, gateways: tuple[str, ...]) -> Self:
        """Return the settings with other gateways of a table."""
        if table == DEFAULT_TABLE:
            return self.model_copy(update={"gateways": gateways})
        return self.model_copy(update={"table_gateways": {**self.table_gateways, table: gateways}})


def describe(settings: ClusterSettings) -> str:
    """Say in a line what is decided; of gateways those of the table that the settings are `of_table`."""
    if settings.removed:
        return f"removed by {settings.removed.by}"
    weight = "weighted by its endpoints" if settings.weight is None else f"weight {settings.weight}"
    drained = f"drained by {settings.drained.by}" if settings.drained else "not drained"
    reached = f"reached by {', '.join(settings.gateways) or 'none of its gateways'}"
    reached = reached if settings.has_local_pods else "reached directly"
    return f"{drained}, {weight}, priority {settings.priority}, {reached}"


def cluster_ref(cluster: str) -> ObjectRef:
    """Return the object that holds a cluster's settings."""
    return ObjectRef(cluster, CLUSTER.group, CLUSTER.resource, "", cluster)


def is_cluster_ref(ref: ObjectRef) -> bool:
    """Whether an object holds the settings of its cluster."""
    return ref.resource == CLUSTER.resource and ref == cluster_ref(ref.cluster)


class Decision(BaseModel):
    """What somebody decided of a cluster, and when."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spec: JsonObject
    """A `ClusterSettings`, unread: a later release may know more of them, and who passes them on need not."""
    by: str
    at: AwareDatetime

    @classmethod
    def make(cls, settings: ClusterSettings, by: str, at: datetime) -> Self:
        """Return the decision that these settings shall count."""
        return cls(spec=settings.model_dump(mode="json", exclude_defaults=True), by=by, at=at)

    @classmethod
    def of(cls, delta: Delta) -> Self:
        """Return the decision that a delta tells of."""
        author = delta.author or Author("")
        return cls(spec=(delta.object or {}).get("spec") or {}, by=author.name, at=author.at or delta.observed_at)

    def as_delta(self, cluster: str) -> Delta:
        """Return what goes into the log."""
        return Delta(
            ref=cluster_ref(cluster),
            operation=Operation.APPLY,
            uid=f"cluster-{cluster}",
            resource_version=self.at.isoformat(),
            observed_at=self.at,
            object={
                "apiVersion": f"{CLUSTER.group}/v1",
                "kind": CLUSTER.kind,
                "metadata": {"name": cluster},
                "spec": self.spec,
            },
            author=Author(self.by, self.at),
        )


def read_settings(manifest: JsonObject) -> ClusterSettings:
    """Read an object of the log; what cannot be read, as from a later release, is as if nothing had been decided."""
    try:
        return ClusterSettings.model_validate(manifest.get("spec") or {})
    except ValidationError:
        return ClusterSettings()
