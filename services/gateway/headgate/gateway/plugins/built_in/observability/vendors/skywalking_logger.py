"""`skywalking-logger`: what requests were, posted to Apache SkyWalking.

https://skywalking.apache.org/docs/main/latest/en/api/log-data-protocol/
"""

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import msgspec

from headgate.common.plugins.observability.vendor_loggers import SkywalkingLoggerConfig
from headgate.gateway.plugins.built_in.observability.batched_logger import BatchedLogger
from headgate.gateway.plugins.built_in.observability.posted_logger import post
from headgate.gateway.plugins.interface import Headers, PluginServices, Request
from headgate.gateway.plugins.interface.variables import HOSTNAME


class SkywalkingLogger(BatchedLogger[SkywalkingLoggerConfig]):
    """Posts entries, with the trace that a request belongs to."""

    name = "skywalking-logger"
    order = 408
    Config = SkywalkingLoggerConfig

    def __init__(self, config: SkywalkingLoggerConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        instance = config.service_instance_name
        self._instance = HOSTNAME if instance == "$hostname" else instance

    @property
    def target(self) -> str:
        """The URL, without its query."""
        return self.config.endpoint_addr.partition("?")[0]

    def write(self, entry: bytes, request: Request) -> None:
        """Take an entry."""
        made: dict[str, Any] = {
            "body": {"json": {"json": entry.decode()}},
            "service": self.config.service_name,
            "serviceInstance": self._instance,
            "endpoint": request.path,
        }
        trace = _trace(request.headers.get("sw8") or "")
        if trace is not None:
            made["traceContext"] = trace
        super().write(msgspec.json.encode(made), request)

    async def send(self, entries: Sequence[bytes]) -> None:
        """Post a batch."""
        url = f"{self.target.rstrip('/')}/v3/logs"
        headers = Headers([("Content-Type", "application/json")])
        body = b"[" + b",".join(entries) + b"]"
        await post(self.services, url, headers, body, timeout_s=self.config.timeout, verify=True)


def _trace(header: str) -> dict[str, Any] | None:
    """Read `sw8`: flag, trace, segment, span and four more parts, of which most are in base64."""
    parts = header.split("-")
    if len(parts) != 8:
        return None
    try:
        trace, segment = (base64.b64decode(part + "=" * (-len(part) % 4)).decode() for part in parts[1:3])
        return {"traceId": trace, "traceSegmentId": segment, "spanId": int(parts[3])}
    except (binascii.Error, ValueError):
        return None
