"""Work that takes longer than traffic may wait, cut into steps.

A generator that yields whenever it has held the event loop for about a millisecond, and returns its result. Whoever
runs it lets requests in between; where none are to be let in it runs to its end.
"""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Steps to a result."""


def finish(steps: Steps[T]) -> T:
    """Take all steps at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
