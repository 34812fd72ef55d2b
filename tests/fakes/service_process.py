"""A service as a process of its own.

    async with running_service("translator", f"--nats-url={url}", log=folder / "log") as process: ...

`ServiceProcess` is one that a test kills, stops and starts again as often as it likes.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

STOP_S = 30.0


@asynccontextmanager
async def running_service(
    name: str, *flags: str, log: Path, is_ended_orderly: bool = False
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a service while the block lasts; what it printed is in the output of the test.

    Args:
        name: `watcher`, `translator` or `gateway`.
        flags: of the command line.
        log: file that it prints into, after what is there.
        is_ended_orderly: end it with SIGTERM and expect exit code 0, instead of killing it. A stopped one ends too.
    """
    begin = len(_read(log))
    process = await _spawn(f"headgate.{name}", flags, log)
    try:
        yield process
    finally:
        if process.returncode is None and is_ended_orderly:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        elif process.returncode is None:
            process.kill()
        code = await process.wait()
        print(_read(log)[begin:])
    assert code == 0 or not is_ended_orderly, code


def _read(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""


async def _spawn(module: str, flags: Sequence[str], log: Path) -> asyncio.subprocess.Process:
    with log.open("ab") as output:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, *flags),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(os.environ),
        )


class ServiceProcess:
    """`process = ServiceProcess("translator-0", "headgate.translator", flags, folder); await process.start()`."""

    def __init__(self, name: str, module: str, flags: Sequence[str], folder: Path) -> None:
        self.name = name
        self.folder = folder
        self._module, self._flags = module, flags
        self._process: asyncio.subprocess.Process | None = None

    @property
    def log(self) -> str:
        """Everything that it printed in all its lives."""
        return _read(self.folder / "output.log")

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int:
        """Of the process of now, or of the last one."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start it; it prints into `output.log` in its folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._process = await _spawn(self._module, self._flags, self.folder / "output.log")

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    async def kill(self) -> None:
        """End it with SIGKILL; harmless when it does not run. A stopped process ends too."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def stop(self) -> int:
        """End it with SIGTERM; return its exit code."""
        assert self._process is not None
        self._process.terminate()
        async with asyncio.timeout(STOP_S):
            return await self._process.wait()
