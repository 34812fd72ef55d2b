"""The memory in which the workers of a gateway show each other what they count.

Behind a page with a secret each worker has a region, which it alone writes and all read: a hash table of cells, each
with a key of 64 bits and four numbers. So there is no lock that a killed worker could leave behind, and a region is
emptied by the parent when its worker has ended. Numbers are aligned and have 64 bits: one is never read half.

Rejected: cells that all write, under a lock of the kernel for a range of bytes (`fcntl`), which ends with its owner. A
worker that is stopped inside holds up all. Decision 0071 has the figures.
"""

import contextlib
import mmap
import os
import secrets
import struct
import tempfile
from types import TracebackType
from typing import Final, Self

HEAD_BYTES: Final = mmap.PAGESIZE
SECRET_BYTES: Final = 16
BUCKETS: Final = 1 << 14
WAYS: Final = 8
"""Cells of one bucket, to which a key belongs."""
KEYS: Final = struct.Struct(f"={WAYS}Q")
KEY: Final = struct.Struct("=Q")
NUMBERS: Final = struct.Struct("=4d")
UNTIL: Final = struct.Struct("=d")
UNTIL_AT: Final = 24
"""Where among the numbers the last one is."""
VERSION: Final = struct.Struct("=Q")
VERSION_AT: Final = KEYS.size + WAYS * NUMBERS.size
"""Where in a bucket it says how often a cell of it became that of another key."""
BUCKET_BYTES: Final = VERSION_AT + VERSION.size
REGION_BYTES: Final = -(-BUCKETS * BUCKET_BYTES // mmap.PAGESIZE) * mmap.PAGESIZE
"""5 MB, of which only pages with cells take memory."""


def size_of(workers: int) -> int:
    """Return the bytes of the memory of so many workers."""
    return HEAD_BYTES + workers * REGION_BYTES


def region_at(index: int) -> int:
    """Return where a worker's region begins."""
    return HEAD_BYTES + index * REGION_BYTES


class SharedCounts:
    """The memory, as the parent has it: made before the first worker, and gone with the last process that has it open.

    Args:
        workers: how many.
    """

    def __init__(self, workers: int) -> None:
        self.descriptor = _open_unnamed()
        """For workers to inherit."""
        os.ftruncate(self.descriptor, size_of(workers))
        self._memory = mmap.mmap(self.descriptor, size_of(workers))
        self._memory[:SECRET_BYTES] = secrets.token_bytes(SECRET_BYTES)

    def forget(self, index: int) -> None:
        """Empty the region of a worker that has ended."""
        begin = region_at(index)
        with contextlib.suppress(AttributeError, OSError):
            # Gives the pages back; only Linux can.
            self._memory.madvise(mmap.MADV_REMOVE, begin, REGION_BYTES)
            return
        self._memory[begin : begin + REGION_BYTES] = bytes(REGION_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._memory.close()
        os.close(self.descriptor)


def _open_unnamed() -> int:
    """Open a file without a name, in memory where the system has that."""
    # Other systems than Linux have no such files, and a sandbox may forbid them.
    with contextlib.suppress(AttributeError, OSError):
        return os.memfd_create("headgate-counts")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
