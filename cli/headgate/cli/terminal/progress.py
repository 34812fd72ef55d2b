"""What long work shows of itself, on a terminal only: one line on standard error that goes when the work ends."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class Progress:
    """The line. Without a terminal it is nothing."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()

    def begin(self, what: str) -> None:
        """Say what is done now."""
        self._show(what)

    def end(self) -> None:
        """Take the line away."""
        self._show("")

    def _show(self, text: str) -> None:
        if self._is_shown:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()


@contextmanager
def long_work() -> Iterator[Progress]:
    """Work through many objects: with a line that says how far it is, and without the collector of cycles.

    All that is made is kept until the command ends, so each of its looks through everything would find nothing.
    """
    progress, was_enabled = Progress(), gc.isenabled()
    gc.disable()
    try:
        yield progress
    finally:
        progress.end()
        if was_enabled:
            gc.freeze()  # else the first look after this goes through all that was made
            gc.enable()
