"""`syslog`: what requests were, as messages of syslog (RFC 5424) with JSON in them."""

import os
import socket
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from headgate.common.plugins.observability.loggers import SyslogConfig
from headgate.gateway.plugins.built_in.observability.batched_logger import AddressedLogger, send_datagrams, send_stream

_PRIORITY: Final = 5 * 8 + 6
"""Facility `syslog`, severity `informational`."""
_HOST: Final = socket.gethostname()


class Syslog(AddressedLogger[SyslogConfig]):
    """Sends messages."""

    name = "syslog"
    order = 401
    Config = SyslogConfig

    async def send(self, entries: Sequence[bytes]) -> None:
        """Send a batch, a message for each entry."""
        config = self.config
        messages = [_message(entry) for entry in entries]
        timeout_s = config.timeout / 1000
        if config.sock_type == "udp":
            await send_datagrams(self.services.dialler, config.host, config.port, messages, timeout_s=timeout_s)
        else:
            await send_stream(
                self.services.dialler, config.host, config.port, b"".join(messages), timeout_s=timeout_s, tls=config.tls
            )


def _message(entry: bytes) -> bytes:
    when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return f"<{_PRIORITY}>1 {when} {_HOST} headgate {os.getpid()} - - ".encode() + entry + b"\n"
