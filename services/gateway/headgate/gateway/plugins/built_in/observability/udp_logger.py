"""`udp-logger`: what requests were, in a datagram of JSON each."""

from collections.abc import Sequence

from headgate.common.plugins.observability.loggers import UdpLoggerConfig
from headgate.gateway.plugins.built_in.observability.batched_logger import AddressedLogger, send_datagrams


class UdpLogger(AddressedLogger[UdpLoggerConfig]):
    """Sends entries."""

    name = "udp-logger"
    order = 400
    Config = UdpLoggerConfig

    async def send(self, entries: Sequence[bytes]) -> None:
        """Send a batch."""
        config = self.config
        await send_datagrams(self.services.dialler, config.host, config.port, entries, timeout_s=config.timeout)
