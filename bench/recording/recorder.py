"""A process of its own that records while something else is measured, so that neither disturbs the other's timing."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.errors import BenchError
from bench.setup.processes import Process, tail
from bench.setup.tools import IMPORTABLE

READY = "ready"
"""What a recorder prints once it records."""


class Recorder:
    """Runs `python -m bench.recording.<name> <arguments> <file>` while the context lasts, and has its `lines` after."""

    def __init__(
        self,
        name: str,
        folder: Path,
        before: Sequence[str],
        after: Sequence[str] = (),
        *,
        core: int | None = None,
        patience_s: float = 10.0,
    ) -> None:
        """Prepare; `before` and `after` are the arguments around the file's path, and `patience_s` is how long it may
        take to begin, and to end.
        """
        self._name = name
        self._folder = folder
        self._file = folder / f"{name}-{time.monotonic_ns()}.txt"
        self._started = self._file.with_suffix(".started")
        self._argv = [sys.executable, "-m", f"bench.recording.{name}", *before, str(self._file), *after]
        self._core = core
        self._patience_s = patience_s
        self.lines: list[str] = []

    def __enter__(self) -> Self:
        self._process = Process(
            self._name, self._argv, self._folder, core=self._core, stdout=self._started, env=IMPORTABLE
        )
        end = time.monotonic() + self._patience_s
        while READY not in self._started.read_text():
            self._process.ensure_running()
            if time.monotonic() > end:
                self._process.stop()
                raise BenchError(f"{self._name} does not get its connections")
            time.sleep(0.01)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.stop(self._patience_s)
        if kind is not None:
            return
        if not self._file.exists():
            raise BenchError(f"{self._name} wrote nothing: {tail(self._process.log)}")
        self.lines = self._file.read_text().splitlines()
