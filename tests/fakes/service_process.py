"""A service as a process of its own that a test kills, stops and starts again as often as it likes."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

STOP_S = 30.0


class ServiceProcess:
    """`process = ServiceProcess("translator-0", "headgate.translator", flags, folder); await process.start()`."""

    def __init__(self, name: str, module: str, flags: Sequence[str], folder: Path) -> None:
        self.name = name
        self.folder = folder
        self._command = (sys.executable, "-m", module, *flags)
        self._process: asyncio.subprocess.Process | None = None

    @property
    def log(self) -> str:
        """Everything that it printed in all its lives."""
        path = self.folder / "output.log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start it; it prints into `output.log` in its folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "output.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=dict(os.environ)
            )

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
