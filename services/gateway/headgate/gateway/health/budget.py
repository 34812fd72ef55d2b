"""The retry budget: retries as a share of the load, so that they cannot turn a failure into a flood.

As Envoy's retry budget, and for its reason: with a fixed number of attempts per request an upstream that begins to fail
gets twice its load just then. Pure accounting.

`RetryBudget` bounds what is under way, by the share that each route has. `RecentBudget` bounds what has begun within a
time, for upstreams that say so (Gateway API, GEP-3388); it has to hear of every request.
"""

from typing import Final

from headgate.common import table

FLOOR: Final = 3
"""Retries that may always be under way: a share of little is nothing."""
_PARTS: Final = 20
"""Of an interval: what is counted is forgotten after it, and a twentieth of it later at most."""


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


class RecentBudget:
    """What has begun lately in one worker, and how many retries that allows. Times are monotonic seconds."""

    __slots__ = ("_lately", "_requests", "_retries", "policy")

    def __init__(self, policy: table.RetryBudget) -> None:
        self.policy: Final = policy
        self._requests = _Recent(policy.interval_s)
        """Retries are among them."""
        self._retries = _Recent(policy.interval_s)
        self._lately = _Recent(policy.least_interval_s)
        """Retries within the time in which some are made in any case."""

    def begin(self, now: float) -> None:
        """Count a request that begins."""
        self._requests.add(now)

    def begin_retry(self, now: float) -> bool:
        """Count a retry that begins; False if it must not."""
        policy = self.policy
        has_share = self._retries.count(now) + 1 <= policy.share * (self._requests.count(now) + 1)
        if not has_share and self._lately.count(now) >= policy.least:
            return False
        for counter in (self._requests, self._retries, self._lately):
            counter.add(now)
        return True


class _Recent:
    """Counts what has happened within a time."""

    __slots__ = ("_counts", "_part", "_part_s", "_sum")

    def __init__(self, interval_s: float) -> None:
        self._part_s = interval_s / _PARTS
        self._part = 0
        """Number of the present part, from any beginning."""
        self._counts = [0] * (_PARTS + 1)
        self._sum = 0

    def add(self, now: float) -> None:
        self._move(now)
        self._counts[self._part % len(self._counts)] += 1
        self._sum += 1

    def count(self, now: float) -> int:
        self._move(now)
        return self._sum

    def _move(self, now: float) -> None:
        part = int(now / self._part_s)
        if part == self._part:
            return
        counts = self._counts
        for gone in range(min(part - self._part, len(counts))):
            at = (self._part + 1 + gone) % len(counts)
            self._sum -= counts[at]
            counts[at] = 0
        self._part = part
