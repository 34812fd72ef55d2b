"""How people name revisions, and what a name means."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from headgate.common.errors import NotFound
from headgate.common.snapshot import ChunkName, Manifest, Pointer, Version
from headgate.common.stores import SnapshotStore
from headgate.operations.errors import InvalidRequest, OperationError

NAMES = "57, 1767225600.57, HEAD, HEAD~2, live, next or pinned"
_TABLES = ("live", "next", "pinned")
"""Names of what is no revision."""
_NAME = re.compile(
    r"(?:(?P<epoch>\d{1,15})\.)?(?P<revision>\d{1,15})|(?P<word>head|live|next|pinned)", re.IGNORECASE | re.ASCII
)
_BACK = re.compile(r"(?P<name>.*?)(?P<back>~\d{0,6})?", re.DOTALL | re.ASCII)


class RevisionName(NamedTuple):
    """A name as it was typed."""

    text: str
    epoch: int | None = None
    revision: int | None = None
    word: str = ""
    """`head`, `live`, `next`, `pinned`; empty for a number."""
    back: int = 0
    """So many kept revisions before that."""


class Image(NamedTuple):
    """The table that a name means, of a revision or beside one."""

    label: str
    chunks: tuple[ChunkName, ...]
    manifest: Manifest


def parse_name(text: str) -> RevisionName:
    """Read a name.

    Raises:
        InvalidRequest: it is no name of a revision.
    """
    parts = _BACK.fullmatch(text)
    assert parts is not None  # it takes any text
    found = _NAME.fullmatch(parts["name"])
    word = (found["word"] or "").lower() if found else ""
    if found is None or (parts["back"] and word in _TABLES):
        raise InvalidRequest(f"{text!r} names no revision: give {NAMES}; `headgate history` lists the revisions")
    epoch, revision, back = found["epoch"], found["revision"], parts["back"]
    return RevisionName(
        text,
        int(epoch) if epoch else None,
        int(revision) if revision else None,
        word,
        int(back[1:] or 1) if back else 0,
    )


def find_version(name: RevisionName, kept: Sequence[Version], current: Version) -> Version:
    """Return the kept version that a name means.

    Args:
        name: of a revision, not of a table beside one.
        kept: versions, oldest first.
        current: of the pointer.

    Raises:
        OperationError: no such revision exists, or it is not kept any more.
    """
    epoch = current.epoch if name.epoch is None else name.epoch
    wanted = current if name.revision is None else Version(epoch, name.revision)
    if wanted not in kept and wanted != current:
        raise OperationError(_missing(name, wanted, kept, current))
    older = [version for version in kept if version < wanted]
    if name.back > len(older):
        raise OperationError(f"there are {len(older)} revisions before {wanted}, not {name.back}; {_range(kept)}")
    return older[-name.back] if name.back else wanted


def _missing(name: RevisionName, wanted: Version, kept: Sequence[Version], current: Version) -> str:
    if wanted > current:
        return f"there is no revision {name.text} yet; the newest is {current}"
    others = [version for version in kept if version.revision == wanted.revision]
    if name.epoch is None and others:
        return f"revision {name.text} of this epoch is not kept; do you mean {' or '.join(map(str, others))}?"
    return f"revision {name.text} is not kept; {_range(kept)}"


def _range(kept: Sequence[Version]) -> str:
    return f"kept are {len(kept)}, {kept[0]} to {kept[-1]}: `headgate history` lists them" if kept else "none is kept"


async def current_manifest(snapshots: SnapshotStore, table: str) -> tuple[Pointer, Manifest]:
    """Return what a table's pointer points to.

    Raises:
        OperationError: the table was never published.
    """
    pointer = await snapshots.read_pointer(table)
    if pointer is None:
        raise OperationError(
            f"table {table!r} was never published: is --table right? `headgate status` says what is waited for"
        )
    try:
        return pointer, await snapshots.manifest_of(pointer)
    except NotFound as error:
        raise OperationError(
            f"table {table!r}: revision {pointer.version} was collected meanwhile; ask again"
        ) from error


async def find_revision(snapshots: SnapshotStore, table: str, text: str) -> Manifest:
    """Return the manifest of the revision that a name means.

    Raises:
        OperationError: there is no such revision, or the table was never published.
        InvalidRequest: the text names no revision.
    """
    name = parse_name(text)
    if name.word in _TABLES:
        raise InvalidRequest(
            f"{text!r} is no revision; `headgate unpin` serves the live one again, `headgate rollout promote` the next"
        )
    pointer, manifest = await current_manifest(snapshots, table)
    version = find_version(name, await snapshots.versions(table), pointer.version)
    if version == pointer.version:
        return manifest
    try:
        return await snapshots.get_manifest(table, version)
    except NotFound as error:
        raise OperationError(
            f"revision {version} was collected meanwhile; `headgate history` lists what is kept"
        ) from error


async def find_image(snapshots: SnapshotStore, table: str, text: str) -> Image:
    """Return the table that a name means; raises what `find_revision` does."""
    name = parse_name(text)
    if name.word not in _TABLES:
        manifest = await find_revision(snapshots, table, text)
        return Image(str(manifest.version), manifest.chunks, manifest)
    _, manifest = await current_manifest(snapshots, table)
    if name.word == "live":
        return Image("live", manifest.live, manifest)
    if name.word == "next":
        if manifest.rollout is None:
            raise OperationError(f"nothing of table {table!r} is rolled out: all replicas serve one table")
        return Image(f"next, of {manifest.rollout.target}", manifest.rollout.next, manifest)
    if manifest.pin is None:
        raise OperationError(f"table {table!r} is not pinned; `headgate rollback REVISION` pins it")
    return Image(f"pinned to {manifest.pin.version}", manifest.chunks, manifest)
