"""The endpoints of a table, with what gateways say of those that get no requests."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from headgate.common.table import TableEntry, Upstream
from headgate.common.table.upstream import Endpoint
from headgate.common.traffic import TrafficSummary, UnfitEndpoint, endpoint_name


class EndpointLine(NamedTuple):
    """An endpoint of an upstream."""

    upstream: str
    endpoint: str
    """`address:port`."""
    state: str
    """`ready`, `draining`, `not ready`, or, as gateways say, `unhealthy` or `ejected`."""
    since: float = 0.0
    """Seconds since 1970; 0: not known."""
    until: float = 0.0
    """When an ejection ends; 0: nothing says so."""
    error: str = ""
    """Of the last check or request that failed, as the worker said who saw it first."""
    workers: int = 0
    """Of gateways, that keep it from requests."""
    cluster: str = ""
    zone: str = ""

    @property
    def is_fit(self) -> bool:
        """Whether it gets requests from all gateways."""
        return self.state == "ready"


def lines_of(entries: Iterable[TableEntry], told: Iterable[TrafficSummary]) -> list[EndpointLine]:
    """Return the endpoints of upstreams, sorted by upstream; of each worker the last summary counts.

    What gateways know under another address, as of a name that they resolve, has a line of its own.
    """
    unfit: dict[tuple[str, str], list[UnfitEndpoint]] = {}
    last = {(summary.replica, summary.worker): summary for summary in sorted(told, key=lambda each: each.at)}
    for summary in last.values():
        for each in summary.unfit:
            unfit.setdefault((each.upstream, each.endpoint), []).append(each)
    upstreams = sorted((entry for entry in entries if isinstance(entry, Upstream)), key=lambda each: each.key)
    lines = [line for upstream in upstreams for line in _lines(upstream, unfit)]
    named = {line.upstream for line in lines}
    others = [_told(*key, said) for key, said in sorted(unfit.items()) if key[0] in named]
    return sorted([*lines, *others], key=lambda line: line.upstream)


def _lines(upstream: Upstream, unfit: dict[tuple[str, str], list[UnfitEndpoint]]) -> Iterator[EndpointLine]:
    for endpoint in upstream.endpoints:
        label = endpoint_name(endpoint.address, endpoint.port)
        said = unfit.pop((upstream.key, label), [])
        line = _told(upstream.key, label, said) if said else EndpointLine(upstream.key, label, _state(endpoint))
        yield line._replace(cluster=endpoint.cluster, zone=endpoint.zone)


def _told(upstream: str, endpoint: str, said: Sequence[UnfitEndpoint]) -> EndpointLine:
    first = min(said, key=lambda each: each.since)
    return EndpointLine(
        upstream,
        endpoint,
        first.reason,
        since=first.since,
        until=max(each.until for each in said),
        error=first.error,
        workers=len(said),
    )


def _state(endpoint: Endpoint) -> str:
    if endpoint.ready and not endpoint.terminating:
        return "ready"
    return "draining" if endpoint.serving else "not ready"
