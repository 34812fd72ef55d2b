"""`http-logger`: what requests were, posted to a service in batches of JSON."""

from collections.abc import Sequence

from headgate.common.plugins.observability.loggers import HttpLoggerConfig
from headgate.gateway.plugins.built_in.observability.batched_logger import BatchedLogger, as_array
from headgate.gateway.plugins.interface import Headers, Request
from headgate.gateway.plugins.kit.calls import CallFailed, call_url

_MAX_ANSWER = 1 << 20


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
        post = Request(method="POST", headers=headers, body=body)
        try:
            answer = await call_url(
                self.services,
                config.uri,
                post,
                timeout_s=config.timeout,
                max_body=_MAX_ANSWER,
                verify=config.ssl_verify,
            )
        except CallFailed as error:
            raise OSError(str(error)) from error
        if answer.status >= 400:
            raise OSError(f"it answered {answer.status}")
