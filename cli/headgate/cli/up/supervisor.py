"""Runs a plan: starts its processes in order, keeps them running, ends them in order."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from headgate.cli.up.log_output import LogOutput
from headgate.cli.up.plan import UpPlan
from headgate.cli.up.process import ProcessSpec, SupervisedProcess

OnChange = Callable[[dict[str, int], dict[str, int]], None]
"""Called with the ids of what runs and the restarts so far, whenever either changes."""


class Supervisor:
    """Owns the processes of one plan."""

    def __init__(self, plan: UpPlan, output: LogOutput, on_change: OnChange) -> None:
        self._plan = plan
        self._output = output
        self._on_change = on_change
        self._processes: dict[str, SupervisedProcess] = {}
        self._runs: list[asyncio.Task[None]] = []

    async def run(
        self,
        broker_is_up: Callable[[], Awaitable[None]],
        stopping: asyncio.Event,
        traffic_is_up: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Start everything and keep it running until `stopping`; nothing runs any more when this returns or raises.

        Args:
            broker_is_up: returns when the NATS server answers; what follows is started then.
            stopping: set when the user asked to end.
            traffic_is_up: returns when what changes the table may start, too; None: at once.

        Raises:
            UsageMistake: a process refused its settings.
        """
        try:
            await self._start_all(broker_is_up, stopping, traffic_is_up)
            await self._wait(asyncio.ensure_future(stopping.wait()))
        finally:
            await self._stop_all()

    def hurry(self) -> None:
        """End what still runs at once; for the user's second Ctrl-C."""
        for process in self._processes.values():
            process.kill()

    async def _start_all(
        self,
        broker_is_up: Callable[[], Awaitable[None]],
        stopping: asyncio.Event,
        traffic_is_up: Callable[[], Awaitable[None]] | None,
    ) -> None:
        plan = self._plan
        if plan.broker:
            self._start(plan.broker)
        await self._wait_or_stop(broker_is_up(), stopping)
        if traffic_is_up is not None and not stopping.is_set():
            self._start(plan.gateway)
            await self._wait_or_stop(traffic_is_up(), stopping)
        if not stopping.is_set():
            for spec in plan.services:
                if spec.name not in self._processes:
                    self._start(spec)

    async def _wait_or_stop(self, awaited: Awaitable[None], stopping: asyncio.Event) -> None:
        waiting, stopped = asyncio.ensure_future(awaited), asyncio.ensure_future(stopping.wait())
        try:
            await self._wait(waiting, stopped)
        finally:
            waiting.cancel()
            stopped.cancel()

    async def _wait(self, *others: "asyncio.Future[Any]") -> None:
        """Wait for any of `others`; a process that gives up ends the wait with its error."""
        watched: list[asyncio.Future[Any]] = [*others, *self._runs]
        done, _ = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
        for future in done:
            future.result()

    def _start(self, spec: ProcessSpec) -> None:
        process = SupervisedProcess(spec, self._output.channel(spec.name), self._changed)
        self._processes[spec.name] = process
        self._runs.append(asyncio.create_task(process.run(), name=spec.name))

    def _changed(self) -> None:
        running = {name: process.pid for name, process in self._processes.items() if process.pid is not None}
        restarts = {name: process.restarts for name, process in self._processes.items() if process.restarts}
        self._on_change(running, restarts)

    async def _stop_all(self) -> None:
        for group in self._plan.stop_groups:
            await self._stop_group(group)
        if self._runs:
            await asyncio.gather(*self._runs, return_exceptions=True)

    async def _stop_group(self, group: Sequence[ProcessSpec]) -> None:
        processes = [self._processes[spec.name] for spec in group if spec.name in self._processes]
        await asyncio.gather(*(process.stop() for process in processes))
