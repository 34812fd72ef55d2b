"""A measurement that is a command of its own: alone, in a folder that goes with it, and with nothing left running."""

import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bench.errors import BenchError
from bench.setup.processes import end_all
from bench.setup.tools import WORK, alone

T = TypeVar("T")


def measure_alone(measure: Callable[[Path], T], within: Path | None = WORK) -> T:
    """Return what a measurement finds.

    Args:
        measure: gets its folder, which nginx can read as another user.
        within: where that is made; None: where temporary files go, as `TMPDIR` says.

    Raises:
        SystemExit: it cannot be made, and why, or it was told to end. Its processes have ended.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with alone(), tempfile.TemporaryDirectory(prefix="headgate-bench-", dir=within) as made:
            folder = Path(made)
            folder.chmod(0o755)
            try:
                return measure(folder)
            finally:
                end_all()
    except BenchError as error:
        raise SystemExit(str(error)) from error
