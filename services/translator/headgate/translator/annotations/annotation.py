"""What is known of one annotation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PREFIX = "headgate.dev/"


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotation: a row of the tables, and of `docs/annotations.md`."""

    name: str
    """Without the prefix."""
    sets: str
    """Field that it sets, with the group that it belongs to: `timeouts.connect_s`; without a dot a field of the entry
    itself."""
    read: Callable[[str], Any]
    """Text to value. Raises ValueError with a text that begins with `must be`."""
    value: str
    """What may be written, in a few words."""
    default: str
    does: str
    example: str
    guards: bool = False
    """Whether it keeps requests out: when it cannot be read, all are refused rather than let in."""
    is_private: bool = False
    """Whether its value may hold a secret, and is never shown."""
