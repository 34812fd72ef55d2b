"""What keeps the streams in order: the translator alone has the right to change them and to remove from the log."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection

from headgate.common.errors import StoreError
from headgate.common.stores.nats import NatsStores

_log = logging.getLogger(__name__)

LOOK_S = 60.0
"""Between two looks at whether the streams are there and as the settings say: another number of replicas can only be
had once enough servers run."""
RETRY_S = 0.5
"""The same while they cannot be looked at: all others wait for streams that were lost."""
PURGE_S = 3600.0


async def keep_in_order(stores: NatsStores, clusters: Callable[[], Collection[str]]) -> None:
    """Look after the streams for ever: at once, and at once after every reconnection.

    Args:
        stores: opened.
        clusters: names of those whose deletions are forgotten after a week.
    """
    reconnected = asyncio.Event()
    reconnected.set()  # streams may have been lost before it was our turn, and watchers wait for them
    forget = stores.bus.on_reconnect(reconnected.set)
    pause_s, purge_at = LOOK_S, time.monotonic() + PURGE_S
    try:
        while True:
            await _wait(reconnected, pause_s)
            try:
                await stores.ensure()
                if time.monotonic() >= purge_at:
                    purge_at = time.monotonic() + PURGE_S
                    for cluster in clusters():
                        await stores.log_writer.purge_tombstones(cluster)
                pause_s = LOOK_S
            except StoreError as error:
                _log.debug("the streams are not put in order now", extra={"reason": str(error)})
                pause_s = RETRY_S
    finally:
        forget()


async def _wait(event: asyncio.Event, timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return
    event.clear()
