"""One supervised process: started, restarted with growing pauses, ended for certain."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headgate.cli.terminal.errors import ExitCode, UsageMistake
from headgate.cli.up import tether
from headgate.cli.up.log_output import LogChannel

LONGEST_PAUSE_S = 10.0
STEADY_AFTER_S = 30.0
"""A process that ran this long and dies is restarted at once again."""


@dataclass(frozen=True)
class ProcessSpec:
    """A process as it should run."""

    name: str
    command: tuple[str, ...]
    prepare: Callable[[], Sequence[str]] = tuple
    """Called before every start; what it returns is added to the command."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to that of `up`."""
    stop_within_s: float = 5.0
    """From SIGTERM to SIGKILL."""
    log_file: Path | None = None
    """Where it logs, if not to standard output."""


class RestartPauses:
    """Seconds to wait before each restart: none, 0.5, 1, 2, 4, 8, 10, 10, ..."""

    def __init__(self) -> None:
        self._deaths = 0

    def next(self, ran_for_s: float) -> float:
        """Pause before the restart of a process that ran for so long."""
        self._deaths = 1 if ran_for_s >= STEADY_AFTER_S else self._deaths + 1
        return 0.0 if self._deaths == 1 else min(LONGEST_PAUSE_S, 0.5 * 2.0 ** (self._deaths - 2))


class SupervisedProcess:
    """Keeps one process running until told to stop.

    Every process leads a session of its own: Ctrl-C in the terminal reaches `up` alone, which then ends the others in
    order, and a whole group (a gateway and its workers) can be killed at once.
    """

    def __init__(self, spec: ProcessSpec, channel: LogChannel, on_change: Callable[[], None]) -> None:
        self.spec = spec
        self.restarts = 0
        self._channel = channel
        self._on_change = on_change
        self._process: Process | None = None
        self._stopping = asyncio.Event()
        self._pauses = RestartPauses()

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process is not None else None

    async def run(self) -> None:
        """Start the process, and again whenever it ends; return once `stop` was called.

        Raises:
            UsageMistake: it refused its settings, which no restart mends.
        """
        clock = asyncio.get_running_loop().time
        while not self._stopping.is_set():
            started = clock()
            try:
                code = await self._run_once()
                how = _describe(code)
            except OSError as error:  # the disk is full, or there are too many processes: that may pass
                code, how = ExitCode.NEGATIVE, f"cannot be started: {error}"
            if self._stopping.is_set():
                return
            if code == ExitCode.USAGE:
                raise UsageMistake(f"{self.spec.name} did not accept its settings; its own line above says which")
            pause = self._pauses.next(clock() - started)
            when = f"in {pause:g} s" if pause else "now"
            where = f" (its log: {self.spec.log_file})" if self.spec.log_file else ""
            self._channel.say(f"{how}{where}; starting it again {when}")
            await self._sleep(pause)
            self.restarts += 1

    async def stop(self) -> None:
        """End the process: SIGTERM, then SIGKILL for it and what it started."""
        self._stopping.set()
        process = self._process
        if process is None:
            return
        _signal(process, signal.SIGTERM)
        try:
            async with asyncio.timeout(self.spec.stop_within_s):
                await process.wait()
        except TimeoutError:
            self._channel.say(f"did not end within {self.spec.stop_within_s:g} s; killing it")
        _kill_group(process)
        await process.wait()

    def kill(self) -> None:
        """End the process and what it started without waiting for it to finish anything."""
        self._stopping.set()
        if self._process is not None:
            _kill_group(self._process)

    async def _run_once(self) -> int:
        command = (*self.spec.command, *self.spec.prepare())
        # A pipe of our own: asyncio's would make `wait` wait for whatever inherited the pipe, too.
        reading, writing = os.pipe()
        try:
            process = await self._spawn(command, writing)
        except OSError:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self._process = process
        log = _Log(self._channel)
        await asyncio.get_running_loop().connect_read_pipe(lambda: log, os.fdopen(reading, "rb", buffering=0))
        self._on_change()
        if self._stopping.is_set():
            _signal(process, signal.SIGTERM)
        try:
            return await process.wait()
        finally:
            # What it started must not outlive it; with that, no process holds the pipe any more.
            _kill_group(process)
            self._process = None
            await log.ended
            self._on_change()

    async def _spawn(self, command: Sequence[str], output: int) -> Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", str(Path(tether.__file__)), str(os.getpid()), *command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **self.spec.environment},
            start_new_session=True,
        )

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return


class _Log(asyncio.Protocol):
    """Passes on what a process prints until none can print any more."""

    def __init__(self, channel: LogChannel) -> None:
        self._channel = channel
        self.ended = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self._channel.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._channel.close()
        self.ended.set_result(None)


def _signal(process: Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except ProcessLookupError:
        return


def _kill_group(process: Process) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _describe(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
