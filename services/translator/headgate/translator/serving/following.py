"""Following: tables that are held get the endpoints of today, whatever becomes of the live table."""

from collections.abc import Iterable, Iterator

from headgate.common.table_image import encode_entry
from headgate.operations.committing.held_table import HeldTable
from headgate.translator.translation import Translation


class Following:
    """Keeps the endpoints of held tables up to date with a translation."""

    def __init__(self) -> None:
        self._tables: tuple[HeldTable, ...] = ()
        self._new: list[HeldTable] = []
        """Those that may have endpoints of any age."""

    def begin(self, tables: Iterable[HeldTable]) -> None:
        """Follow for these tables from now on, whatever age their endpoints are."""
        self._tables = tuple(tables)
        self._new = list(self._tables)

    def go_on(self, tables: Iterable[HeldTable]) -> None:
        """Follow for these tables, whose endpoints are those of today."""
        self._tables = tuple(tables)

    def settle(self, translation: Translation) -> Iterator[None]:
        """Bring the translation up to date, then the tables; yields after each piece of work."""
        yield from translation.settle()
        assembly = translation.assembly
        changed = [key for kind, key in assembly.changed if kind == "upstreams"]
        if self._new:
            translation.hold(frozenset())  # so that everything that they lack is handed out
        for table in self._tables:
            for key in list(table.image.keys("upstreams")) if table in self._new else changed:
                table.refresh(key, assembly.image.get("upstreams", key))
                yield
        self._new.clear()
        translation.hold(frozenset().union(*(table.apart for table in self._tables)))
        yield from translation.settle()
        while translation.held:
            held, resolved = translation.held.popitem()
            for table in self._tables:
                table.supply(held, encode_entry(resolved.entry))
            yield
