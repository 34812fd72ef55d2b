"""The machine and the state that figures belong to."""

import os
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.setup.tools import BENCH


@dataclass(frozen=True)
class Machine:
    """Where a run was made."""

    processor: str
    cores: int
    memory_gb: float
    kernel: str
    python: str
    commit: str
    """Short hash of the checkout, `+` after it if files differ."""

    def __str__(self) -> str:
        """As commands name it in a line."""
        return f"{self.processor}, {self.cores} cores, commit {self.commit}"

    @property
    def slug(self) -> str:
        """Name for files: `intel-xeon-processor-2-core`."""
        words = re.sub(r"\((r|tm)\)", "", self.processor.lower())
        return re.sub(r"[^a-z0-9]+", "-", f"{words} {self.cores}-core").strip("-")


def describe_machine() -> Machine:
    """Read it from /proc and git."""
    memory = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return Machine(
        processor=model.group(1).strip() if model else platform.machine(),
        cores=os.cpu_count() or 1,
        memory_gb=round(int(memory.group(1)) / 1e6, 1) if memory else 0.0,
        kernel=platform.release(),
        python=platform.python_version(),
        commit=_commit(),
    )


def _commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(BENCH), *words], capture_output=True, text=True).stdout.strip()

    is_changed = bool(git("status", "--porcelain", "--untracked-files=no"))
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if is_changed else "")


def load_average() -> float:
    """Runnable processes over the last minute: figures mean little where others work."""
    return os.getloadavg()[0]


class StolenTime:
    """Share of processor time that the hypervisor gave to others since this was made."""

    def __init__(self) -> None:
        self._before = _processor_ticks()

    def share(self) -> float:
        """From 0 to 1; above a few hundredths the figures are another machine's too."""
        now = [after - before for after, before in zip(_processor_ticks(), self._before, strict=True)]
        return now[_STEAL] / sum(now) if sum(now) else 0.0


_STEAL = 7


def _processor_ticks() -> list[int]:
    first = Path("/proc/stat").read_text().splitlines()[0]
    return [int(field) for field in first.split()[1:9]]
