"""What each gateway worker says of its traffic, every second, and how durations add up.

Nobody keeps a summary: whoever wants to see traffic listens, and adds up what all workers of a table say. Durations are
counted in buckets, ten to a factor of ten, so that those of several workers and seconds can be added, and a percentile
is right within a bucket's width.
"""

import zlib
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from headgate.common.deltas import escape_token
from headgate.common.errors import DecodeError

TRAFFIC_PREFIX: Final = "headgate.traffic"
TAP_PREFIX: Final = "headgate.tap"
INTERVAL_S: Final = 1.0
"""Between two summaries of a worker that has traffic or unfit endpoints. One that has neither says nothing."""
MAX_ROWS: Final = 500
"""Of routes, of endpoints, and of unfit endpoints in a summary."""
MAX_TAPPED: Final = 100
"""Finished requests in a summary."""
MAX_FAILED: Final = 20
"""Requests that failed in a summary, and as many that were refused, whoever asks."""
MAX_TAPS: Final = 16
"""That a worker heeds at once."""
TAP_S: Final = 5.0
"""For which a wish for requests is heeded; whoever goes on wishing says it again before."""
MAX_TAP_BYTES: Final = 8192
MAX_SUMMARY_BYTES: Final = 4 << 20
"""Of a summary that is unpacked; a reader takes no longer ones."""
_STEPS: Final = ("1", "1.25", "1.6", "2", "2.5", "3", "4", "5", "6", "8")
BOUNDS_S: Final = (*(float(f"{step}e{power}") for power in range(-4, 2) for step in _STEPS), 100.0)
"""Upper bounds of the buckets but for the last, which has none."""
CLASSES: Final = ("none", "1xx", "2xx", "3xx", "4xx", "5xx")
"""What `Counts.answers` has, in this order; `none` are requests that were given no answer."""


class Counts(msgspec.Struct, array_like=True, frozen=True):
    """Requests that were over within some time."""

    answers: tuple[int, int, int, int, int, int] = (0, 0, 0, 0, 0, 0)
    """By class of status, as `CLASSES`."""
    received: int = 0
    """Bytes of requests' bodies."""
    sent: int = 0
    """Bytes of answers' bodies."""
    seconds: float = 0.0
    """That all of them took together."""
    durations: dict[int, int] = {}
    """Requests by the place of their duration in `BOUNDS_S`; the place behind the last bound is for longer ones."""

    @property
    def requests(self) -> int:
        """All of them."""
        return sum(self.durations.values())


class RouteCounts(msgspec.Struct, array_like=True, frozen=True):
    """Requests that a route sent to an upstream."""

    route: str
    """`host|name`; empty for requests that no route took."""
    upstream: str
    """Empty while none was chosen."""
    counts: Counts


class EndpointCounts(msgspec.Struct, array_like=True, frozen=True):
    """Requests that an endpoint answered."""

    endpoint: str
    """`address:port`."""
    counts: Counts


class UnfitEndpoint(msgspec.Struct, array_like=True, frozen=True):
    """An endpoint that gets no requests, unless too few others are left."""

    upstream: str
    endpoint: str
    """`address:port`."""
    reason: str
    """`unhealthy`: active checks say so; `ejected`: requests to it failed."""
    since: float
    """Seconds since 1970."""
    until: float
    """When an ejection ends; 0: when checks succeed again."""
    error: str
    """Of the last check or request that failed."""


class Tap(msgspec.Struct, array_like=True, frozen=True):
    """A wish to see finished requests; what is empty selects all. Workers heed it for `TAP_S` after they heard it."""

    id: str
    host: str = ""
    """As clients wrote it, in lower case and without a port."""
    route: str = ""
    """Text within its name."""
    path: str = ""
    """With which paths begin."""
    statuses: tuple[int, ...] = ()
    """Codes, or the first digits of codes: 5 is 500 to 599."""
    client: str = ""
    """Address."""
    request_id: str = ""
    slower_than_s: float = 0.0
    share: float = 1.0
    """Of requests that are told, from 0 to 1, drawn at random."""


class Attempt(msgspec.Struct, array_like=True, frozen=True):
    """An attempt to have an endpoint answer a request, whose outcome was not passed on to the client."""

    endpoint: str
    """`address:port`; empty if none was chosen yet."""
    outcome: str
    """The status that it answered, or `connect`, `closed`, `invalid`, `timeout`."""
    after_s: float
    """When it ended, in seconds since the request began."""


class TappedRequest(msgspec.Struct, array_like=True, frozen=True):
    """A finished request that a tap asked for, or that failed or was refused."""

    taps: tuple[str, ...]
    """Ids of those that did."""
    at: float
    """Seconds since 1970, when it ended."""
    method: str
    host: str
    path: str
    """Without the query, which may hold credentials."""
    status: int
    seconds: float
    sent: int
    client: str
    request_id: str
    route: str
    upstream: str
    endpoint: str
    reason: str
    """Why the gateway answered by itself, or cut the answer off."""
    attempts: tuple[Attempt, ...] = ()
    """Those before the answer, and the last one if it failed; the first ones, if there were many."""
    scheme: str = "http"
    """As the client, or the trusted proxy before it, used it."""


class TrafficSummary(msgspec.Struct, array_like=True, frozen=True):
    """What one worker says."""

    table: str
    replica: str
    worker: int
    at: float
    """Seconds since 1970, when the time that it is about ended."""
    seconds: float
    """How long that was."""
    routes: tuple[RouteCounts, ...] = ()
    """Those with the most requests."""
    endpoints: tuple[EndpointCounts, ...] = ()
    others: Counts = Counts()
    """Requests of further routes, together."""
    folded: int = 0
    """How many routes these are."""
    unfit: tuple[UnfitEndpoint, ...] = ()
    """As this worker knows it; not all of them, if there are more than `MAX_ROWS`."""
    tapped: tuple[TappedRequest, ...] = ()
    """`MAX_TAPPED` at most."""
    untold: int = 0
    """Further requests that taps asked for."""
    failed: tuple[TappedRequest, ...] = ()
    """Requests that were answered with 500 and above, the last `MAX_FAILED`, and that the gateway refused, the first
    `MAX_FAILED`; no tap asked for them.
    """

    def encode(self) -> bytes:
        """Return the bytes that travel."""
        return zlib.compress(msgspec.msgpack.encode(self), 1)


def decode_summary(data: bytes) -> TrafficSummary:
    """Read what a worker said. Raises DecodeError."""
    try:
        unpacking = zlib.decompressobj()
        packed = unpacking.decompress(data, MAX_SUMMARY_BYTES)
        if not unpacking.eof:
            raise DecodeError("a summary of traffic is too long, or not whole")
        return msgspec.msgpack.decode(packed, type=TrafficSummary)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise DecodeError(f"a summary of traffic cannot be read: {error}") from error


def decode_tap(data: bytes) -> Tap:
    """Read a wish for requests. Raises DecodeError."""
    if len(data) > MAX_TAP_BYTES:
        raise DecodeError("a tap is too long")
    try:
        return msgspec.msgpack.decode(data, type=Tap)
    except msgspec.MsgspecError as error:
        raise DecodeError(f"a tap cannot be read: {error}") from error


def traffic_subject(table: str, replica: str, worker: int) -> str:
    """Subject on which a worker says it."""
    return f"{TRAFFIC_PREFIX}.{escape_token(table)}.{escape_token(replica)}.{worker}"


def endpoint_name(address: str, port: int) -> str:
    """Return what an endpoint is called in summaries and metrics: `10.0.0.1:80`, `[fd00::1]:80`."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def percentile(durations: Mapping[int, int], share: float) -> float:
    """Return the seconds within which a share of requests was over, evenly spread within a bucket; 0 of none."""
    wanted = share * sum(durations.values())
    passed = 0
    for place in sorted(durations):
        count = durations[place]
        if passed + count >= wanted > 0:
            low = BOUNDS_S[place - 1] if place else 0.0
            high = BOUNDS_S[place] if place < len(BOUNDS_S) else low
            return low + (high - low) * (wanted - passed) / count
        passed += count
    return 0.0


def added(all_counts: Iterable[Counts]) -> Counts:
    """Add counts up."""
    answers = [0] * len(CLASSES)
    received = sent = 0
    seconds = 0.0
    durations: dict[int, int] = {}
    for each in all_counts:
        for place, count in enumerate(each.answers):
            answers[place] += count
        received += each.received
        sent += each.sent
        seconds += each.seconds
        for place, count in each.durations.items():
            durations[place] = durations.get(place, 0) + count
    none, informed, well, moved, refused, failed = answers
    return Counts((none, informed, well, moved, refused, failed), received, sent, seconds, durations)
