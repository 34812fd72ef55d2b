"""`loki-logger`: what requests were, posted to Grafana Loki in streams of labels.

https://grafana.com/docs/loki/latest/reference/loki-http-api/#ingest-logs
"""

import time
from collections.abc import Sequence

from headgate.common.plugins.observability.loggers import LokiLoggerConfig
from headgate.gateway.plugins.built_in.observability.log_entries import as_json
from headgate.gateway.plugins.built_in.observability.posted_logger import PostedLogger
from headgate.gateway.plugins.interface import Headers, PluginServices, Request
from headgate.gateway.plugins.interface.variables import variable
from headgate.gateway.plugins.kit.patterns import Template


class LokiLogger(PostedLogger[LokiLoggerConfig]):
    """Posts entries in streams."""

    name = "loki-logger"
    order = 414
    Config = LokiLoggerConfig
    content_type = "application/json"

    def __init__(self, config: LokiLoggerConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self.path, self.timeout_s = config.endpoint_uri, config.timeout / 1000
        self._labels = {name: Template(text) for name, text in config.log_labels.items()}

    def headers(self) -> Headers:
        """Return the headers, with the tenant."""
        headers = super().headers()
        headers.set("X-Scope-OrgID", self.config.tenant_id)
        return headers

    def write(self, entry: bytes, request: Request) -> None:
        """Take an entry, with its labels and when the request began."""
        labels = {name: template.render(request) for name, template in self._labels.items()}
        began_ns = time.time_ns() - round(float(variable(request, "request_time") or 0) * 1e9)
        super().write(b"\n".join((as_json(labels), as_json([str(began_ns), entry.decode()]))), request)

    def body(self, entries: Sequence[bytes]) -> bytes:
        """Return entries by their labels."""
        streams: dict[bytes, list[bytes]] = {}
        for entry in entries:
            labels, _, value = entry.partition(b"\n")
            streams.setdefault(labels, []).append(value)
        written = (b'{"stream":%b,"values":[%b]}' % (labels, b",".join(said)) for labels, said in streams.items())
        return b'{"streams":[%b]}' % b",".join(written)
