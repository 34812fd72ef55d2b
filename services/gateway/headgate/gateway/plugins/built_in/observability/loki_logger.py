"""`loki-logger`: what requests were, posted to Grafana Loki in streams of labels.

https://grafana.com/docs/loki/latest/reference/loki-http-api/#ingest-logs
"""

import time
from collections.abc import Sequence

import msgspec

from headgate.common.plugins.observability.loggers import LokiLoggerConfig
from headgate.gateway.plugins.built_in.observability.posted_logger import PostedLogger
from headgate.gateway.plugins.interface import Headers, PluginServices, Request
from headgate.gateway.plugins.kit.patterns import Template

_Stamped = tuple[dict[str, str], str, str]
"""Labels, nanoseconds since 1970, and the entry."""


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
        if "X-Scope-OrgID" not in headers:
            headers.add("X-Scope-OrgID", self.config.tenant_id)
        return headers

    def write(self, entry: bytes, request: Request) -> None:
        """Take an entry, with its labels and its time."""
        labels = {name: template.render(request) for name, template in self._labels.items()}
        stamped: _Stamped = (labels, str(time.time_ns()), entry.decode())
        super().write(msgspec.json.encode(stamped), request)

    def body(self, entries: Sequence[bytes]) -> bytes:
        """Return entries by their labels."""
        streams: dict[bytes, tuple[dict[str, str], list[tuple[str, str]]]] = {}
        for entry in entries:
            labels, at, line = msgspec.json.decode(entry, type=_Stamped)
            streams.setdefault(msgspec.json.encode(labels), (labels, []))[1].append((at, line))
        return msgspec.json.encode({"streams": [{"stream": each, "values": said} for each, said in streams.values()]})
