"""What a change of a table did: what is served differently, and whether the gateways have applied it."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from headgate.common.errors import Conflict, DecodeError, NotFound
from headgate.common.heartbeats import Heartbeat
from headgate.common.snapshot import Manifest, Version
from headgate.common.stores.opening import Stores
from headgate.common.table_diff import TableDiff
from headgate.operations.errors import OperationError
from headgate.operations.tables.differences import compare_images
from headgate.operations.tables.revisions import Image

APPLIED_S = 10.0
"""Gateways apply a revision within milliseconds; one that has not after so long is named."""
_POLL_S = 0.05


class Done(NamedTuple):
    """The result of a change, or of a dry run."""

    version: Version | None
    """The new revision; None for a dry run."""
    difference: TableDiff
    """Between what was served before and after."""
    before: str
    after: str
    notes: Sequence[str] = ()
    behind: Sequence[str] = ()
    """Gateway workers that have not applied it in time."""
    gateways: int = 0

    def as_document(self, table: str) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "table": table,
            "revision": self.version and str(self.version),
            "notes": [*self.notes],
            "gateways": self.gateways,
            "behind": [*self.behind],
            "counts": self.difference.counts,
            "changes": [change.model_dump(mode="json", exclude_defaults=True) for change in self.difference.changes],
        }


@contextmanager
def commit_errors(what_not: str) -> Iterator[None]:
    """Turn what a commit raises into a line that says what was not done, and why.

    Raises:
        OperationError: it was not done.
    """
    try:
        yield
    except (Conflict, NotFound, DecodeError) as error:
        raise OperationError(f"{what_not}: {error}") from error


async def greatest_served(stores: Stores, table: str) -> Version | None:
    """Return the greatest version that a gateway serves; has to be asked before anything of the store.

    A pointer that is read later is older than one of them only if the store went back.
    """
    served = [beat.version for beat in await stores.heartbeats.live() if beat.table == table and beat.version]
    return max(served, default=None)


async def finish(stores: Stores, served: Image, manifest: Manifest, after: str, notes: Sequence[str]) -> Done:
    """Compare, and wait until the gateways have applied it."""
    now = Image(after, manifest.chunks, manifest)
    difference = await compare_images(stores.snapshots, served, now)
    beats = await _wait_for_gateways(stores, manifest)
    behind = [f"{beat.replica}/{beat.worker}" for beat in beats if not _has_applied(beat, manifest)]
    return Done(manifest.version, difference, served.label, after, notes, behind, len(beats))


async def _wait_for_gateways(stores: Stores, manifest: Manifest) -> list[Heartbeat]:
    end = asyncio.get_running_loop().time() + APPLIED_S
    while True:
        beats = [beat for beat in await stores.heartbeats.live() if beat.table == manifest.table]
        if all(_has_applied(beat, manifest) for beat in beats) or asyncio.get_running_loop().time() > end:
            return beats
        await asyncio.sleep(_POLL_S)


def _has_applied(beat: Heartbeat, manifest: Manifest) -> bool:
    return beat.version is not None and beat.version >= manifest.version
