"""Requests counted by the consumer that a plugin recognised, beside the counts of their routes.

Only metrics under the names of Apache APISIX have consumers, so only with these is anything counted here. The end of a
request's plugins counts, not the end of every request: a route without plugins costs nothing.
"""

from typing import Final

from headgate.gateway.proxy.traffic import RouteTraffic, Traffic

OTHER_CONSUMERS: Final = "other"


class _Consumer(Traffic):
    """One consumer's requests."""

    __slots__ = ("reviewed",)

    def __init__(self) -> None:
        super().__init__()
        self.reviewed = 0
        """How many requests there were at the last review."""


class _Consumers:
    """The consumers of a route's requests to one upstream."""

    __slots__ = ("all", "other", "shown", "unrecognised_s")

    def __init__(self) -> None:
        self.all = Traffic()
        self.other = Traffic()
        """Those for whom there was no room."""
        self.shown: dict[str, _Consumer] = {}
        self.unrecognised_s = 0.0
        """Seconds of requests without a consumer, as last shown: a difference of floats might fall."""


class ConsumerTraffic:
    """Counts of all consumers.

    Args:
        max_series: triples of route, upstream and consumer that are shown apart. Further consumers of a route and
            upstream are shown together, as `other`.
    """

    def __init__(self, max_series: int) -> None:
        self._max_series = max_series
        self._routes: dict[tuple[str, str], _Consumers] = {}
        self._shown = 0

    def count(
        self, of: RouteTraffic, consumer: str, status: int, bucket: int, seconds: float, received: int, sent: int
    ) -> None:
        """Count one request that is over; of routes that are shown together no consumers are counted."""
        if of.others is not None:
            return
        consumers = self._routes.get((of.route, of.upstream))
        if consumers is None:
            consumers = self._routes[of.route, of.upstream] = _Consumers()
        consumers.all.count(status, bucket, seconds, received, sent)
        self._find(consumers, consumer).count(status, bucket, seconds, received, sent)

    def _find(self, consumers: _Consumers, name: str) -> Traffic:
        found = consumers.shown.get(name)
        if found is None:
            if self._shown >= self._max_series or name == OTHER_CONSUMERS:
                return consumers.other
            self._shown += 1
            found = consumers.shown[name] = _Consumer()
        return found

    def rows(self, of: RouteTraffic) -> list[tuple[str, Traffic]]:
        """Return what was counted of a route and upstream by consumer; the empty one is first."""
        consumers = self._routes.get((of.route, of.upstream))
        if consumers is None:
            return [("", of)]
        unrecognised = of.without(consumers.all)
        unrecognised.seconds = consumers.unrecognised_s = max(consumers.unrecognised_s, unrecognised.seconds)
        return [("", unrecognised), *list(consumers.shown.items()), (OTHER_CONSUMERS, consumers.other)]

    def review(self) -> None:
        """Make room, where there is none, of consumers without a request since the last review."""
        is_full = self._shown >= self._max_series
        for consumers in self._routes.values():
            for name, traffic in list(consumers.shown.items()):
                requests = sum(traffic.buckets)
                if is_full and requests == traffic.reviewed:
                    del consumers.shown[name]
                    self._shown -= 1
                traffic.reviewed = requests

    def fold(self, of: RouteTraffic) -> None:
        """Drop what is counted of a route and upstream that are shown with others from now on."""
        self.forget((of.route, of.upstream))

    def forget(self, key: tuple[str, str]) -> None:
        """Drop what is counted of a route and upstream, as one of them is gone."""
        consumers = self._routes.pop(key, None)
        if consumers is not None:
            self._shown -= len(consumers.shown)
