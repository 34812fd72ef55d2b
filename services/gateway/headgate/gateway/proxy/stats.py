"""Counters of the hot path: plain numbers, turned into metrics only when somebody asks (`traffic_metrics`).

`prometheus_client` counters take a lock and a dictionary look-up per increment. Here a route and an endpoint hold the
object in which they are counted, and an increment is one store. One process has one `ProxyStats`, updated on its event
loop only; other threads may read.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from headgate.gateway.proxy.exchange.buffers import body_budget
from headgate.gateway.proxy.traffic import LATENCY_BOUNDS_S, RouteTraffic, Traffic

if TYPE_CHECKING:
    from headgate.gateway.proxy.consumer_traffic import ConsumerTraffic
    from headgate.gateway.proxy.reports import LogRecord
    from headgate.gateway.proxy.seam import RouteTarget

MAX_SERIES: Final = 2000
"""Pairs of route and upstream that are counted apart; each has some 25 time series."""
OTHER_ROUTES: Final = "other"
_REVIEWED_AT_ONCE: Final = 200
_WORTH_A_CHANGE: Final = 1.5
"""How much more a route has to weigh than one that is shown, so that two equal ones do not take turns."""


class Tally:
    """Sums of what is counted in several places."""

    __slots__ = ("buckets", "errors")

    def __init__(self) -> None:
        self.buckets = [0] * (len(LATENCY_BOUNDS_S) + 1)
        self.errors = 0
        """Answers of 500 and above, and 404 to requests that no route took."""

    def add(self, traffic: Traffic, *, is_routed: bool) -> None:
        """Add what was counted there."""
        buckets = self.buckets
        for place, count in enumerate(traffic.by_bound()):
            buckets[place] += count
        for status, count in traffic.statuses.items():
            if status >= 500 or (status == 404 and not is_routed):
                self.errors += count


class ProxyStats:
    """Counters of one proxy.

    Args:
        max_series: pairs of route and upstream that are shown apart: those with the most requests and the most time
            spent. The others are shown together, as `other`.
        consumers: where requests are counted by consumer too; None: nowhere.
    """

    def __init__(self, max_series: int = MAX_SERIES, consumers: "ConsumerTraffic | None" = None) -> None:
        self._max_series = max_series
        self.consumers = consumers
        self.connections = 0
        """Client connections accepted since the start."""
        self.requests = 0
        """Requests finished since the start."""
        self.retries = 0
        self.routes: dict[tuple[str, str], RouteTraffic] = {}
        """By route and upstream, those included that are shown together."""
        self.folded = 0
        """How many of them are shown together."""
        self.tap: Callable[[LogRecord, bytes], None] | None = None
        """Gets finished requests, and their hosts, while somebody wishes to see them."""
        self.failures: Callable[[LogRecord, bytes], None] | None = None
        """Gets finished requests, and their hosts, that were answered with 500 and above, or refused by the gateway."""
        self.news: list[Traffic] = []
        """Traffic of routes that summaries have to tell of."""
        self.unrouted = RouteTraffic("", "")
        """Requests that no route took."""
        self.unrouted.tell_by(self.news)
        self.unrouted_apart: dict[bytes, RouteTraffic] = {}
        """The same of hosts that are watched."""
        self._watched: frozenset[str] = frozenset()
        self._other = RouteTraffic(OTHER_ROUTES, "")
        self.refusals: dict[tuple[int, str], int] = {}
        self.refused_connections: dict[str, int] = {}
        self.client_errors: dict[str, int] = {}
        """Connections ended for what clients did to them, by kind."""
        self.upstream_errors: dict[str, int] = {}
        self.buffers = body_budget(0)
        """Of the proxy whose counters these are."""
        self._open_connections: Callable[[], int] = lambda: 0

    def watch_connections(self, count: Callable[[], int]) -> None:
        """Take the number of open connections from there."""
        self._open_connections = count

    @property
    def open_connections(self) -> int:
        """Client connections that are open now."""
        return self._open_connections()

    def of_route(self, route: "RouteTarget", upstream: str) -> RouteTraffic:
        """Find where a route's requests to an upstream are counted; empty: the only one that it has."""
        traffic = route.traffic
        if traffic is None:
            label = route.upstream_label
            traffic = self._find(route.name, "" if "," in label else label)
            route.traffic = traffic
        if upstream and upstream != traffic.upstream:
            return self._find(traffic.route, upstream)
        return traffic

    def _find(self, route: str, upstream: str) -> RouteTraffic:
        key = (route, upstream)
        traffic = self.routes.get(key)
        if traffic is None:
            is_full = len(self.routes) - self.folded >= self._max_series
            is_folded = is_full and not self._is_watched(route)
            self.folded += is_folded
            traffic = self.routes[key] = RouteTraffic(route, upstream, self._other if is_folded else None)
            traffic.tell_by(self.news)
        return traffic

    def _is_watched(self, route: str) -> bool:
        return route.partition("|")[0] in self._watched

    def series(self) -> list[RouteTraffic]:
        """Return all that is shown by route and upstream."""
        return [self.unrouted, self._other, *(traffic for traffic in self.routes.values() if traffic.others is None)]

    def review(self) -> Iterator[None]:
        """Show those routes apart that were asked most, or took most time, since the last review; in short steps."""
        if self.consumers is not None:
            self.consumers.review()
            yield
        recent: list[tuple[RouteTraffic, int, float]] = []
        for number, traffic in enumerate(list(self.routes.values()) if self.folded else []):
            requests, seconds = traffic.take_recent()
            recent.append((traffic, requests, seconds))
            if number % _REVIEWED_AT_ONCE == 0:
                yield
        all_requests = sum([requests for _, requests, _ in recent]) or 1
        all_seconds = sum([seconds for _, _, seconds in recent]) or 1.0
        weighed = [(requests / all_requests + seconds / all_seconds, traffic) for traffic, requests, seconds in recent]
        weighed.sort(key=lambda each: each[0])
        shown = [each for each in weighed if each[1].others is None and not self._is_watched(each[1].route)]
        folded = [each for each in reversed(weighed) if each[1].others is not None]
        for (low, least), (high, most) in zip(shown, folded, strict=False):
            if high <= low * _WORTH_A_CHANGE:
                break
            least.show_with(self._other)
            if self.consumers is not None:
                self.consumers.fold(least)
            most.show_with(None)

    def unrouted_of(self, host: bytes) -> RouteTraffic:
        """Find where requests for a host are counted that no route took."""
        return self.unrouted_apart.get(host, self.unrouted) if self.unrouted_apart else self.unrouted

    def watch(self, hosts: Collection[str]) -> None:
        """Count the requests for virtual hosts with these keys apart, however many routes there are."""
        self._watched = frozenset(hosts)
        # A key of a virtual host may have its listeners behind the host.
        self.unrouted_apart = {host.partition("@")[0].encode(): self._find(f"{host}|", "") for host in hosts}
        for traffic in self.routes.values():
            if traffic.others is not None and self._is_watched(traffic.route):
                traffic.show_with(None)
                self.folded -= 1

    def tally(self, hosts: Collection[str], upstreams: Collection[str]) -> tuple[Tally, Tally]:
        """Sum up the requests for these hosts and upstreams, and all requests."""
        some, everything = Tally(), Tally()
        for traffic in self.series():
            host, _, route = traffic.route.partition("|")
            is_routed = bool(route) or traffic is self._other
            everything.add(traffic, is_routed=is_routed)
            if host in hosts or traffic.upstream in upstreams:
                some.add(traffic, is_routed=is_routed)
        return some, everything

    def forget(self, gone: Iterable[tuple[str, str]]) -> None:
        """Drop what is counted of routes that are gone, by route and upstream."""
        for key in gone:
            self.folded -= self.routes.pop(key).others is not None
            if self.consumers is not None:
                self.consumers.forget(key)

    def refused(self, status: int, routed: bool) -> None:
        """Count one answer of our own, or one that we cut off."""
        key = (status, "route" if routed else "request")
        self.refusals[key] = self.refusals.get(key, 0) + 1

    def refused_connection(self, limit: str) -> None:
        """Count a connection that was closed as it came: `all` or `client`, whose limit was reached."""
        self.refused_connections[limit] = self.refused_connections.get(limit, 0) + 1

    def client_error(self, kind: str) -> None:
        """Count a connection that was ended for what its client did."""
        self.client_errors[kind] = self.client_errors.get(kind, 0) + 1

    def upstream_error(self, kind: str) -> None:
        """Count one failure of an upstream: `connect`, `closed`, `invalid` or `timeout`."""
        self.upstream_errors[kind] = self.upstream_errors.get(kind, 0) + 1
