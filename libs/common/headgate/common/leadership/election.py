"""When a lease may be taken, renewed and relied on: the rules of client-go's leader election; pure, time is passed in.

Clocks of two machines are never compared. A process that wants a lease measures on its own clock for how long it has
stood unchanged; the one that has it relies on it only until some time after it *began* to write the last renewal, and
that is less. So two believe that they hold it only if a clock runs wrong or a process stands still between looking at
its clock and acting: a lease says who should do the work, it does not keep two from doing it. What must not happen
twice is guarded where it is written, by a compare-and-set.

Three rules are our own. A holder that is slow, as on a machine without CPU to spare, writes a longer duration into its
lease and relies on it for longer in proportion (`Pace`): a lease that is lost to one's own slowness costs those who
are slow the most work. A process that is started again finds a lease of its own name, and need not sit out all of its
duration: a namesake that lived would renew it. And one that is not ready to do the work leaves a free lease for a while
to one that is.
"""

from dataclasses import dataclass
from datetime import datetime

from headgate.common.leadership.leases import Lease, StoredLease

JITTER = 0.2
"""Waits between two attempts are up to this much longer, so that candidates do not act in step (client-go)."""
NAMESAKE_RENEWALS = 3
"""A lease of our name that misses so many renewals is one of our own from before a restart."""
LONGEST = 5.0
"""Times of a lease are stretched up to this much where things take long."""
EASE = 0.97
"""What is left of it after a renewal that came in time: some 50 of them until all is as planned."""
IMPATIENCE = 1.5
_NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class Timing:
    """How fast a lease changes hands, in seconds."""

    duration_s: float
    """No process takes a lease that changed within this time."""
    renew_deadline_s: float
    """A holder that could not renew for this long stops working."""
    retry_s: float
    """Between two attempts to take or renew."""

    def __post_init__(self) -> None:
        """Check that a holder stops before another begins, and may miss a renewal before it stops.

        Raises:
            ValueError: says which number is too small.
        """
        if self.retry_s <= 0:
            raise ValueError(f"lease_retry_s must be greater than 0, and is {self.retry_s:g}")
        if self.renew_deadline_s <= self.retry_s * (1 + JITTER):
            raise ValueError(
                f"lease_renew_deadline_s ({self.renew_deadline_s:g}) must be greater than {1 + JITTER} times "
                f"lease_retry_s ({self.retry_s:g})"
            )
        if self.duration_s <= self.renew_deadline_s:
            raise ValueError(
                f"lease_duration_s ({self.duration_s:g}) must be greater than lease_renew_deadline_s "
                f"({self.renew_deadline_s:g})"
            )


class Pace:
    """How much longer than planned things take in this process and on the way to the lease; 1 where all goes well."""

    def __init__(self, timing: Timing) -> None:
        """Expect things to go as planned."""
        self._tolerated_s = max(timing.retry_s * (1 + JITTER), timing.renew_deadline_s / 3)
        self.stretch = 1.0
        """Of the lease's times."""
        self.patience = 1.0
        """Of one attempt."""

    def renewed_after(self, gap_s: float) -> None:
        """Take in how long after the one before a renewal began."""
        self.stretch = min(LONGEST, max(1.0, gap_s / self._tolerated_s, self.stretch * EASE))

    def lost(self) -> None:
        """Take in that the lease went to another one although this process works."""
        self.stretch = min(LONGEST, self.stretch * IMPATIENCE)

    def timed_out(self) -> None:
        """Take in that an attempt was not answered in time."""
        self.patience = min(LONGEST, self.patience * IMPATIENCE)

    def answered(self) -> None:
        """Take in that one was."""
        self.patience = 1.0


class Election:
    """What one process knows of one lease. Times named `now` are seconds of one monotonic clock."""

    def __init__(self, identity: str, timing: Timing) -> None:
        """Know nothing yet; `identity` is the name that the lease is held under."""
        self._identity = identity
        self._timing = timing
        self._stored: StoredLease | None = None
        self._seen_at = _NEVER
        self._bid_at: datetime | None = None
        self._held_until = _NEVER
        self._renewed_at: float | None = None
        """When the last renewal began, unless the board was away since."""
        self._bid_stretch = 1.0
        self.pace = Pace(timing)

    @property
    def stored(self) -> StoredLease | None:
        """The lease as it was seen last; None: there is none."""
        return self._stored

    @property
    def is_ours(self) -> bool:
        """Whether the lease as it was seen last was written by this very process, for what that is worth by now."""
        lease = self._stored.lease if self._stored else None
        return lease is not None and (lease.holder, lease.acquired_at) == (self._identity, self._bid_at)

    def is_leader(self, now: float) -> bool:
        """Whether this process may rely on the lease; ask before each thing that it does as the leader."""
        return now < self._held_until

    def observe(self, stored: StoredLease | None, now: float) -> None:
        """Take in the lease as just read."""
        was_ours = self.is_ours
        if stored != self._stored:
            self._stored, self._seen_at = stored, now
        if not self.is_ours:
            self._held_until, self._renewed_at = _NEVER, None
            if was_ours and stored is not None:
                self.pace.lost()

    def board_was_away(self) -> None:
        """Take in that a renewal failed for no reason of ours: the time until the next one tells nothing of us."""
        self._renewed_at = None

    def bid(self, now: float, wall: datetime, *, is_ready: bool) -> Lease | None:
        """Return what to write to take or to renew the lease; None: it is somebody else's for now.

        Args:
            now: monotonic.
            wall: what to call the time in the lease.
            is_ready: whether the work could begin at once.
        """
        if not self.is_ours:
            if now < self.free_at(is_ready=is_ready):
                return None
            self._bid_at = wall
        elif self._renewed_at is not None:
            self.pace.renewed_after(now - self._renewed_at)
        self._bid_stretch = self.pace.stretch
        before = self._stored.lease if self._stored else None
        return Lease(
            holder=self._identity,
            duration_s=self._timing.duration_s * self._bid_stretch,
            acquired_at=self._bid_at or wall,
            renewed_at=wall,
            transitions=0 if before is None else before.transitions + (not self.is_ours),
        )

    def free_at(self, *, is_ready: bool) -> float:
        """Return from when on the lease may be taken, provided that it is not renewed before."""
        if self._stored is None:
            return _NEVER
        lease = self._stored.lease
        silence_s = lease.duration_s if lease.holder else 0.0
        if lease.holder == self._identity:
            silence_s = min(silence_s, NAMESAKE_RENEWALS * self._timing.retry_s)
        return self._seen_at + silence_s + (0.0 if is_ready else self._timing.duration_s)

    def won(self, stored: StoredLease, began_at: float, now: float) -> None:
        """Take in that a bid was written; `began_at` is when writing began."""
        self.observe(stored, now)
        self._held_until = began_at + self._timing.renew_deadline_s * self._bid_stretch
        self._renewed_at = began_at

    def resign(self, wall: datetime) -> Lease | None:
        """Return what to write to give the lease back; None: it is not ours. It is not relied on from now on."""
        self._held_until, self._renewed_at = _NEVER, None
        if not self.is_ours or self._stored is None:
            return None
        return self._stored.lease.model_copy(update={"holder": "", "renewed_at": wall})

    def attempt_s(self, now: float) -> float:
        """Return for how long an attempt may take: longer after some that took too long, never past the lease."""
        planned_s = self._timing.renew_deadline_s / 2
        patient_s = planned_s * self.pace.patience
        return min(patient_s, max(planned_s, self._held_until - now)) if self.is_leader(now) else patient_s

    def next_look_at(self, now: float, jitter: float, *, is_ready: bool) -> float:
        """Return when to try again: after the retry period, or when the lease becomes free or is lost before that.

        Args:
            now: monotonic.
            jitter: random, from 0 to 1.
            is_ready: as for `bid`.
        """
        if self.is_leader(now):
            return min(now + self._timing.retry_s, self._held_until)
        regular = now + self._timing.retry_s * (1 + JITTER * jitter)
        free_at = self.free_at(is_ready=is_ready)
        return free_at if now < free_at < regular else regular
