"""`udp-logger`: what requests were, in a datagram of JSON each."""

from collections.abc import Sequence

from headgate.common.plugins.loggers import UdpLoggerConfig
from headgate.gateway.plugins.batched_logger import BatchedLogger, send_datagrams


class UdpLogger(BatchedLogger[UdpLoggerConfig]):
    """Sends entries."""

    name = "udp-logger"
    order = 400
    Config = UdpLoggerConfig

    @property
    def target(self) -> str:
        """Host and port."""
        return f"{self.config.host}:{self.config.port}"

    async def send(self, entries: Sequence[bytes]) -> None:
        """Send a batch."""
        await send_datagrams(self.config.host, self.config.port, entries)
