"""`http-logger`: what requests were, posted to a service in batches of JSON."""

from collections.abc import Sequence

from headgate.common.plugins.observability.loggers import HttpLoggerConfig
from headgate.gateway.plugins.built_in.observability.batched_logger import BatchedLogger, as_array
from headgate.gateway.plugins.built_in.observability.posted_logger import post
from headgate.gateway.plugins.interface import Headers


class HttpLogger(BatchedLogger[HttpLoggerConfig]):
    """Posts entries."""

    name = "http-logger"
    order = 410
    Config = HttpLoggerConfig

    @property
    def target(self) -> str:
        """The URL, without its query."""
        return self.config.uri.partition("?")[0]

    async def send(self, entries: Sequence[bytes]) -> None:
        """Post a batch."""
        config = self.config
        is_json = config.concat_method == "json"
        body = as_array(entries, config.batch_max_size) if is_json else b"\n".join(entries)
        headers = Headers([("Content-Type", "application/json" if is_json else "text/plain")])
        if config.auth_header is not None:
            headers.set("Authorization", config.auth_header.reveal())
        await post(self.services, config.uri, headers, body, timeout_s=config.timeout, verify=config.ssl_verify)
