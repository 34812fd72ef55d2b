"""Several workers behind one set of ports: a parent that starts them, restarts one that dies, and answers for all.

Each worker is a process of its own with its own event loop; the kernel spreads new connections over them
(SO_REUSEPORT). The parent is never in the path of traffic: it keeps the ports reserved, forwards SIGTERM, and serves
the admin port by asking the workers over unix sockets.

Rejected: forking after binding (uvloop, threads and open clients do not survive a fork), and passing settings by pipe
(the worker reads the same flags, environment and file as the parent).
"""

import asyncio
import contextlib
import logging
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from prometheus_client import Counter

from headgate.common.service.service import ServiceContext
from headgate.common.service.tasks import cancel
from headgate.gateway.counting.layout import SharedCounts
from headgate.gateway.net.reserved_port import reserve_port
from headgate.gateway.processes.fleet_site import FleetSite
from headgate.gateway.role import WorkerRole
from headgate.gateway.sealing_keys import load_unsealer
from headgate.gateway.settings import GatewaySettings
from headgate.gateway.tls.tickets import PERIOD_S, RatchetFile

_log = logging.getLogger(__name__)

FIRST_BACKOFF_S = 0.1
LAST_BACKOFF_S = 5.0
STEADY_S = 10.0
"""A worker that lived for this long died of something new: it is restarted at once."""

_restarts = Counter("headgate_worker_restarts", "Workers that ended unasked and were started again")


async def run_workers(context: ServiceContext, settings: GatewaySettings, flags: Sequence[str]) -> None:
    """Run a replica of several workers until told to stop.

    Raises:
        SettingsError: a port cannot be bound.
        SealingError: a private key cannot be read.
    """
    load_unsealer(settings)  # Made or refused here, once, rather than by several workers at the same time.
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headgate-")))
        http_port = stack.enter_context(reserve_port("http_port", settings.http_host, settings.http_port))
        https_port = (
            stack.enter_context(reserve_port("https_port", settings.http_host, settings.https_port))
            if settings.https
            else None
        )
        seed = RatchetFile.begin(folder / "ticket-seed", time.time())
        answers = folder / "answers"
        answers.mkdir()
        counts = stack.enter_context(SharedCounts(settings.workers))
        roles = [
            WorkerRole(
                index=index,
                http_port=http_port,
                https_port=https_port,
                admin_socket=folder / f"worker-{index}.sock",
                workers=settings.workers,
                ticket_seed=folder / "ticket-seed",
                counts_descriptor=counts.descriptor,
                answers=answers,
            )
            for index in range(settings.workers)
        ]
        site = FleetSite({role.index: role.admin_socket for role in roles if role.admin_socket}, context.health)
        try:
            if settings.admin_port:
                await site.start(settings.admin_host, settings.admin_port)
            advancing = asyncio.create_task(_advance(seed))
            try:
                await _supervise_all(roles, flags, counts, context.stopping)
            finally:
                await cancel(advancing)
        finally:
            await site.stop()


async def _advance(seed: RatchetFile) -> None:
    """Keep no seed of a period that has ended."""
    while True:
        await asyncio.sleep(PERIOD_S - time.time() % PERIOD_S + 1.0)
        seed.advance(time.time())


async def _supervise_all(
    roles: Sequence[WorkerRole], flags: Sequence[str], counts: SharedCounts, stopping: asyncio.Event
) -> None:
    supervisors = [asyncio.create_task(WorkerProcess(role, flags, counts).supervise(stopping)) for role in roles]
    try:
        await asyncio.gather(*supervisors)
    finally:
        await cancel(*supervisors)


class WorkerProcess:
    """One worker's process, over its restarts."""

    def __init__(self, role: WorkerRole, flags: Sequence[str], counts: SharedCounts) -> None:
        self._role = role
        self._flags = flags
        self._counts = counts
        self._backoff_s = FIRST_BACKOFF_S

    async def supervise(self, stopping: asyncio.Event) -> None:
        """Keep the worker running until told to stop, then pass that on and wait for it.

        Cancelling kills the worker.
        """
        told = asyncio.create_task(stopping.wait())
        try:
            while not stopping.is_set():
                started = time.monotonic()
                code = await self._run_once(told)
                if not stopping.is_set():
                    await self._back_off(code, time.monotonic() - started, told)
        finally:
            await cancel(told)

    async def _run_once(self, told: "asyncio.Task[bool]") -> int | None:
        process = await self._spawn()
        ended = asyncio.create_task(process.wait())
        try:
            await asyncio.wait({told, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                process.terminate()
                await asyncio.wait({ended})
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            await asyncio.wait({ended})
            # What it had under way is over, whichever way it ended, and nobody keeps account of its answers.
            self._counts.forget(self._role.index)
            if self._role.answers is not None:
                await asyncio.to_thread(shutil.rmtree, self._role.answers / str(self._role.index), ignore_errors=True)
        return process.returncode

    async def _spawn(self) -> asyncio.subprocess.Process:
        # Standard input is the worker's sign that the parent lives.
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "headgate.gateway",
            *self._flags,
            env=self._role.environment(os.environ),
            stdin=asyncio.subprocess.PIPE,
            pass_fds=(self._counts.descriptor,),
        )
        _log.info("worker started", extra={"worker": self._role.index, "pid": process.pid})
        return process

    async def _back_off(self, code: int | None, lived_s: float, told: "asyncio.Task[bool]") -> None:
        if lived_s >= STEADY_S:
            self._backoff_s = FIRST_BACKOFF_S
        _restarts.inc()
        _log.error("worker ended unasked, starting it again", extra={"worker": self._role.index, "exit_code": code})
        await asyncio.wait({told}, timeout=self._backoff_s * random.uniform(0.75, 1.25))  # noqa: S311 - jitter
        self._backoff_s = min(self._backoff_s * 2, LAST_BACKOFF_S)
