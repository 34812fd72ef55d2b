"""Following a table's pointer in any store: watch for latency, read for correctness.

A watch says quickly what is new, and may be blind without knowing. So the pointer itself is read when following begins,
after everything that may have hidden a change, and every few seconds.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

from headgate.common.errors import Conflict, DecodeError, StoreError
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import Manifest, Pointer, Version, digest_of

_log = logging.getLogger(__name__)

POLL_S = 5.0
_VERSION = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})")

Tell = Callable[[Pointer | None], None]
"""Takes a pointer that was announced; None where announcements may have been missed."""
Read = Callable[[str], Awaitable[Pointer | None]]
Watch = Callable[[str, Tell], Awaitable[None]]
"""Announces for ever."""
OnDisturbance = Callable[[Callable[[], None]], Callable[[], None]]
"""Registers a callback for when changes may have been missed; returns what undoes this."""


async def follow_pointer(table: str, read: Read, watch: Watch, on_disturbance: OnDisturbance) -> AsyncIterator[Pointer]:
    """Yield the pointer now and whenever its version or manifest changes, for ever."""
    news: asyncio.Queue[Pointer | None] = asyncio.Queue()
    undo = on_disturbance(lambda: news.put_nowait(None))
    watching = asyncio.ensure_future(watch(table, news.put_nowait))
    known: Pointer | None = None
    news.put_nowait(None)
    try:
        while True:
            pointer = await _next_pointer(table, read, news, known)
            if pointer is not None and not _is_same(pointer, known):
                known = pointer
                yield pointer
    finally:
        undo()
        await cancel(watching)


async def _next_pointer(
    table: str, read: Read, news: "asyncio.Queue[Pointer | None]", known: Pointer | None
) -> Pointer | None:
    announced: list[Pointer | None] = []
    try:
        async with asyncio.timeout(POLL_S):
            announced.append(await news.get())
    except TimeoutError:
        pass
    while not news.empty():
        announced.append(news.get_nowait())
    # All but the last are history; a None among them, or silence, means that something may have been missed. One that
    # is older than what is known came late, or the store is now an older copy: only the pointer itself tells which.
    latest = announced[-1] if announced and None not in announced else None
    if latest is not None and (known is None or latest.version > known.version or _is_same(latest, known)):
        return latest
    try:
        return await read(table)
    except (StoreError, DecodeError) as error:
        _log.debug("the pointer cannot be read now", extra={"table": table, "reason": str(error)})
        return None


def pointer_to(manifest: Manifest, encoded: bytes) -> Pointer:
    """Return the pointer that makes a manifest the current one."""
    return Pointer(
        table=manifest.table,
        version=manifest.version,
        manifest_digest=digest_of(encoded),
        committed_at=manifest.created_at,
    )


def decode_pointer(data: bytes) -> Pointer:
    """Read a stored pointer.

    Raises:
        DecodeError: it is none.
    """
    try:
        return Pointer.model_validate_json(data)
    except ValueError as error:
        raise DecodeError(f"a pointer cannot be read: {error}") from error


def decode_version(text: str) -> Version:
    """Read a version as keys have it: epoch, a dot, revision.

    Raises:
        DecodeError: it is none.
    """
    found = _VERSION.fullmatch(text)
    if found is None:
        raise DecodeError(f"{text[:60]!r} is no version of a table")
    return Version(int(found[1]), int(found[2]))


def decode_versions(texts: Iterable[str]) -> list[Version]:
    """Return versions as keys have them, sorted; what is none is told in the log."""
    found = []
    for text in texts:
        try:
            found.append(decode_version(text))
        except DecodeError as error:
            _log.error("a manifest's key cannot be read", extra={"reason": str(error)})
    return sorted(found)


def _is_same(pointer: Pointer, known: Pointer | None) -> bool:
    return known is not None and (pointer.version, pointer.manifest_digest) == (known.version, known.manifest_digest)


def check_expected(table: str, expected: Pointer | None, current: Pointer | None) -> None:
    """Raise Conflict where a table's pointer is not the one that a writer expects."""
    if current != expected:
        raise Conflict(f"table {table}: expected {_name(expected)}, found {_name(current)}")


def _name(pointer: Pointer | None) -> str:
    return f"revision {pointer.version}" if pointer else "no revision"
