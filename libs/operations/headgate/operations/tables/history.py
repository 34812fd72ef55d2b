"""The revisions of a table, newest first, within a window, and what is known of each."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from headgate.common.errors import NotFound
from headgate.common.snapshot import Manifest, Version
from headgate.common.stores import SnapshotStore
from headgate.operations.errors import InvalidRequest
from headgate.operations.moments import FORMS, parse_moment
from headgate.operations.tables.revisions import find_revision, parse_name

READ_AT_ONCE = 16

IsWanted = Callable[[Manifest], bool]


class Window(NamedTuple):
    """Which revisions are asked for. Each bound is a revision or a time, as people write them; empty: without it."""

    since: str = ""
    until: str = ""
    at: str = ""
    """A time: the revision that was the newest then. Excludes the other two."""


async def read_history(
    snapshots: SnapshotStore, table: str, window: Window, is_wanted: IsWanted, limit: int | None = None
) -> list[Manifest]:
    """Return the revisions within a window that are wanted, newest first, and no more than a limit.

    Raises:
        InvalidRequest: a bound is neither a revision nor a time; the text names it as the flag of that name.
        OperationError: there is no such revision.
        StoreUnavailable: not now.
    """
    after = await _parse_bound(snapshots, table, window.since, "--since")
    past = await _parse_bound(snapshots, table, window.until or window.at, "--at" if window.at else "--until")
    most = 1 if window.at else limit
    found: list[Manifest] = []
    newest_first = [*reversed(await snapshots.versions(table))]
    for start in range(0, len(newest_first), READ_AT_ONCE):
        group = newest_first[start : start + READ_AT_ONCE]
        for manifest in await asyncio.gather(*(_manifest(snapshots, table, version) for version in group)):
            if manifest is None:
                continue
            if (window.since and not after(manifest)) or (most is not None and len(found) == most):
                return found
            if is_wanted(manifest) and not ((window.until or window.at) and past(manifest)):
                found.append(manifest)
    return found


async def _parse_bound(snapshots: SnapshotStore, table: str, text: str, flag: str) -> IsWanted:
    """Return whether a revision came after what a flag names: after a revision, or at a time or later."""
    if not text:
        return lambda _: True
    try:
        parse_name(text)
    except InvalidRequest:
        pass
    else:
        version = (await find_revision(snapshots, table, text)).version
        return lambda manifest: manifest.version > version
    try:
        moment = parse_moment(text, datetime.now(UTC))
    except InvalidRequest:
        raise InvalidRequest(f"{flag} {text!r}: give a revision such as 57 or HEAD~5, or {FORMS}") from None
    if flag == "--since":
        return lambda manifest: manifest.created_at >= moment
    return lambda manifest: manifest.created_at > moment


async def _manifest(snapshots: SnapshotStore, table: str, version: Version) -> Manifest | None:
    try:
        return await snapshots.get_manifest(table, version)
    except NotFound:
        return None  # collected between the two questions


def as_document(manifest: Manifest) -> dict[str, Any]:
    """Return all that is known of a revision but its chunks, as JSON data."""
    left_out: dict[str, Any] = {"chunks": True, "traceparent": True, "pin": {"live"}, "rollout": {"live", "next"}}
    document = manifest.model_dump(mode="json", exclude=left_out)
    named = {"revision": str(manifest.version)} | document  # as it is typed, besides the two numbers
    if manifest.pin:
        named["pin"]["revision"] = str(manifest.pin.version)
    return named


def changed_hosts(manifest: Manifest) -> set[str]:
    """Return the hosts that a revision changed, or would have without a pin or a rollout."""
    held = manifest.pin or manifest.rollout
    parts = [manifest.changed, held.waiting if held else {}]
    return {name for changed in parts if "hosts" in changed for name in changed["hosts"].names}
