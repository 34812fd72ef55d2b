"""What a worker says about its access log, put together when it is asked."""

from collections.abc import Iterable
from typing import Protocol

from prometheus_client.metrics_core import CounterMetricFamily, Metric


class LosesLines(Protocol):
    """An access log."""

    @property
    def lost(self) -> dict[str, int]:
        """Lines that were dropped, by where they should have gone."""
        ...


class LogFamilies:
    """The metric families of an access log; None: there is none."""

    def __init__(self, log: LosesLines | None) -> None:
        self._log = log

    def collect(self) -> Iterable[Metric]:
        """Return the families."""
        lost = CounterMetricFamily(
            "headgate_access_log_dropped",
            "Lines of the access log that its output, stdout or otlp, did not take in time",
            labels=["output"],
        )
        for output, count in (self._log.lost if self._log is not None else {}).items():
            lost.add_metric([output], count)
        yield lost
