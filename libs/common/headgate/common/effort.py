"""How much work one object may make for those who read it.

An object of a megabyte could hold translators up for minutes, and gateways in thousands of steps. The work is counted,
not timed, so that the same object is refused everywhere alike.
"""

from contextlib import ContextDecorator
from contextvars import ContextVar
from typing import Final

MAX_EFFORT: Final = 1_000_000
"""Of one object, in microseconds on a core of 2026: some 30,000 short patterns."""
_left: ContextVar[list[int] | None] = ContextVar("_left", default=None)


def bounded_effort() -> "_Bounded":
    """Let `spend` raise ValueError within once it is more than `MAX_EFFORT` together."""
    return _Bounded()


class _Bounded(ContextDecorator):
    """Every object is translated within one: a generator takes three times as long."""

    def _recreate_cm(self) -> "_Bounded":
        return _Bounded()

    def __enter__(self) -> None:
        self._token = _left.set([MAX_EFFORT])

    def __exit__(self, *_: object) -> None:
        _left.reset(self._token)


def spend(cost: int) -> None:
    """Count what is about to be done, in microseconds. Raises ValueError: it is too much."""
    left = _left.get()
    if left is None:
        return
    left[0] -= cost
    if left[0] < 0:
        raise ValueError(
            "is too much together with all that stands before it: patterns, schemas, templates and queries of one "
            "object are bounded; spread them over several objects"
        )
