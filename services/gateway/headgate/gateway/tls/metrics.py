"""What a worker says about certificates and handshakes, put together when it is asked."""

from collections.abc import Iterable

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from headgate.gateway.tls.server import CertificateStore


class TlsFamilies:
    """The metric families of a store."""

    def __init__(self, store: CertificateStore) -> None:
        self._store = store

    def collect(self) -> Iterable[Metric]:
        """Return the families."""
        ends = GaugeMetricFamily(
            "headgate_certificate_not_after_seconds",
            "When each certificate ends, in seconds since 1970; `default` is the one for names that have none",
            labels=["certificate"],
        )
        for key, end_s in self._store.not_after():
            ends.add_metric([key], end_s)
        yield ends
        counts = self._store.counts
        yield CounterMetricFamily(
            "headgate_tls_handshakes_started",
            "Connections accepted for TLS; those that neither completed nor failed were cut off or timed out",
            value=counts.started,
        )
        completed = CounterMetricFamily(
            "headgate_tls_handshakes", "TLS handshakes completed, with a new or a resumed session", labels=["session"]
        )
        completed.add_metric(["new"], counts.completed - counts.resumed)
        completed.add_metric(["resumed"], counts.resumed)
        yield completed
        failed = CounterMetricFamily(
            "headgate_tls_handshake_failures", "TLS handshakes that failed, by OpenSSL's reason", labels=["reason"]
        )
        for reason, count in sorted(counts.failed.items()):
            failed.add_metric([reason], count)
        yield failed
