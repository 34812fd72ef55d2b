"""Work in a forked child: it has all that its parent has, by copy-on-write, and the parent keeps nothing of the work.

The child computes, writes its answer to a pipe and ends at once. It has no event loop, no connections and no threads;
what another thread held at that moment stays held in the child, so work that needs it does not end, and the bound of
time ends the child.
"""

import asyncio
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from math import ceil
from typing import Final, NamedTuple, NoReturn

from headgate.translator.planning.errors import ChildFailed

Work = Callable[[], bytes]

_NICE: Final = 10
_PIECE: Final = 64 * 1024
_REAP_S: Final = 0.002
_LOOK_S: Final = 0.02
_NEEDS_MEMORY: Final = 3
"""Exit code of a child that needs more memory than it may."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


class Bounds(NamedTuple):
    """What a child may use."""

    seconds: float
    """From its beginning to its end, and of the processor."""
    memory_bytes: int
    """Of pages that are new or written, and so copied; and of address space, beyond what the parent has."""
    answer_bytes: int


async def run_apart(work: Work, bounds: Bounds) -> bytes:
    """Run work in a child and return what it returns.

    The loop stands still while the process is copied: some milliseconds for some hundred megabytes.

    Raises:
        ChildFailed: it raised, or needed more than it may.
        OSError: there is no process for it.
    """
    reading, writing = os.pipe()
    try:
        child = _fork(work, writing, bounds)
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    try:
        async with asyncio.timeout(bounds.seconds):
            answer = await _read_all(reading, bounds.answer_bytes)
            status = await _reap(child)
    except BaseException as error:
        os.kill(child, signal.SIGKILL)
        await asyncio.shield(_reap(child))
        if isinstance(error, TimeoutError):
            raise ChildFailed(f"it took more than {bounds.seconds:g} s") from error
        raise
    finally:
        os.close(reading)
    code = os.waitstatus_to_exitcode(status)
    if code == _NEEDS_MEMORY:
        raise ChildFailed(f"it took more than {bounds.memory_bytes // 1024**2:,} MiB")
    if code:
        raise ChildFailed(f"it ended with {code}")
    return answer


def _fork(work: Work, writing: int, bounds: Bounds) -> int:
    # A signal between the fork and the child's own handlers would wake the parent's loop through its descriptor.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        child = os.fork()
        if child == 0:
            _be_child(work, writing, bounds)
        return child
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _be_child(work: Work, writing: int, bounds: Bounds) -> NoReturn:
    code = 1
    try:
        gc.disable()  # it would write to every object, and have every page copied
        logging.disable(logging.CRITICAL)
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        _close_all_but(writing)
        os.nice(_NICE)
        _bound(bounds)
        answer = memoryview(work())
        while answer:
            answer = answer[os.write(writing, answer) :]
        code = 0
    except MemoryError:
        code = _NEEDS_MEMORY
    finally:
        os._exit(code)


def _close_all_but(kept: int) -> None:
    """Close the parent's connections, which would outlive it in the child; standard streams stay."""
    with suppress(OSError):  # not where there is no /proc
        for number in map(int, os.listdir("/proc/self/fd")):
            if number > 2 and number != kept:
                with suppress(OSError):
                    os.close(number)


def _bound(bounds: Bounds) -> None:
    seconds = ceil(bounds.seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, bounds.seconds + 1)  # for a child that has lost its parent
    _watch_pages(bounds.memory_bytes)
    if sys.platform != "linux":
        return
    with open("/proc/self/statm", encoding="ascii") as pages:
        size = int(pages.read().split()[0]) * resource.getpagesize() + bounds.memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    # Where memory runs out all the same, the child goes before the translator.
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("1000")


def _watch_pages(memory_bytes: int) -> None:
    """End this process when it has written more: no limit of the kernel counts pages that are copied for it."""
    allowed = resource.getrusage(resource.RUSAGE_SELF).ru_minflt + memory_bytes // resource.getpagesize()

    def look(*_: object) -> None:
        if resource.getrusage(resource.RUSAGE_SELF).ru_minflt > allowed:
            os._exit(_NEEDS_MEMORY)

    signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, _LOOK_S, _LOOK_S)


async def _read_all(reading: int, limit: int) -> bytes:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    found = bytearray()

    def read() -> None:
        piece = os.read(reading, _PIECE)
        found.extend(piece)
        if (not piece or len(found) > limit) and not ended.done():
            ended.set_result(None)
            loop.remove_reader(reading)

    loop.add_reader(reading, read)
    try:
        await ended
    finally:
        loop.remove_reader(reading)
    if len(found) > limit:
        raise ChildFailed(f"its answer has more than {limit:,} bytes")
    return bytes(found)


async def _reap(child: int) -> int:
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)  # noqa: ASYNC222 - it does not wait
        if ended:
            return status
        await asyncio.sleep(_REAP_S)  # what ends gives its memory back first, and nothing waits for that
