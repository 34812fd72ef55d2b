"""What long work shows of itself, on a terminal only: one line on standard error that goes when the work ends."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from headgate.common.service.uncollected import uncollected


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
    """Work through many objects: with a line that says how far it is, and without the collector of cycles."""
    progress = Progress()
    with uncollected():
        try:
            yield progress
        finally:
            progress.end()
