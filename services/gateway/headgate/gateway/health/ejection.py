"""Passive ejection: an endpoint that fails requests is left out for a while. Pure; time is passed in.

The model is Envoy's outlier detection by consecutive errors (`consecutive_5xx`, `consecutive_local_origin_failure`,
`base_ejection_time`, `max_ejection_percent`), and with `window_s` nginx's `max_fails` and `fail_timeout`. An endpoint
without errors costs one dictionary look-up per request that is reported.
"""

from collections import deque
from collections.abc import Collection, Hashable
from typing import Final, Generic, Literal, NamedTuple, TypeVar

from headgate.common.table import Ejection

LocalError = Literal["connect", "reset", "timeout"]
"""What went wrong without an answer."""
Outcome = int | LocalError
"""Status code of an answer, or why there was none."""
CONNECTED: Final[Outcome] = 200
"""A stream has its connection, or a datagram its answer: all that is known of how a stream goes, as in Envoy."""

SlotT = TypeVar("SlotT", bound=Hashable)
_NEVER: Final = float("-inf")


class Failures(NamedTuple):
    """The failed requests to one endpoint."""

    number: int
    last: Outcome
    at: float
    """When the last one failed."""


class _ErrorCount:
    """Errors of one kind, in a row or within a window of seconds."""

    __slots__ = ("_in_row", "_times")

    def __init__(self) -> None:
        self._in_row = 0
        self._times: deque[float] = deque()

    def add(self, now: float, threshold: int, window_s: float | None) -> bool:
        """Count one error; True if there are as many as the threshold."""
        self._in_row += 1
        if window_s is None:
            self._times.clear()
            return self._in_row >= threshold
        times = self._times
        times.append(now)
        while len(times) > threshold or times[0] < now - window_s:
            times.popleft()
        return len(times) >= threshold

    def end_row(self) -> None:
        self._in_row = 0

    def clear(self) -> None:
        self._in_row = 0
        self._times.clear()


class _Record:
    """What is known of an endpoint that has failed before."""

    __slots__ = ("errors", "failed_at", "failures", "last", "local_errors", "returned_at", "times_out")

    def __init__(self) -> None:
        self.errors = _ErrorCount()
        self.local_errors = _ErrorCount()
        self.times_out = 0
        self.returned_at = _NEVER
        self.failures = 0
        """Since it was first in use."""
        self.last: Outcome | None = None
        """Of the last request that failed."""
        self.failed_at = _NEVER


class Ejector(Generic[SlotT]):
    """The ejections of one upstream.

    Args:
        policy: thresholds and times; may be replaced at any time, and does not shorten ejections under way.
    """

    __slots__ = ("_members", "_records", "ejected_until", "policy")

    def __init__(self, policy: Ejection) -> None:
        self.policy = policy
        self.ejected_until: dict[SlotT, float] = {}
        """Who is out, and when it comes back."""
        self._records: dict[SlotT, _Record] = {}
        self._members: Collection[SlotT] = frozenset()

    def set_members(self, slots: Collection[SlotT]) -> None:
        """Take these for the upstream's endpoints, and forget all others; what is known of those that stay is kept."""
        self._members = frozenset(slots)
        for known in (self._records, self.ejected_until):
            for slot in [slot for slot in known if slot not in self._members]:
                del known[slot]

    def report(self, slot: SlotT, outcome: Outcome, now: float) -> bool:
        """Learn how a request went; True if the endpoint is ejected for it, for the time in `ejected_until`."""
        policy = self.policy
        is_local = isinstance(outcome, str)
        if not is_local and outcome not in policy.statuses:
            record = self._records.get(slot)
            if record is not None:
                record.errors.end_row()
                record.local_errors.end_row()
            return False
        if slot not in self._members or slot in self.ejected_until:
            return False
        record = self._records.get(slot)
        if record is None:
            record = self._records[slot] = _Record()
        record.failures += 1
        record.last, record.failed_at = outcome, now
        if is_local and policy.consecutive_local_errors is not None:
            count, threshold = record.local_errors, policy.consecutive_local_errors
        elif policy.consecutive_errors is not None:
            count, threshold = record.errors, policy.consecutive_errors
            if not is_local:
                record.local_errors.end_row()
        else:
            return False
        return count.add(now, threshold, policy.window_s) and self._eject(slot, record, now)

    def _eject(self, slot: SlotT, record: _Record, now: float) -> bool:
        policy, total = self.policy, len(self._members)
        if total < 2 or len(self.ejected_until) >= max(1, int(policy.max_share * total)):
            return False
        rested = max(0, record.times_out - int(min((now - record.returned_at) / policy.base_s, record.times_out)))
        record.times_out = rested + 1
        length_s = min(policy.base_s * record.times_out, max(policy.base_s, policy.max_s))
        record.returned_at = self.ejected_until[slot] = now + length_s
        record.errors.clear()
        record.local_errors.clear()
        return True

    def failures(self) -> dict[SlotT, Failures]:
        """Return what is known of the endpoints that failed requests."""
        return {
            slot: Failures(record.failures, record.last, record.failed_at)
            for slot, record in self._records.items()
            if record.last is not None
        }

    @property
    def next_return(self) -> float | None:
        """When the first of the ejected comes back; None if nobody is out."""
        return min(self.ejected_until.values(), default=None)

    def take_returned(self, now: float) -> list[SlotT]:
        """End the ejections whose time is over, and return whose."""
        returned = [slot for slot, until in self.ejected_until.items() if until <= now]
        for slot in returned:
            del self.ejected_until[slot]
        return returned
