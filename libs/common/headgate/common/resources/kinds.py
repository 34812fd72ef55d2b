"""A set of rows, and how the row of an object is found in it."""

from collections.abc import Iterable, Iterator, Sequence

from headgate.common.resources.kind import ResourceKind, WatchMode

KindChoice = tuple[ResourceKind, ...]
"""Kinds that say the same, preferred first: the first that a server has is read, the others are not."""


class Kinds:
    """Rows in the order in which objects are read: what others refer to comes first."""

    def __init__(self, rows: Iterable[ResourceKind]) -> None:
        """Take the rows."""
        self._rows = tuple(rows)
        self._by_resource = {(row.group, row.resource): row for row in self._rows}
        self._by_kind = {(row.group, row.kind): row for row in self._rows}

    def __iter__(self) -> Iterator[ResourceKind]:
        return iter(self._rows)

    def find(self, group: str, resource: str) -> ResourceKind | None:
        """Return the row of a group and plural."""
        return self._by_resource.get((group, resource))

    def named(self, group: str, kind: str) -> ResourceKind | None:
        """Return the row of a group and a kind as manifests have them."""
        return self._by_kind.get((group, kind))

    def has_whole_group(self, group: str) -> bool:
        """Whether all kinds of a group are about routing, those that are not read included."""
        return any(row.has_whole_group for row in self._rows if row.group == group)

    @property
    def readable(self) -> Sequence[ResourceKind]:
        """What manifests may hold: all but what people write into the log."""
        return [row for row in self._rows if row.watch is not WatchMode.NEVER]

    @property
    def choices(self) -> Sequence[KindChoice]:
        """What clusters may hold: each kind with those that stand in for it."""
        return [
            (row, *(other for other in self._rows if other.stands_in_for is row))
            for row in self.readable
            if row.stands_in_for is None
        ]
