"""Listens on the bus beside the services and notes when what was said: the stages of a change.

    python -m bench.tap NATS_URL FILE

Writes a line `time subject` for each message to FILE when it gets SIGTERM; times are CLOCK_MONOTONIC.
"""

import asyncio
import signal
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType

import nats
from nats.aio.msg import Msg

from bench.errors import BenchError
from bench.processes import Process, tail
from bench.tools import IMPORTABLE
from headgate.common.deltas import DELTA_PREFIX
from headgate.common.stores.nats.snapshots import TABLES_BUCKET

POINTERS = f"$KV.{TABLES_BUCKET}.pointer."
"""Begins the subjects of pointers: a message there makes a revision the current one."""
_SUBJECTS = (f"{DELTA_PREFIX}.>", f"{POINTERS}>")
_READY = "ready"
_PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Heard:
    """One message."""

    at: float
    subject: str


class Tap:
    """Listens while the context lasts; `heard` afterwards."""

    def __init__(self, folder: Path, nats_url: str) -> None:
        self._file = folder / f"tap-{time.monotonic_ns()}.txt"
        self._started = self._file.with_suffix(".started")
        argv = [sys.executable, "-m", "bench.tap", nats_url, str(self._file)]
        self._start = partial(Process, "tap", argv, folder, stdout=self._started, env=IMPORTABLE)
        self.heard: list[Heard] = []

    def __enter__(self) -> "Tap":
        self._process = self._start()
        end = time.monotonic() + _PATIENCE_S
        while _READY not in self._started.read_text():
            self._process.ensure_running()
            if time.monotonic() > end:
                self._process.stop()
                raise BenchError("the tap does not reach the bus")
            time.sleep(0.01)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.stop()
        if kind is not None:
            return
        if not self._file.exists():
            raise BenchError(f"the tap wrote nothing: {tail(self._process.log)}")
        lines = (line.split(" ", 1) for line in self._file.read_text().splitlines())
        self.heard = [Heard(float(at), subject) for at, subject in lines]


async def _run(url: str) -> list[str]:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    lines: list[str] = []

    async def note(message: Msg) -> None:
        lines.append(f"{time.monotonic():.6f} {message.subject}")

    client = await nats.connect(url)
    for subject in _SUBJECTS:
        await client.subscribe(subject, cb=note)
    await client.flush()
    print(_READY, flush=True)
    await stopping.wait()
    await client.close()
    return lines


if __name__ == "__main__":
    written = asyncio.run(_run(sys.argv[1]))
    Path(sys.argv[2]).write_text("\n".join(written))
