"""Keys of what the tables' bucket holds."""

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
