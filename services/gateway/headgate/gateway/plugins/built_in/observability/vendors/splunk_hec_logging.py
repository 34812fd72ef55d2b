"""`splunk-hec-logging`: what requests were, posted to the HTTP Event Collector of Splunk.

https://docs.splunk.com/Documentation/Splunk/latest/Data/FormateventsforHTTPEventCollector
"""

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from headgate.common.plugins.observability.vendor_loggers import SplunkHecLoggingConfig
from headgate.gateway.plugins.built_in.observability.batched_logger import BatchedLogger
from headgate.gateway.plugins.built_in.observability.posted_logger import post
from headgate.gateway.plugins.interface import Headers, Request
from headgate.gateway.plugins.interface.variables import HOSTNAME


class SplunkHecLogging(BatchedLogger[SplunkHecLoggingConfig]):
    """Posts entries as events."""

    name = "splunk-hec-logging"
    order = 409
    Config = SplunkHecLoggingConfig

    @property
    def target(self) -> str:
        """The URL, without its query."""
        return self.config.endpoint.uri.partition("?")[0]

    def write(self, entry: bytes, request: Request) -> None:
        """Take an entry."""
        said = msgspec.json.decode(entry)
        made = {
            "time": time.time(),
            "host": HOSTNAME,
            "source": "apache-apisix-splunk-hec-logging",
            "sourcetype": "_json",
            "event": said if self.config.log_format is not None else _event(said),
        }
        super().write(msgspec.json.encode(made), request)

    async def send(self, entries: Sequence[bytes]) -> None:
        """Post a batch."""
        endpoint = self.config.endpoint
        headers = Headers(
            [("Content-Type", "application/json"), ("Authorization", f"Splunk {endpoint.token.reveal()}")]
        )
        if endpoint.channel is not None:
            headers.set("X-Splunk-Request-Channel", endpoint.channel)
        verify = self.config.ssl_verify
        await post(self.services, endpoint.uri, headers, b"".join(entries), timeout_s=endpoint.timeout, verify=verify)


def _event(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what an event says of an entry without a format of its own."""
    asked, answered = entry["request"], entry["response"]
    return {
        "request_url": asked["url"],
        "request_method": asked["method"],
        "request_headers": asked["headers"],
        "request_query": asked["querystring"],
        "request_size": asked["size"],
        "response_headers": answered["headers"],
        "response_status": answered["status"],
        "response_size": answered["size"],
        "latency": entry["latency"],
        "upstream": entry["upstream"],
    }
