"""The retry budget: retries as a share of the load, so that they cannot turn a failure into a flood.

As Envoy's retry budget, and for its reason: with a fixed number of attempts per request an upstream that begins to fail
gets twice its load just then. Pure accounting.
"""

from typing import Final

FLOOR: Final = 3
"""Retries that may always be under way: a share of little is nothing."""


class RetryBudget:
    """Retries of one worker to one upstream: routes that share it share the count, each with a bound of its own."""

    __slots__ = ("under_way",)

    def __init__(self) -> None:
        self.under_way = 0

    def begin(self, share: float | None, requests: int) -> bool:
        """Count a retry that begins; False if it must not.

        Args:
            share: of `requests`, 0 to 1; None is no bound.
            requests: under way to the upstream.
        """
        if share is not None and self.under_way >= max(FLOOR, int(share * requests)):
            return False
        self.under_way += 1
        return True

    def end(self) -> None:
        """Count a retry that ended."""
        self.under_way -= 1
