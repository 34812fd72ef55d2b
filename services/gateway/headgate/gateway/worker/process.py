"""A worker as a process: how it begins, and that it ends with its parent."""

import asyncio
import logging
import signal
import sys

from headgate.common.service import memory
from headgate.common.service.service import ServiceContext
from headgate.common.service.tasks import run_together
from headgate.gateway.net import descriptors
from headgate.gateway.role import WorkerRole
from headgate.gateway.settings import GatewaySettings
from headgate.gateway.worker.store_link import choose_stores
from headgate.gateway.worker.worker import Worker

_log = logging.getLogger(__name__)


async def run_worker(context: ServiceContext, settings: GatewaySettings, role: WorkerRole) -> None:
    """Run one worker until it is told to stop."""
    memory.expect_growth()
    descriptors.raise_limit()
    name = f"gateway {settings.instance}/{role.index}"
    work = Worker(settings, role).run(context, choose_stores(settings, name))
    if role.is_alone:
        await work
    else:
        # Ctrl-C in a terminal reaches the whole process group; the parent passes it on as SIGTERM.
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        await run_together(work, stop_with_parent(context.stopping))


async def stop_with_parent(stopping: asyncio.Event) -> None:
    """Ask the worker to stop when the parent is gone: its end of our standard input closes. Never returns."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        await reader.read()
        if not stopping.is_set():
            _log.warning("the parent process is gone: stopping")
            stopping.set()
        await asyncio.Event().wait()
    finally:
        transport.close()
