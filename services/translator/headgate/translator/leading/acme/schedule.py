"""When a certificate is ordered: pure, the time is given."""

from collections import defaultdict, deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from headgate.common.acme import CertificateState, Failure, IssuedCertificate

LONGEST_PAUSE: Final = timedelta(days=1)
FAILURES: Final = 20
"""Of one namespace within an hour; then its orders wait."""
_HOUR: Final = timedelta(hours=1)
_LONGEST_REASON: Final = 500
Namespace = tuple[str, str]
"""A cluster and a namespace of it."""


def due_at(
    state: CertificateState | None, first_pause: timedelta, suggested: datetime | None = None
) -> datetime | None:
    """Return when a certificate is to be ordered; None: at once.

    `suggested` is when the authority wants it renewed; None: it has not said so.

    An order whose translator ended is begun again after the pause of a failure: it may have been the reason, and
    authorities count orders.
    """
    if state is None:
        return None
    times = [] if state.certificate is None else [suggested or renew_at(state.certificate)]
    if state.failure is not None:
        times.append(state.failure.retry_at)
    if state.ordered_at is not None:
        times.append(state.ordered_at + first_pause)
    return max(times, default=None)


def renew_at(certificate: IssuedCertificate) -> datetime:
    """Return when two thirds of a certificate's life are over."""
    return certificate.not_before + (certificate.not_after - certificate.not_before) * 2 / 3


def is_over(state: CertificateState, now: datetime) -> bool:
    """Whether nothing is lost by forgetting a certificate that no object wants: it has ended, or there is none.

    Failures, and orders that may be under way, are remembered for a day, so that an object that comes back does not
    begin again.
    """
    if state.certificate is not None:
        return state.certificate.not_after <= now
    times = [state.ordered_at, state.failure.retry_at if state.failure is not None else None]
    return all(time is None or time + LONGEST_PAUSE <= now for time in times)


def failed(
    state: CertificateState, reason: str, now: datetime, first_pause: timedelta, told: timedelta | None = None
) -> CertificateState:
    """Return the state after an order that failed.

    Args:
        state: before.
        reason: why.
        now: when.
        first_pause: after a first failure; each further one doubles it.
        told: how long the authority says to wait; counts if it is longer.
    """
    count = 1 + (state.failure.count if state.failure is not None else 0)
    pause = min(LONGEST_PAUSE, first_pause * 2 ** min(count - 1, 20))
    retry_at = now + max(pause, told or timedelta())
    failure = Failure(count=count, reason=reason[:_LONGEST_REASON], at=now, retry_at=retry_at)
    return state.model_copy(update={"ordered_at": None, "challenges": (), "failure": failure})


class FailureBudget:
    """Counts orders that failed, by namespace. Authorities bound what an account may order; the names of one namespace
    that do not lead here must not use that up for all others.
    """

    def __init__(self) -> None:
        self._failed: defaultdict[Namespace, deque[datetime]] = defaultdict(lambda: deque(maxlen=FAILURES))

    def note(self, namespaces: Iterable[Namespace], now: datetime) -> None:
        """Count a failure."""
        for namespace in namespaces:
            self._failed[namespace].append(now)

    def is_spent(self, namespaces: Iterable[Namespace], now: datetime) -> bool:
        """Whether all the namespaces that want a certificate have to wait."""
        return all(self._waits(namespace, now) for namespace in namespaces)

    def _waits(self, namespace: Namespace, now: datetime) -> bool:
        times = self._failed.get(namespace)
        return times is not None and len(times) == FAILURES and times[0] > now - _HOUR
