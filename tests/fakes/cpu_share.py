"""Less CPU for processes than they want, as on a node that is full.

    async with cpu_share(0.1, pid_of_watcher) as means: ...

A control group does it where one can be made: the kernel then stops a process when its share of each tenth of a second
is used up, as the limit of a container does. Elsewhere the same share is cut out with SIGSTOP and SIGCONT.
"""

import asyncio
import contextlib
import os
import signal
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

PERIOD_US = 100_000
_ROOT = Path("/sys/fs/cgroup")


@asynccontextmanager
async def cpu_share(share: float, *pids: int) -> AsyncIterator[str]:
    """Give these processes together this part of one core while the block lasts; yields by what means."""
    with contextlib.ExitStack() as stack:
        try:
            yield stack.enter_context(_group(share, pids))
            return
        except _NoGroups:
            pass
        task = asyncio.create_task(_cut(share, pids))
        try:
            yield "SIGSTOP"
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


class _NoGroups(Exception):
    """No control group can be made here."""


@contextmanager
def _group(share: float, pids: Sequence[int]) -> Iterator[str]:
    is_v1 = (_ROOT / "cpu" / "cpu.cfs_quota_us").exists()
    parent = _ROOT / "cpu" if is_v1 else _ROOT
    folder = parent / f"headgate-test-{uuid.uuid4().hex[:12]}"
    quota_us = round(share * PERIOD_US)
    try:
        folder.mkdir()
    except OSError as error:
        raise _NoGroups from error
    try:
        try:
            if is_v1:
                (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (folder / "cpu.cfs_quota_us").write_text(str(quota_us))
            else:
                (folder / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
            for pid in pids:
                (folder / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            raise _NoGroups from error
        yield "a control group"
    finally:
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (parent / "cgroup.procs").write_text(pid)
        with contextlib.suppress(OSError):
            folder.rmdir()


async def _cut(share: float, pids: Sequence[int]) -> None:
    period_s = PERIOD_US / 1_000_000
    try:
        while True:
            _signal(pids, signal.SIGCONT)
            await asyncio.sleep(share * period_s)
            _signal(pids, signal.SIGSTOP)
            await asyncio.sleep((1 - share) * period_s)
    finally:
        _signal(pids, signal.SIGCONT)


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
