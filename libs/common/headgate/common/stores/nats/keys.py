"""Keys of what the tables' bucket holds."""

from collections.abc import Iterable

from headgate.common.deltas import escape_token
from headgate.common.snapshot import Version

TABLES_BUCKET = "HEADGATE_TABLES"
PREFIX = f"$KV.{TABLES_BUCKET}"


def pointer_key(table: str) -> str:
    """Subject of a table's pointer."""
    return f"{PREFIX}.pointer.{escape_token(table)}"


def manifest_key(table: str, version: Version) -> str:
    """Subject of a revision's manifest."""
    return f"{PREFIX}.manifest.{escape_token(table)}.{version.epoch}.{version.revision}"


def chunk_key(digest: str) -> str:
    """Subject of a chunk."""
    return f"{PREFIX}.chunk.{digest}"


def newest_manifests(keys: Iterable[str]) -> frozenset[str]:
    """Return the keys of each table's newest manifests, which alone a writer may leave that lost a race."""
    newest: dict[str, tuple[tuple[int, ...], str]] = {}
    for key in keys:
        table, *version = key.rsplit(".", 2)
        if all(map(str.isdecimal, version)):
            newest[table] = max(newest.get(table, ((), "")), (tuple(map(int, version)), key))
    return frozenset(key for _, key in newest.values())
