"""The virtual environment of what only measurements need: Envoy and py-spy, pinned in bench/requirements.lock."""

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent
WORK = BENCH / ".work"
IMPORTABLE = {"PYTHONPATH": str(BENCH.parent)}
"""Environment in which `python -m bench...` works from any folder."""
_VENV = WORK / "venv"
_LOCK = BENCH / "requirements.lock"


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
