"""The work folder of measurements: one of them at a time, and what only they need.

Envoy and py-spy are pinned in bench/requirements.lock and live in a virtual environment of their own.
"""

import contextlib
import fcntl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.errors import BenchError

BENCH = Path(__file__).resolve().parents[1]
WORK = BENCH / ".work"
IMPORTABLE = {"PYTHONPATH": str(BENCH.parent)}
"""Environment in which `python -m bench...` works from any folder."""
_VENV = WORK / "venv"
_LOCK = BENCH / "requirements.lock"


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Use the work folder and the cores alone: two measurements at once would measure each other.

    Raises:
        BenchError: another one of this checkout is under way.
    """
    WORK.mkdir(exist_ok=True)
    with (WORK / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BenchError("another measurement of this checkout is under way; wait for its end") from error
        yield


def bench_tool(name: str) -> Path | None:
    """Path of a command of that environment, which is made at first use; None where it cannot be installed."""
    stamp = _VENV / ".installed"
    if not stamp.exists() or stamp.read_bytes() != _LOCK.read_bytes():
        _install(stamp)
    command = _VENV / "bin" / name
    return command if command.exists() else None


def _install(stamp: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(_VENV)], check=True)
    pip = [str(_VENV / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, "--require-hashes", "-r", str(_LOCK)]).returncode == 0:
        stamp.write_bytes(_LOCK.read_bytes())
