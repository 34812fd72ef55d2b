"""Manifests of tables that are rolled out."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from headgate.common.snapshot import ChangedEntries, Chunk, ChunkName, Manifest, Rollout, RolloutPhase, Version
from headgate.common.table_image import TableImage

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def names(chunks: Sequence[Chunk]) -> tuple[ChunkName, ...]:
    return tuple(ChunkName(kind=chunk.kind, prefix=chunk.prefix, digest=chunk.digest) for chunk in chunks)


def rolled_out(
    served: TableImage, following: TableImage, *replicas: str, revision: int = 2, **changes: Any
) -> tuple[Manifest, list[Chunk]]:
    """Revision 1.`revision`, in which replicas serve the second table and all others the first, and its chunks.

    `changes`: fields of the rollout, and `hosts` for those that it changes.
    """
    old, new = served.chunks(), following.chunks()
    hosts = changes.pop("hosts", ())
    values: dict[str, Any] = {
        "base": Version(1, 1),
        "target": Version(1, 2),
        "begun": Version(1, revision),
        "shares": (50.0,),
        "since": NOW,
        "phase": RolloutPhase.STEPPING,
        "changed": {"hosts": ChangedEntries(count=len(hosts), names=tuple(hosts))} if hosts else {},
    }
    rollout = Rollout(replicas=replicas, next=names(new), live=names(new), **values | changes)
    manifest = Manifest(
        table="default", version=Version(1, revision), created_at=NOW, chunks=names(old), rollout=rollout
    )
    return manifest, [*{chunk.digest: chunk for chunk in (*old, *new)}.values()]
