"""A value that must never go back."""

from typing import Generic, TypeVar

T = TypeVar("T", int, tuple[int, int])

FORGOTTEN_S = 4.0
"""A gateway writes its table to disk once a second; what it served for longer than this outlasts SIGKILL."""


class Ratchet(Generic[T]):
    """`ratchet.take(now, value)` for every value seen, `ratchet.restart(now)` when what has the value is killed."""

    def __init__(self) -> None:
        self._steps: list[tuple[float, T]] = []
        """Each value that was greater than all before, and when it was seen first."""
        self.life = 0

    @property
    def highest(self) -> T | None:
        """The greatest value that counts."""
        return self._steps[-1][1] if self._steps else None

    def take(self, at: float, value: T) -> bool:
        """Note a value; return whether it is in order."""
        if self._steps and value < self._steps[-1][1]:
            return False
        if not self._steps or value > self._steps[-1][1]:
            self._steps.append((at, value))
            del self._steps[:-1000]
        return True

    def restart(self, at: float) -> None:
        """Forget what had not come to the disk."""
        self._steps = [step for step in self._steps if step[0] < at - FORGOTTEN_S]
        self.life += 1
