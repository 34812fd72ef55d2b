"""Schedules of faults: drawn from a seed, shown as text, read from it again.

at 1.2 s for 0.8 s: kill translator-0
at 1.9 s for 2.5 s: stall watcher-local-0 > nats
at 2.0 s for 0.0 s: lose nats
"""

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

_LINE = re.compile(r"at ([0-9.]+) s for ([0-9.]+) s: (\S+) (.+)")


class Fault(NamedTuple):
    """Something that breaks, and is mended after a while."""

    at_s: float
    """After the beginning of the round."""
    for_s: float
    what: str
    victim: str

    def __str__(self) -> str:
        return f"at {self.at_s} s for {self.for_s} s: {self.what} {self.victim}"

    @property
    def end_s(self) -> float:
        return self.at_s + self.for_s


class Possible(NamedTuple):
    """A fault that may be drawn."""

    what: str
    victim: str
    weight: int = 2
    longest_s: float = 4.0


Schedule = Sequence[Fault]


def draw(rng: random.Random, possible: Sequence[Possible], length_s: float, count: int, must: str = "") -> Schedule:
    """Draw a schedule.

    Args:
        rng: where chance comes from.
        possible: what may break.
        length_s: when the last fault ends.
        count: of faults, as far as victims do not already suffer from another one at the time.
        must: a word that the first fault's `what` or `victim` begins with, where something so begins.
    """
    faults: list[Fault] = []
    wanted = [each for each in possible if must and (each.what.startswith(must) or each.victim.startswith(must))]
    for _ in range(count * 3):
        among = wanted or possible
        chosen = rng.choices(among, [each.weight for each in among])[0]
        for_s = round(rng.uniform(0.2, min(chosen.longest_s, length_s / 2)), 1)
        fault = Fault(round(rng.uniform(0.0, length_s - for_s), 1), for_s, chosen.what, chosen.victim)
        if not any(_collide(fault, other) for other in faults):
            faults.append(fault)
            wanted = []
        if len(faults) == count:
            break
    return sorted(faults)


def sufferer(fault: Fault) -> str:
    """Who suffers from one fault at a time; the servers of a store are one victim."""
    return fault.victim.split("-server-")[0]


def _collide(one: Fault, other: Fault) -> bool:
    return sufferer(one) == sufferer(other) and one.at_s <= other.end_s + 0.5 and other.at_s <= one.end_s + 0.5


def show(schedule: Schedule) -> str:
    """Write a schedule down."""
    return "\n".join(map(str, schedule))


def read(text: str) -> Schedule:
    """Read what `show` wrote; raises `ValueError`."""
    faults = []
    for line in filter(None, map(str.strip, text.splitlines())):
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"{line!r} is no fault")
        faults.append(Fault(float(found[1]), float(found[2]), found[3], found[4]))
    return faults
