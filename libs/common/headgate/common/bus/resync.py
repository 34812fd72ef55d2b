"""Asking all watchers to compare the log with their clusters, and to say that it is complete.

A reader of the log cannot see whether it is an older copy; the watchers can. They answer in the log itself, with
announcements and markers. A request that is lost is repeated by the one that needs it.
"""

from collections.abc import Callable

import nats.errors
from nats.aio.msg import Msg

from headgate.common.bus.connection import Bus
from headgate.common.errors import StoreUnavailable

RESYNC_SUBJECT = "headgate.resync"
_WAITING = 16


async def ask_for_resync(bus: Bus) -> None:
    """Ask.

    Raises:
        StoreUnavailable: not now.
    """
    try:
        await bus.publish(RESYNC_SUBJECT)
    except (nats.errors.Error, OSError) as error:
        raise StoreUnavailable(f"watchers cannot be asked now: {error}") from error


async def heed_resync(bus: Bus, compare: Callable[[], None]) -> None:
    """Call `compare` whenever somebody asks, for ever."""

    async def receive(_: Msg) -> None:
        compare()

    await bus.listen(RESYNC_SUBJECT, receive, messages=_WAITING, size=_WAITING * 1024)
