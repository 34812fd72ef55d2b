"""Carries a schedule out: breaks things at their times and mends each of them after its while."""

import asyncio
import random
import signal
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import aiohttp

from faults.deployment import Deployment
from faults.observed import Door, Observed
from faults.schedule import Fault, Possible, Schedule, sufferer

READY_S = 20.0
"""A gateway that was started has its table from disk by then, whatever else is broken."""
ALL_NATS, REDIS = "nats-server-all", "redis-server"
STORM_S = 0.3
"""Between two compactions of a storm."""


class Nemesis:
    """The hand that breaks things."""

    def __init__(self, deployment: Deployment, observed: Observed) -> None:
        self._deployment = deployment
        self._observed = observed
        self._suffering: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """One for each victim: ending a process may take longer than its fault was drawn to last."""
        self._acts: dict[str, Callable[[Fault], Awaitable[None]]] = {
            "kill": self._kill,
            "pause": self._pause,
            "restart": self._restart,
            "cut": self._partition,
            "stall": self._partition,
            "lose": self._lose,
            "restore": self._restore,
            "fail-over": self._fail_over,
            "expire": self._expire,
            "close-watches": self._close_watches,
            "errors": self._refuse,
            "stop": self._stop_api,
        }

    def possible(self) -> Sequence[Possible]:
        """Everything that may be broken here."""
        deployment = self._deployment
        found = [
            Possible(what, name)
            for name in deployment.services
            for what in ("kill", "pause", *(["restart"] if name not in deployment.doors else []))
        ]
        found += [Possible(what, name) for name in deployment.links for what in ("cut", "stall")]
        for number in range(len(deployment.broker.servers)):
            found += [Possible(what, f"nats-server-{number}", 6) for what in ("kill", "pause")]
        found += [Possible(what, ALL_NATS, 6) for what in ("lose", "restore")]
        if deployment.tables:
            found += [Possible(what, REDIS, 10) for what in ("fail-over", "pause", "lose", "restore")]
        for cluster in deployment.shape.clusters:
            found += [Possible(what, f"api-{cluster}", 4) for what in ("expire", "close-watches", "errors", "stop")]
        return found

    async def run(self, schedule: Schedule) -> None:
        """Carry a schedule out; return when everything is mended."""
        if any(fault.what == "restore" for fault in schedule):
            await self._deployment.broker.copy()
            if self._deployment.tables:
                await self._deployment.tables.copy()
        async with asyncio.TaskGroup() as group:
            for fault in schedule:
                group.create_task(self._carry_out(fault))

    async def _carry_out(self, fault: Fault) -> None:
        await asyncio.sleep(fault.at_s)
        async with self._suffering[sufferer(fault)]:
            await self._acts[fault.what](fault)

    # Processes

    async def _kill(self, fault: Fault) -> None:
        if fault.victim.startswith("nats-server"):
            server = self._deployment.nats_server(fault.victim)
            await server.kill()
            await asyncio.sleep(fault.for_s)
            await server.start()
            return
        self._break_gateway(fault.victim, is_killed=True)
        service = self._deployment.services[fault.victim]
        await service.kill()
        await asyncio.sleep(fault.for_s)
        await service.start()
        await self._mend_gateway(fault.victim)

    async def _restart(self, fault: Fault) -> None:
        service = self._deployment.services[fault.victim]
        if (code := await service.stop()) != 0:
            self._observed.complain(f"{fault.victim} ended with exit code {code} after SIGTERM")
        await asyncio.sleep(fault.for_s)
        await service.start()

    async def _pause(self, fault: Fault) -> None:
        if fault.victim == REDIS:
            await self._pause_redis(fault)
            return
        self._break_gateway(fault.victim, is_killed=False)
        self._deployment.signal(fault.victim, signal.SIGSTOP)
        await asyncio.sleep(fault.for_s)
        self._deployment.signal(fault.victim, signal.SIGCONT)
        await self._mend_gateway(fault.victim)

    async def _pause_redis(self, fault: Fault) -> None:
        assert self._deployment.tables is not None
        paused = self._deployment.tables.primary
        paused.suspend()
        await asyncio.sleep(fault.for_s)
        paused.resume()
        await self._deployment.tables.settle()

    def _break_gateway(self, name: str, *, is_killed: bool) -> None:
        if name in self._deployment.doors:
            self._observed.break_gateway(name)
            if is_killed:
                self._observed.restart_gateway(name)

    async def _mend_gateway(self, name: str) -> None:
        if (door := self._deployment.doors.get(name)) is None:
            return
        try:
            async with asyncio.timeout(READY_S):
                await wait_until_ready(door)
        except TimeoutError:
            self._observed.complain(f"{name} was started and is not ready after {READY_S:g} s")
        self._observed.mend_gateway(name)

    # Links and stores

    async def _partition(self, fault: Fault) -> None:
        links = self._deployment.links[fault.victim]
        for link in links:
            link.cut() if fault.what == "cut" else link.stall()
        await asyncio.sleep(fault.for_s)
        for link in links:
            link.heal()

    async def _lose(self, fault: Fault) -> None:
        await self._replace(fault, is_empty=True)

    async def _restore(self, fault: Fault) -> None:
        await self._replace(fault, is_empty=False)

    async def _replace(self, fault: Fault, *, is_empty: bool) -> None:
        if fault.victim == REDIS:
            assert self._deployment.tables is not None
            await (self._deployment.tables.lose() if is_empty else self._deployment.tables.restore())
            return
        broker, log = self._deployment.broker, self._deployment.log
        # Parted a moment before, so that the recorder misses nothing that a translator heard.
        parted = [link for links in self._deployment.nats_links for link in links if link.is_whole]
        for link in parted:
            link.cut()
        await log.pause()
        await broker.kill()
        for link in parted:
            link.heal()
        await asyncio.sleep(fault.for_s)
        if is_empty:
            broker.lose()
        else:
            broker.restore()
        await broker.start()
        log.begin_anew()

    async def _fail_over(self, fault: Fault) -> None:
        assert self._deployment.tables is not None
        await self._deployment.tables.cut_replication()
        await asyncio.sleep(fault.for_s)
        await self._deployment.tables.fail_over()

    # API servers

    async def _expire(self, fault: Fault) -> None:
        api = self._deployment.api(fault.victim.removeprefix("api-"))
        for _ in range(max(1, int(fault.for_s / STORM_S))):
            api.compact()
            api.break_watches("end")
            await asyncio.sleep(STORM_S)

    async def _close_watches(self, fault: Fault) -> None:
        api = self._deployment.api(fault.victim.removeprefix("api-"))
        for how in ("end", "reset", "half"):
            api.break_watches(how)
            await asyncio.sleep(fault.for_s / 3)

    async def _refuse(self, fault: Fault) -> None:
        api = self._deployment.api(fault.victim.removeprefix("api-"))
        api.faults.status(500, times=None)
        api.drop_connections()
        await asyncio.sleep(fault.for_s)
        api.faults.clear()

    async def _stop_api(self, fault: Fault) -> None:
        api = self._deployment.api(fault.victim.removeprefix("api-"))
        await api.stop()
        await asyncio.sleep(fault.for_s)
        await api.start()


async def wait_until_ready(door: Door) -> None:
    """Wait until a gateway says that it is ready."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=1.0)) as session:
        while True:
            with suppress(aiohttp.ClientError, TimeoutError):
                async with session.get(f"http://127.0.0.1:{door.admin_port}/readyz") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.05)


async def write_for_ever(deployment: Deployment, rng: random.Random, pause_s: float) -> None:
    """Change objects at the API servers, again and again."""
    while True:
        await asyncio.sleep(rng.uniform(0.5, 1.5) * pause_s)
        rng.choice(deployment.desired).change(rng)
