"""A secret in memory: it prints as `***` everywhere, and is read only on purpose."""

from typing import Generic, TypeVar

T = TypeVar("T", bytes, str)


class Secret(Generic[T]):
    """Holds a value that must not reach a log, a traceback or a dump by accident.

    Comparison and hashing work on the value; everything that could print it prints `***`. Pickling is refused.
    """

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value: T = value

    def reveal(self) -> T:
        """Return the value itself. Call this only where the value is used."""
        return self._value

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format("***", spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> str:
        raise TypeError("a secret is not pickled")
