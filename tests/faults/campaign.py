"""One deployment and its rounds: break things while objects change and clients ask, mend them, and judge."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from faults.deployment import SHAPES, Deployment, deployed
from faults.nemesis import Nemesis, wait_until_ready, write_for_ever
from faults.observed import CLIENTS, Observed, ask_for_ever, differences, look_for_ever
from faults.schedule import Schedule, draw, show
from headgate.common.service.tasks import cancel

START_S = 60.0
CONVERGED_S = 10.0
"""From the moment when the last fault is mended; where everything takes long to start, three times as long as that."""
HOPELESS_S = 60.0
"""Waited for what did not converge in time, to say how long it takes."""
SHOWN = 6000
"""Characters of each service's log, when something was wrong."""
WRITE_S = 0.2
"""Between two changes of objects, on average."""


class Campaign:
    """What is deployed, and what was seen of it."""

    def __init__(self, deployment: Deployment, seed: int) -> None:
        self._deployment = deployment
        self._draws = random.Random(f"schedules of {seed}")
        self._changes = random.Random(f"changes of {seed}")
        self._began = time.monotonic()
        self._observed = Observed(deployment.desired, deployment.log, lambda: time.monotonic() - self._began)
        self._nemesis = Nemesis(deployment, self._observed)
        self._within_s = CONVERGED_S
        self.took_s: list[float] = []
        """Of each round: until everything had converged."""

    @property
    def observed(self) -> Observed:
        return self._observed

    @asynccontextmanager
    async def traffic(self) -> AsyncIterator[None]:
        """Ask both gateways for as long as this lasts; begins when both serve everything."""
        doors = self._deployment.doors.values()
        hosts = [host for desired in self._deployment.desired for host in desired.generations]
        async with asyncio.timeout(START_S):
            for door in doors:
                await wait_until_ready(door)
            await self._until(lambda: not any(differences(door, self._deployment.desired) for door in doors))
        self._within_s = max(CONVERGED_S, 3 * (time.monotonic() - self._began))
        tasks = [asyncio.create_task(look_for_ever(door, self._observed)) for door in doors]
        tasks += [
            asyncio.create_task(ask_for_ever(door, hosts, self._observed)) for door in doors for _ in range(CLIENTS)
        ]
        try:
            yield
            for task in tasks:
                assert not task.done(), task.exception()
        finally:
            await cancel(*tasks)

    def draw(self, length_s: float, count: int, must: str = "") -> Schedule:
        """Draw the next round's schedule."""
        return draw(self._draws, self._nemesis.possible(), length_s, count, must)

    async def round(self, schedule: Schedule) -> None:
        """Carry out a schedule, and find out whether all is well afterwards."""
        for desired in self._deployment.desired:
            desired.api.compact()
        self._deployment.log.forget()
        writing = asyncio.create_task(write_for_ever(self._deployment, self._changes, WRITE_S))
        try:
            await self._nemesis.run(schedule)
        finally:
            await cancel(writing)
        for desired in self._deployment.desired:
            desired.bump_all()
        await self._converge()
        await self._judge()

    async def _converge(self) -> None:
        mended = time.monotonic()
        try:
            async with asyncio.timeout(self._within_s):
                await self._until(lambda: not self._lacking())
        except TimeoutError:
            late = self._lacking()
            try:
                async with asyncio.timeout(HOPELESS_S):
                    await self._until(lambda: not self._lacking())
                after = f"came after {time.monotonic() - mended:.1f} s"
            except TimeoutError:
                after = "never came"
            self._observed.complain(
                f"{self._within_s:.0f} s after the last fault there lacked: {'; '.join(late)}; {after}"
            )
        self.took_s.append(round(time.monotonic() - mended, 1))

    def _lacking(self) -> list[str]:
        """What gateways do not serve as the API servers have it."""
        found = []
        for door in self._deployment.doors.values():
            if differing := differences(door, self._deployment.desired):
                found.append(f"{door.name}: {', '.join(differing[:5])}")
            elif not self._observed.has_current_generations(door.name):
                found.append(f"{door.name}: answers of an older generation")
        return found

    async def _judge(self) -> None:
        log = self._deployment.log
        async with asyncio.timeout(HOPELESS_S):
            await self._until(lambda: all(map(log.has, self._observed.inputs[-1:])))
        self._observed.check_tables()
        for service in self._deployment.services.values():
            if not service.is_running:
                self._observed.complain(f"{service.name} has ended by itself")
            if "Traceback" in service.log:
                self._observed.complain(f"{service.name} printed a traceback")

    @staticmethod
    async def _until(condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 - what is waited for are other processes
            await asyncio.sleep(0.1)


@asynccontextmanager
async def campaign(folder: Path, shape: str, seed: int) -> AsyncIterator[Campaign]:
    """Deploy a shape, and let clients ask it."""
    async with deployed(folder, SHAPES[shape]) as deployment, AsyncExitStack() as stack:
        made = Campaign(deployment, seed)
        await stack.enter_async_context(deployment.log.recording(deployment.broker.access()))
        try:
            async with made.traffic():
                yield made
        except BaseException:
            for service in deployment.services.values():
                print(f"----- {service.name}\n{service.log[-SHOWN:]}")
            raise


def tell(campaign: Campaign, schedule: Schedule, shape: str, seed: int) -> str:
    """Say everything that is needed to see a failure again."""
    wrong = "\n".join(campaign.observed.wrong[:20])
    return f"FAULT_SEED={seed} with {shape}:\n{show(schedule)}\n\nwhat was wrong:\n{wrong}"
