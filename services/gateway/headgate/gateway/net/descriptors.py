"""File descriptors: as many as the process may have, a share of them for clients, and what is said when none is left.

Each connection takes one. Clients that open as many as there are would leave none for the connections to upstreams
that established clients need, so clients get half, and listeners stop accepting before the last ones are taken: what
waits then waits in the kernel. A limit for clients alone does not do it, as TLS handshakes, streams and plugins take
some too.
"""

import errno
import logging
import os
import resource
import time
from typing import Final

from prometheus_client import Counter

_log = logging.getLogger(__name__)

RESERVE: Final = 64
"""For listeners, the bus, the admin site, health checks, logs and files."""
_MOST: Final = 1 << 20
"""More than this the kernel refuses by default (`fs.nr_open`), and no worker has connections for."""
_REPEAT_S: Final = 60.0
_NONE_LEFT: Final = (errno.EMFILE, errno.ENFILE)

_exhausted = Counter(
    "headgate_descriptors_exhausted",
    "Times that there were no file descriptors left to accept or to connect",
    ["operation"],
)
_logged_at: dict[str, float] = {}


def raise_limit() -> int:
    """Let the process have as many descriptors as it may give itself; return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as error:
            _log.warning("the limit of file descriptors stays as it is", extra={"limit": soft, "error": str(error)})
    return limit()


def limit() -> int:
    """Return how many descriptors the process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else min(soft, _MOST)


def client_share(descriptors: int) -> int:
    """Return how many connections clients may have of so many descriptors: each may need one to an upstream."""
    return max(1, (descriptors - RESERVE) // 2)


def note_failure(error: OSError, operation: str) -> None:
    """Count an `accept` or a `connect` that failed if it did so for want of a descriptor, and log it once a minute."""
    if error.errno in _NONE_LEFT:
        note_exhausted(operation)


def note_exhausted(operation: str) -> None:
    """Count that there is no descriptor to spare, and log it once a minute."""
    _exhausted.labels(operation).inc()
    now = time.monotonic()
    if now - _logged_at.get(operation, -_REPEAT_S) < _REPEAT_S:
        return
    _logged_at[operation] = now
    _log.error(
        "file descriptors are exhausted: raise the process's limit (ulimit -n), or lower max_connections",
        extra={"operation": operation, "limit": limit()},
    )


def is_short() -> bool:
    """Tell whether so few descriptors are left that clients should wait for the next."""
    try:
        lowest = os.open("/", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return error.errno in _NONE_LEFT
    os.close(lowest)
    descriptors = limit()
    # The kernel gives the lowest that is free, so at least that many are taken.
    return lowest >= descriptors - min(RESERVE, descriptors // 8)
