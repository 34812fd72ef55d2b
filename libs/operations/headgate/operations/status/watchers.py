"""What watchers announce of themselves and of their API servers, as problems of `headgate status`.

They announce it over the bus, so it is seen from anywhere, and without a way to their admin sites.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from headgate.common.deltas import ClusterAnnouncement
from headgate.common.problems import Problem, Severity
from headgate.operations.wording import age, count_of

SILENT_AFTER = timedelta(seconds=90)
"""Three times what is between two announcements of a watcher."""
LATE_AFTER = timedelta(seconds=60)
"""A change that is not served after this is a problem; on a machine that is not starved it takes a second."""


def watcher_problems(
    announcements: Sequence[ClusterAnnouncement], now: datetime | None = None
) -> Iterator[tuple[str, Problem]]:
    """Yield what is wrong with each cluster as its watcher said last, or with the watcher itself."""
    now = now or datetime.now(UTC)
    for one in sorted(announcements, key=lambda one: one.cluster):
        for reason, severity, message in _faults(one, now):
            yield f"cluster {one.cluster}", Problem(severity=severity, reason=reason, message=message)


def _faults(said: ClusterAnnouncement, now: datetime) -> Iterator[tuple[str, Severity, str]]:
    if now - said.announced_at > SILENT_AFTER:
        message = (
            f"watcher {said.instance} was heard {age(said.announced_at, now)} ago and no other since: no change of the "
            "cluster is served; start a watcher, or look at its log"
        )
        yield "WatcherSilent", Severity.ERROR, message
        return
    if said.away_since is not None:
        reasons = "".join(f": {trouble}" for trouble in said.troubles[:1])
        message = f"its API server has not answered for {age(said.away_since, now)}{reasons}"
        yield "ApiServerAway", Severity.ERROR, message
    else:
        for trouble in said.troubles:
            yield "ApiServerTrouble", Severity.WARNING, trouble
    since = said.unpublished_since
    if since is not None and said.announced_at - since > LATE_AFTER:
        message = (
            f"{count_of(said.unpublished, 'change')} seen by watcher {said.instance} not published, the oldest since "
            f"{age(since, now)}; look at its log, and whether it or NATS has too little CPU"
        )
        yield "NotPublished", Severity.ERROR, message
