"""`tcp-logger`: what requests were, sent over TCP in batches: an array of JSON on a line of its own."""

from collections.abc import Sequence

from headgate.common.plugins.observability.loggers import TcpLoggerConfig
from headgate.gateway.plugins.built_in.observability.batched_logger import AddressedLogger, as_array, send_stream


class TcpLogger(AddressedLogger[TcpLoggerConfig]):
    """Sends entries."""

    name = "tcp-logger"
    order = 405
    Config = TcpLoggerConfig

    async def send(self, entries: Sequence[bytes]) -> None:
        """Send a batch."""
        config = self.config
        await send_stream(
            self.services.dialler,
            config.host,
            config.port,
            as_array(entries, config.batch_max_size) + b"\n",
            timeout_s=config.timeout / 1000,
            tls=config.tls,
            server_name=config.tls_options,
        )
