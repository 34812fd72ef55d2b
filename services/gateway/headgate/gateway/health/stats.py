"""What checks, ejection and circuit breaking count: plain integers, turned into metrics when somebody asks."""

from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric


class HealthStats:
    """Counters of one worker; a collector for a prometheus_client registry.

    Upstreams are counted by key, and forgotten when they leave the table.
    """

    def __init__(self) -> None:
        self.checks: Counter[tuple[str, str]] = Counter()
        """By type of check and result, `success` or `failure`."""
        self.check_delay_s = 0.0
        """How late the last check began: more than some milliseconds says that there are too many for this worker."""
        self.became_unhealthy: Counter[str] = Counter()
        """Verdicts of active checks that took an endpoint out, by upstream."""
        self.ejections: Counter[str] = Counter()
        self.unavailable: dict[str, int] = {}
        """Endpoints that get no requests at the moment, unhealthy or ejected; upstreams with none are absent."""
        self.circuit_rejections: Counter[tuple[str, str]] = Counter()
        """By upstream and bound, `requests` or `pending`."""
        self.budget_rejections: Counter[str] = Counter()
        """Retries that were not made."""
        self.resolutions: Counter[str] = Counter()
        """Of DNS names, by result, `success` or `failure`."""

    def show_unavailable(self, upstream: str, count: int) -> None:
        """Set how many endpoints of an upstream get no requests."""
        if count:
            self.unavailable[upstream] = count
        else:
            self.unavailable.pop(upstream, None)

    def forget(self, upstream: str) -> None:
        """Drop what is counted of an upstream."""
        for counter in (self.became_unhealthy, self.ejections, self.unavailable, self.budget_rejections):
            counter.pop(upstream, None)
        for bound in ("requests", "pending"):
            self.circuit_rejections.pop((upstream, bound), None)

    def collect(self) -> Iterable[Metric]:
        """Give all counters as metric families; prometheus_client calls this per scrape."""
        checks = CounterMetricFamily("headgate_health_checks", "Active checks.", labels=["type", "result"])
        for labels, count in self.checks.items():
            checks.add_metric(labels, count)
        yield checks
        yield GaugeMetricFamily(
            "headgate_health_check_delay_seconds", "How late the last active check began.", self.check_delay_s
        )
        yield _by_upstream("unhealthy", "Endpoints that active checks took out.", self.became_unhealthy)
        yield _by_upstream("ejections", "Endpoints ejected for failing requests.", self.ejections)
        unavailable = GaugeMetricFamily(
            "headgate_health_unavailable_endpoints", "Endpoints that are unhealthy or ejected.", labels=["upstream"]
        )
        for upstream, count in self.unavailable.items():
            unavailable.add_metric([upstream], count)
        yield unavailable
        rejections = CounterMetricFamily(
            "headgate_health_circuit_rejections", "Requests beyond a circuit breaker.", labels=["upstream", "bound"]
        )
        for labels, count in self.circuit_rejections.items():
            rejections.add_metric(labels, count)
        yield rejections
        yield _by_upstream("retry_budget_rejections", "Retries beyond the budget.", self.budget_rejections)
        resolutions = CounterMetricFamily("headgate_health_resolutions", "Resolutions of names.", labels=["result"])
        for result, count in self.resolutions.items():
            resolutions.add_metric([result], count)
        yield resolutions


def _by_upstream(name: str, text: str, counts: Counter[str]) -> Metric:
    family = CounterMetricFamily(f"headgate_health_{name}", text, labels=["upstream"])
    for upstream, count in counts.items():
        family.add_metric([upstream], count)
    return family
