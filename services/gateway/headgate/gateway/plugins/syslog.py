"""`syslog`: what requests were, as messages of syslog (RFC 5424) with JSON in them."""

import os
import socket
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from headgate.common.plugins.loggers import SyslogConfig
from headgate.gateway.plugins.batched_logger import BatchedLogger, send_datagrams, send_stream

_PRIORITY: Final = 5 * 8 + 6
"""Facility `syslog`, severity `informational`."""
_HOST: Final = socket.gethostname()


class Syslog(BatchedLogger[SyslogConfig]):
    """Sends messages."""

    name = "syslog"
    order = 401
    Config = SyslogConfig

    @property
    def target(self) -> str:
        """Host and port."""
        return f"{self.config.host}:{self.config.port}"

    async def send(self, entries: Sequence[bytes]) -> None:
        """Send a batch, a message for each entry."""
        config = self.config
        messages = [_message(entry) for entry in entries]
        if config.sock_type == "udp":
            await send_datagrams(config.host, config.port, messages)
        else:
            timeout_s = config.timeout / 1000
            await send_stream(config.host, config.port, b"".join(messages), timeout_s=timeout_s, tls=config.tls)


def _message(entry: bytes) -> bytes:
    when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return f"<{_PRIORITY}>1 {when} {_HOST} headgate {os.getpid()} - - ".encode() + entry + b"\n"
