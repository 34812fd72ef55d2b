"""Keeping the collector of cycles out of the way of what must not wait.

What our processes hold is millions of objects that live long and have no cycles: a translated world, a compiled table,
manifests. A full collection walks all of them and finds nothing: 100 ms at 10,000 hosts, more than a second at 100,000,
and everything else stands still. So what a large step left in memory is frozen: collections pass over it, and
reference counting frees it all the same when it goes.

While much comes in, no collections are made, or young ones only where that takes long: older generations would be
walked again and again as they grow.
Afterwards young collections are small, and full ones come after a million new objects: they find what cycles tracebacks
and closed transports leave.
"""

import asyncio
import gc
import time
from collections.abc import Callable

from headgate.common.service.uncollected import uncollected

GROWING = (50_000, 1_000, 1_000)
"""Allocations before a young collection (default 700), young ones before a middle, middle ones before a full one."""
STEADY = (5_000, 5, 40)
"""A young collection takes about a millisecond, a middle one some. With 50,000 they took 8, with 20 of these 200."""
_LOOK_S = 0.2
_FREEZE_S = 1.0
"""Between two freezes: each is preceded by a collection of what came since, which is little."""
GROWS_S = 600.0
"""If the next moment does not come, what is made since is no growth but the usual."""


def expect_growth() -> None:
    """Make young collections only, and few: before the world, or a table, is read for the first time."""
    gc.set_threshold(*GROWING)


def freeze_heap(*, collects: bool = True) -> None:
    """Exempt everything that is alive from collections, and go on with small ones.

    Args:
        collects: whether cycles are looked for first, which stops a large process for seconds; else those that are
            there stay for ever.
    """
    if collects:
        gc.collect()
    gc.freeze()
    gc.set_threshold(*STEADY)


async def freeze_after(first: Callable[[], bool], *later: Callable[[], bool]) -> None:
    """Freeze the heap without looking for cycles, once each of these is true for the first time, one after the other.

    Before the first of them no collections are made: what is read then is for long. Between the others, too, what grows
    is frozen: the statuses of all objects wait for a while. Never returns, as what runs beside it does not.
    """
    with uncollected():
        await _comes(first, time.monotonic() + GROWS_S)
    await _comes(first)
    freeze_heap(collects=False)
    for moment in later:
        grows_until, next_at = time.monotonic() + GROWS_S, 0.0
        while not moment():
            await asyncio.sleep(_LOOK_S)
            if next_at <= time.monotonic() < grows_until:
                gc.collect(1)
                gc.freeze()
                next_at = time.monotonic() + _FREEZE_S
        freeze_heap(collects=False)
    await asyncio.Event().wait()


async def _comes(moment: Callable[[], bool], until: float = float("inf")) -> None:
    while not moment():
        if time.monotonic() >= until:
            return
        await asyncio.sleep(_LOOK_S)
