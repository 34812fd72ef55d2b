"""A table as it can be asked: for one entry by its key, or for all of a kind.

Two sources: a list of entries (`headgate explain` on files) and a gateway's compiled chunks.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeVar

from headgate.common.table import ENTRIES, Entry, TableEntry, entry_key, kind_of
from headgate.gateway.table.compiler import TableCompiler

E = TypeVar("E", bound=TableEntry)


class TableView(Protocol):
    """What explaining needs of a table."""

    @property
    def version_label(self) -> str:
        """`epoch.revision`; empty for a table that was never published."""

    def entry(self, model: type[E], key: str) -> E | None:
        """Return an entry by its model and its key; the key of a virtual host is a `HostKey`."""

    def entries(self, model: type[E]) -> Iterator[E]:
        """Yield all entries of a model."""

    def keys(self, model: type[TableEntry]) -> Iterator[str]:
        """Yield the keys of all entries of a model in no particular order."""


class EntryView:
    """A view of entries at hand."""

    def __init__(self, entries: Iterable[TableEntry], version_label: str = "") -> None:
        self.version_label = version_label
        self._entries: dict[type[Entry], dict[str, Any]] = {row.model: {} for row in ENTRIES.values()}
        for entry in entries:
            self._entries[type(entry)][entry_key(entry)] = entry

    def entry(self, model: type[E], key: str) -> E | None:
        """Return an entry by its model and its key."""
        return self._entries[model].get(key)

    def entries(self, model: type[E]) -> Iterator[E]:
        """Yield all entries of a model, sorted by key."""
        found = self._entries[model]
        return (found[key] for key in sorted(found))

    def keys(self, model: type[TableEntry]) -> Iterator[str]:
        """Yield the keys of all entries of a model."""
        return iter(self._entries[model])


class CompilerView:
    """A view of what a gateway serves; decodes the chunks that an answer needs."""

    def __init__(self, compiler: TableCompiler) -> None:
        self._compiler = compiler

    @property
    def version_label(self) -> str:
        """Version of the current table; empty before the first."""
        table = self._compiler.table
        return "" if table is None else table.version_label

    def entry(self, model: type[E], key: str) -> E | None:
        """Return an entry by its model and its key."""
        found: E | None = self._compiler.chunk_sets[kind_of(model)].entry(key)
        return found

    def entries(self, model: type[E]) -> Iterator[E]:
        """Yield all entries of a model in no particular order."""
        return self._compiler.chunk_sets[kind_of(model)].entries()

    def keys(self, model: type[TableEntry]) -> Iterator[str]:
        """Yield the keys of all entries of a model in no particular order."""
        return (key for key, _ in self._compiler.chunk_sets[kind_of(model)].compiled())
