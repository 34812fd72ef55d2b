"""Keeping the garbage collector out of the way of requests.

A compiled table is hundreds of thousands of objects that live until the next revision and hold no cycles. A full
collection walks all of them: 100 ms and more at 10,000 hosts, in the middle of traffic, for nothing. So what the
first table left in memory is frozen: collections skip it, and it is still freed by reference counting when it goes.

Young collections come seven times less often than by default, full ones not before a million objects are new: rarely
enough to cost nothing, and each of the frequent ones stays at a few milliseconds (50,000 objects took 16 ms). What
cycles tracebacks and closed transports leave is still collected.
"""

import gc

THRESHOLDS = (5_000, 5, 40)
"""Allocations before a young collection (default 700), young ones before a middle, middle ones before a full one."""


def relax_collector() -> None:
    """Collect less often; at the start of the process."""
    gc.set_threshold(*THRESHOLDS)


def freeze_heap() -> None:
    """Collect once, then exempt everything alive from collections; before the worker becomes ready."""
    gc.collect()
    gc.freeze()
