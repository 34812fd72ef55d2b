"""The budget for bodies of requests and answers that one worker holds in memory."""

import logging
from typing import Final

from headgate.gateway.model.memory_budget import MemoryBudget, Shortage

BUFFERS_FULL: Final = "the worker holds as many bytes of bodies as it may"
RETRY_AFTER: Final = b"Retry-After: 1\r\n"
_SHORTAGE: Final = Shortage(
    logging.getLogger(__name__),
    "a body found no room in memory: raise max_buffered_bytes, or lower the limits of bodies on routes",
    owner_field="route",
    limit_field="max_buffered_bytes",
)


def body_budget(limit: int) -> MemoryBudget:
    """Make a budget of so many bytes; owners are names of routes."""
    return MemoryBudget(limit, _SHORTAGE)
