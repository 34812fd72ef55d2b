"""The watcher's webhook in a process of its own:
`python -m bench.servers.webhook` with flags and settings of the watcher.

Without the rest of the watcher, which would look for an API server.
"""

import asyncio
import sys

from headgate.common.bus.connection import Bus
from headgate.common.service.settings import load_settings
from headgate.watcher.admission.service import make_admission_server
from headgate.watcher.objects.secrets import throwaway_recipients
from headgate.watcher.settings import WatcherSettings


async def _serve(settings: WatcherSettings) -> None:
    bus = await Bus.connect(settings.nats, name="bench webhook")
    server = make_admission_server(settings, bus, throwaway_recipients())
    assert server is not None
    await server.run()


if __name__ == "__main__":
    asyncio.run(
        _serve(load_settings(WatcherSettings, sys.argv[1:], program="bench webhook", summary="Answer reviews."))
    )
