"""`datadog`: how many requests there were, how long and large, told an agent of Datadog as metrics (DogStatsD).

https://docs.datadoghq.com/developers/dogstatsd/datagram_shell/
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from headgate.common.plugins.observability.vendor_loggers import DatadogConfig
from headgate.gateway.plugins.built_in.observability.batched_logger import BatchedLogger, send_datagrams
from headgate.gateway.plugins.interface import Request

_MAX_DATAGRAM: Final = 8192
"""Bytes that an agent takes."""
_TIMEOUT_S: Final = 3.0
_NO_TAG: Final = str.maketrans({",": "_", "|": "_", "\n": "_", "\r": "_", "#": "_"})


class Datadog(BatchedLogger[DatadogConfig]):
    """Sends metrics."""

    name = "datadog"
    order = 495
    Config = DatadogConfig

    @property
    def target(self) -> str:
        """Host and port."""
        return f"{self.config.host}:{self.config.port}"

    def entry(self, request: Request, status: int, seconds: float) -> bytes:
        """Return the metrics of a request that has ended, a line for each."""
        said = self._full(request, status, seconds)
        tags = ",".join([*self.config.common_tags, *self.config.constant_tags, *self._tags(said, request)])
        prefix = f"{self.config.namespace}." if self.config.namespace else ""
        lines = (f"{prefix}{name}:{value}|{kind}|#{tags}" for name, value, kind in _metrics(said))
        return "\n".join(lines).encode("utf-8", "replace")

    def _tags(self, entry: dict[str, Any], request: Request) -> Iterator[str]:
        config, path, status = self.config, self.services.path, entry["response"]["status"]
        told = {
            "route_name": entry["route_id"],
            "path": path.value if config.include_path and path is not None else "",
            "method": request.method if config.include_method else "",
            "service_name": entry["service_id"],
            "consumer": entry.get("consumer", {}).get("username", ""),
            "balancer_ip": request.endpoint.rpartition(":")[0].strip("[]"),
            "response_status": status,
            "response_status_class": f"{status // 100}xx",
            "scheme": request.scheme,
        }
        for name, value in told.items():
            if value:
                yield f"{name}:{value}".translate(_NO_TAG)

    async def send(self, entries: Sequence[bytes]) -> None:
        """Send the metrics of each request in a datagram, or in one for each if they are too long."""
        datagrams: list[bytes] = []
        for entry in entries:
            datagrams += [entry] if len(entry) <= _MAX_DATAGRAM else entry.split(b"\n")
        await send_datagrams(self.services.dialler, self.config.host, self.config.port, datagrams, timeout_s=_TIMEOUT_S)


def _metrics(entry: dict[str, Any]) -> Iterator[tuple[str, float, str]]:
    yield "request.counter", 1, "c"
    yield "request.latency", entry["latency"], "h"
    if "upstream_latency" in entry:
        yield "upstream.latency", entry["upstream_latency"], "h"
    yield "apisix.latency", entry["apisix_latency"], "h"
    yield "ingress.size", entry["request"]["size"], "ms"
    yield "egress.size", entry["response"]["size"], "ms"
