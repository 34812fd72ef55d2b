"""What is counted of requests, by route and by endpoint: plain numbers that the hot path adds to."""

from collections.abc import Iterator
from typing import Final

from headgate.common.traffic import BOUNDS_S, Counts

# The annotations are for mypyc, which would take these for structs and make tuples of them at each use.
_BUCKETS: Final[tuple[float, ...]] = BOUNDS_S
LATENCY_BOUNDS_S: Final[tuple[float, ...]] = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25),
    *(0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
"""Upper bounds of the buckets that metrics show: some of those that are counted in."""
_ENDS: Final[tuple[int, ...]] = (*(BOUNDS_S.index(bound) + 1 for bound in LATENCY_BOUNDS_S), len(BOUNDS_S) + 1)


def latency_bucket(seconds: float) -> int:
    """Give the place of a duration in `Traffic.buckets`: as `bisect_left`, which is slower than compiled code."""
    low, high = 0, len(_BUCKETS)
    while low < high:
        middle = (low + high) // 2
        if _BUCKETS[middle] < seconds:
            low = middle + 1
        else:
            high = middle
    return low


class Traffic:
    """What is counted of a route's requests to one upstream, or of an endpoint."""

    __slots__ = (
        "_news",
        "_told",
        "buckets",
        "errors",
        "is_told",
        "ok",
        "received",
        "retries",
        "seconds",
        "sent",
        "statuses",
    )

    def __init__(self) -> None:
        self.ok = 0
        """Answers with 200, apart from the others as nearly all are that."""
        self.statuses: dict[int, int] = {}
        """All other answers; 0 are those that were never given."""
        self.errors: dict[str, int] = {}
        """Failed attempts by kind."""
        self.retries = 0
        self.received = 0
        """Bytes of requests' bodies, and what clients sent through tunnels."""
        self.sent = 0
        """Bytes of answers' bodies, and what clients got through tunnels."""
        self.seconds = 0.0
        self.buckets = [0] * (len(_BUCKETS) + 1)
        """Requests by duration; each bucket holds those up to its bound and above the one before."""
        self._news: list[Traffic] | None = None
        self.is_told = False
        """There was no request since summaries have told of it, and they tell of it at all."""
        self._told: Traffic | None = None
        """What summaries have told; None: nothing yet."""

    def count(self, status: int, bucket: int, seconds: float, received: int, sent: int) -> None:
        """Count one request that is over."""
        if status == 200:
            self.ok += 1
        else:
            self.count_status(status)
        self.buckets[bucket] += 1
        self.seconds += seconds
        self.received += received
        self.sent += sent
        if self.is_told:
            self._note_news()

    def tell_by(self, news: "list[Traffic]") -> None:
        """Have summaries tell of it: it goes into this list whenever there is something new, and they take it out."""
        self._news = news
        self.is_told = True

    def _note_news(self) -> None:
        self.is_told = False
        if self._news is not None:
            self._news.append(self)

    def take_news(self) -> Counts:
        """Return what was counted since this was asked last, or since it began."""
        told = self._told
        if told is None:
            told = self._told = Traffic()
        self.is_told = self._news is not None
        none, informed, well, moved, refused, failed = 0, 0, self.ok - told.ok, 0, 0, 0
        for status, count in self.statuses.items():
            new = count - told.statuses.get(status, 0)
            if not new:
                continue
            told.statuses[status] = count
            if status >= 500:
                failed += new
            elif status >= 400:
                refused += new
            elif status >= 300:
                moved += new
            elif status >= 200:
                well += new
            elif status >= 100:
                informed += new
            else:
                none += new
        durations: dict[int, int] = {}
        before = told.buckets
        for place, count in enumerate(self.buckets):
            if count != before[place]:
                durations[place] = count - before[place]
                before[place] = count
        received, sent, seconds = self.received - told.received, self.sent - told.sent, self.seconds - told.seconds
        told.ok, told.received, told.sent, told.seconds = self.ok, self.received, self.sent, self.seconds
        return Counts((none, informed, well, moved, refused, failed), received, sent, seconds, durations)

    def count_status(self, status: int) -> None:
        """Count an answer alone."""
        self.statuses[status] = self.statuses.get(status, 0) + 1

    def count_error(self, kind: str) -> None:
        """Count a failed attempt: `connect`, `closed`, `invalid` or `timeout`."""
        self.errors[kind] = self.errors.get(kind, 0) + 1

    def count_retry(self) -> None:
        """Count a request that is sent once more."""
        self.retries += 1

    def add(self, other: "Traffic") -> None:
        """Add what was counted elsewhere."""
        self.ok += other.ok
        self.retries += other.retries
        self.received += other.received
        self.sent += other.sent
        self.seconds += other.seconds
        for status, count in list(other.statuses.items()):
            self.statuses[status] = self.statuses.get(status, 0) + count
        for kind, count in list(other.errors.items()):
            self.errors[kind] = self.errors.get(kind, 0) + count
        self.buckets = [one + more for one, more in zip(self.buckets, other.buckets, strict=True)]

    def by_bound(self) -> Iterator[int]:
        """Yield the requests up to each of `LATENCY_BOUNDS_S` and above the one before, then the longer ones."""
        begin = 0
        for end in _ENDS:
            yield sum(self.buckets[begin:end])
            begin = end

    def without(self, part: "Traffic") -> "Traffic":
        """Return the answers, bytes and durations that are not those of a part."""
        rest = Traffic()
        rest.ok = self.ok - part.ok
        rest.received = self.received - part.received
        rest.sent = self.sent - part.sent
        rest.seconds = self.seconds - part.seconds
        for status, count in list(self.statuses.items()):
            if count != part.statuses.get(status, 0):
                rest.statuses[status] = count - part.statuses.get(status, 0)
        rest.buckets = [one - less for one, less in zip(self.buckets, part.buckets, strict=True)]
        return rest

    def by_status(self) -> dict[int, int]:
        """Return all answers by status."""
        counts = dict(self.statuses)
        if self.ok:
            counts[200] = self.ok
        return counts


class RouteTraffic(Traffic):
    """What is counted of a route's requests to one upstream; the upstream is empty while none was chosen."""

    __slots__ = ("_recent_requests", "_recent_seconds", "others", "route", "upstream")

    def __init__(self, route: str, upstream: str, others: "RouteTraffic | None" = None) -> None:
        super().__init__()
        self.route = route
        self.upstream = upstream
        self.others = others
        """Where its requests are shown, together with those of others; None: by themselves."""
        self._recent_requests = 0
        self._recent_seconds = 0.0

    def count(self, status: int, bucket: int, seconds: float, received: int, sent: int) -> None:
        """Count one request that is over."""
        super().count(status, bucket, seconds, received, sent)
        if self.others is not None:
            self.others.count(status, bucket, seconds, received, sent)

    def count_error(self, kind: str) -> None:
        """Count a failed attempt."""
        super().count_error(kind)
        if self.others is not None:
            self.others.count_error(kind)

    def count_retry(self) -> None:
        """Count a request that is sent once more."""
        super().count_retry()
        if self.others is not None:
            self.others.count_retry()

    def take_recent(self) -> tuple[int, float]:
        """Return the requests, and the seconds that they took, since this was asked last."""
        requests, seconds = sum(self.buckets), self.seconds
        recent = requests - self._recent_requests, seconds - self._recent_seconds
        self._recent_requests, self._recent_seconds = requests, seconds
        return recent

    def show_with(self, others: "RouteTraffic | None") -> None:
        """Show further requests together with others, or by themselves from zero: the others have what was before."""
        self.others = others
        if others is None:
            self.ok = self.retries = self.received = self.sent = 0
            self.seconds = 0.0
            self.statuses, self.errors = {}, {}
            self.buckets = [0] * (len(_BUCKETS) + 1)
            self._told = None
            self._recent_requests, self._recent_seconds = 0, 0.0


class EndpointTraffic(Traffic):
    """What is counted of an endpoint, over the connections of one pool."""

    __slots__ = ("endpoint",)

    def __init__(self, endpoint: str) -> None:
        super().__init__()
        self.endpoint = endpoint
        """`address:port`."""
