"""`loggly`: what requests were, sent to SolarWinds Loggly, in datagrams of syslog (RFC 5424) or posted in batches.

https://documentation.solarwinds.com/en/success_center/loggly/content/admin/streaming-syslog-without-using-files.htm
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from headgate.common.plugins.observability.vendor_loggers import SEVERITIES, LogglyConfig
from headgate.gateway.plugins.built_in.observability.batched_logger import BatchedLogger, send_datagrams
from headgate.gateway.plugins.built_in.observability.posted_logger import post
from headgate.gateway.plugins.interface import Headers, Request

_USER: Final = 8
"""Facility of messages, times eight."""
_ESCAPED: Final = str.maketrans({'"': r"\"", "\\": r"\\", "]": r"\]"})


class Loggly(BatchedLogger[LogglyConfig]):
    """Sends entries."""

    name = "loggly"
    order = 411
    Config = LogglyConfig

    @property
    def target(self) -> str:
        """The server."""
        return self.config.host.partition("?")[0]

    def write(self, entry: bytes, request: Request) -> None:
        """Take an entry."""
        super().write(self._message(entry, request) if self.config.protocol == "syslog" else entry, request)

    def _message(self, entry: bytes, request: Request) -> bytes:
        config = self.config
        severity = config.severity_map.get(str(request.final_status), config.severity)
        when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        tags = " ".join(f'tag="{tag.translate(_ESCAPED)}"' for tag in config.tags)
        head = (
            f"<{_USER + SEVERITIES.index(severity)}>1 {when}Z {request.host or '-'} apisix {os.getpid()} - "
            f"[{config.customer_token.reveal()}@41058 {tags}] "
        )
        return head.encode("utf-8", "replace") + entry

    async def send(self, entries: Sequence[bytes]) -> None:
        """Send a batch."""
        config = self.config
        timeout_s = config.timeout / 1000
        if config.protocol == "syslog":
            await send_datagrams(self.services.dialler, config.host, config.port, entries, timeout_s=timeout_s)
            return
        host = config.host if config.host.startswith(("http://", "https://")) else f"{config.protocol}://{config.host}"
        url = f"{host.rstrip('/')}/bulk/{config.customer_token.reveal()}/tag/bulk"
        headers = Headers([("Content-Type", "application/json"), *(("X-LOGGLY-TAG", tag) for tag in config.tags)])
        await post(self.services, url, headers, b"\n".join(entries), timeout_s=timeout_s, verify=config.ssl_verify)
