"""The workers of a gateway that count together, all in the test's own process."""

from collections.abc import Iterator
from contextlib import contextmanager

from headgate.gateway.counting.layout import SharedCounts
from headgate.gateway.counting.peers import Peers


class Workers:
    """The memory that they share, and how each hears the others."""

    def __init__(self, counts: SharedCounts, number: int) -> None:
        self.counts = counts
        self.peers = [Peers(counts.descriptor, number, index) for index in range(number)]


@contextmanager
def workers(number: int) -> Iterator[Workers]:
    """Share memory for a while."""
    with SharedCounts(number) as counts:
        yield Workers(counts, number)
