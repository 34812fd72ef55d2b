"""What a table is made of: clusters and namespaces by name. Which classes count is said by the dialects' own settings.

Names are exact, or have a `*` for any characters. Rejected: label selectors of namespaces, as watchers may be limited
to some namespaces and then read no Namespace at all.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from pydantic import BaseModel, ConfigDict

from headgate.common.resources import ObjectRef

_TABLE = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_PATTERN = re.compile(r"[a-z0-9*](?:[-a-z0-9*]{0,61}[a-z0-9*])?")


class Selection(BaseModel):
    """Which clusters take part in a table, and whose objects are served. What is empty selects all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    clusters: tuple[str, ...] = ()
    """Others take no part at all: neither their routes nor their endpoints."""
    namespaces: tuple[str, ...] = ()
    """Of the objects that become routes or stream ports; what these refer to is found wherever it is."""

    def has_cluster(self, cluster: str) -> bool:
        """Whether a cluster takes part."""
        return not self.clusters or _any_of(self.clusters).fullmatch(cluster) is not None

    def has_namespace(self, namespace: str) -> bool:
        """Whether objects of a namespace are served; those of no namespace belong to every table."""
        return not (self.namespaces and namespace) or _any_of(self.namespaces).fullmatch(namespace) is not None

    def selects(self, ref: ObjectRef) -> bool:
        """Whether an object may be served."""
        return self.has_cluster(ref.cluster) and self.has_namespace(ref.namespace)


EVERYTHING = Selection()


@lru_cache(maxsize=64)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(pattern).replace(r"\*", ".*") for pattern in patterns))


def matches_any(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether some of the names is this one, or has a `*` for what differs."""
    return _any_of(patterns).fullmatch(name) is not None


def check_patterns(values: Iterable[str]) -> None:
    """See to it that values can be names of clusters or namespaces.

    Raises:
        ValueError: one cannot; names it.
    """
    for value in values:
        if not _PATTERN.fullmatch(value):
            raise ValueError(f"{value!r} is no name; give names such as shop or team-*, several separated by commas")


def check_table_name(value: str) -> str:
    """Return a table's name.

    Raises:
        ValueError: it is none: it goes into subjects, keys and conditions.
    """
    if not _TABLE.fullmatch(value):
        raise ValueError("must be a name of at most 63 lower-case letters, digits and -, such as tenant-a")
    return value
