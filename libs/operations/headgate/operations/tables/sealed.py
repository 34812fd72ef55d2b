"""To which keys a table's private keys and credentials are sealed."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pydantic import BaseModel

from headgate.common.sealing import SealedValue
from headgate.common.snapshot import ChunkName
from headgate.common.stores import SnapshotStore
from headgate.common.stores.reading import read_entries
from headgate.common.table import TableEntry, entry_key
from headgate.operations.tables.revisions import current_manifest


class Sealed(NamedTuple):
    """One value of the table."""

    entry: str
    recipients: frozenset[str]
    """`recipient_id` of each key that opens it."""


async def read_sealed(snapshots: SnapshotStore, table: str) -> tuple[str, list[Sealed]]:
    """Return the version of a table and all of its sealed values, with those that wait behind a pin or a rollout."""
    _, manifest = await current_manifest(snapshots, table)
    names: set[ChunkName] = {*manifest.chunks, *manifest.live, *(manifest.rollout.next if manifest.rollout else ())}
    return str(manifest.version), sealed_values(await read_entries(snapshots, names))


def sealed_values(entries: Iterable[TableEntry]) -> list[Sealed]:
    """Return all sealed values of a table's entries."""
    return [
        Sealed(f"{type(entry).__name__} {entry_key(entry)}", frozenset(value.boxes))
        for entry in entries
        for value in _within(entry)
    ]


def _within(value: object) -> Iterator[SealedValue]:
    match value:
        case SealedValue():
            yield value
        case BaseModel():
            for name in type(value).model_fields:
                yield from _within(getattr(value, name))
        case Mapping():
            for each in value.values():
                yield from _within(each)
        case tuple() | list():
            for each in value:
                yield from _within(each)
