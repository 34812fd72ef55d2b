"""Listens on the bus beside the services and notes when what was said: the stages of a change.

    python -m bench.recording.tap NATS_URL FILE

Writes a line `time subject` for each message to FILE when it gets SIGTERM; times are CLOCK_MONOTONIC.
"""

import asyncio
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import nats
from nats.aio.msg import Msg

from bench.recording.recorder import READY, Recorder
from headgate.common.deltas import DELTA_PREFIX
from headgate.common.stores.nats.keys import TABLES_BUCKET

POINTERS = f"$KV.{TABLES_BUCKET}.pointer."
"""Begins the subjects of pointers: a message there makes a revision the current one."""
_SUBJECTS = (f"{DELTA_PREFIX}.>", f"{POINTERS}>")


@dataclass(frozen=True, slots=True)
class Heard:
    """One message."""

    at: float
    subject: str


class Tap(Recorder):
    """Listens while the context lasts; `heard` afterwards."""

    def __init__(self, folder: Path, nats_url: str) -> None:
        super().__init__("tap", folder, [nats_url])

    @property
    def heard(self) -> list[Heard]:
        """All messages."""
        return [Heard(float(at), subject) for at, subject in (line.split(" ", 1) for line in self.lines)]


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
    print(READY, flush=True)
    await stopping.wait()
    await client.close()
    return lines


if __name__ == "__main__":
    written = asyncio.run(_run(sys.argv[1]))
    Path(sys.argv[2]).write_text("\n".join(written))
