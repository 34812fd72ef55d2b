"""What keeps the streams in order: the translator alone has the right to change them and to remove from the log."""

import asyncio
import logging
from collections.abc import Callable, Collection

from headgate.common.errors import StoreError
from headgate.common.stores.nats import NatsStores

_log = logging.getLogger(__name__)

LOOK_S = 60.0
"""Between two looks at whether the streams are there and as the settings say: another number of replicas can only be
had once enough servers run."""
PURGE_S = 3600.0


async def keep_in_order(stores: NatsStores, clusters: Callable[[], Collection[str]]) -> None:
    """Look after the streams for ever.

    Args:
        stores: opened.
        clusters: names of those whose deletions are forgotten after a week.
    """
    looks = 0
    while True:
        await asyncio.sleep(LOOK_S)
        looks += 1
        try:
            await stores.ensure()
            if looks % int(PURGE_S // LOOK_S) == 0:
                for cluster in clusters():
                    await stores.log_writer.purge_tombstones(cluster)
        except StoreError as error:
            _log.debug("the streams are not put in order now", extra={"reason": str(error)})
