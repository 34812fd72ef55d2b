"""`kafka-logger`: what requests were, sent to a topic of Kafka: a message for each batch, an array of JSON."""

import json
from collections.abc import Iterator, Sequence

from headgate.common.plugins.observability.loggers import KafkaLoggerConfig
from headgate.gateway.plugins.built_in.observability.batched_logger import BatchedLogger, as_array
from headgate.gateway.plugins.built_in.observability.kafka.cluster import KafkaCluster
from headgate.gateway.plugins.built_in.observability.log_entries import original_text
from headgate.gateway.plugins.interface import PluginServices, Request

_MAX_MESSAGE = 1_000_000
"""Bytes of entries; brokers take messages of one MiB unless they are told otherwise."""


class KafkaLogger(BatchedLogger[KafkaLoggerConfig]):
    """Sends entries."""

    name = "kafka-logger"
    order = 403
    Config = KafkaLoggerConfig

    def __init__(self, config: KafkaLoggerConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._key = config.key.encode() if config.key else None
        how = (config.addresses, config.login, config.tls, config.required_acks, config.timeout)
        self._cluster = services.shared.get((self.name, *how), lambda: KafkaCluster(config, services.dialler))
        services.close_later(self._cluster)

    @property
    def target(self) -> str:
        """Topic and brokers."""
        brokers = ", ".join(f"{host}:{port}" for host, port in self.config.addresses)
        return f"{self.config.kafka_topic} at {brokers}"

    def entry(self, request: Request, status: int, seconds: float) -> bytes:
        """Make an entry: the request itself with `origin`, alone as it is, and within an array as a text of JSON."""
        if self.config.meta_format == "default":
            return super().entry(request, status, seconds)
        text = original_text(request, with_body=self.config.include_req_body)
        return text.encode() if self.config.batch_max_size == 1 else json.dumps(text, ensure_ascii=False).encode()

    def write(self, entry: bytes, request: Request) -> None:
        """Take an entry."""
        if len(entry) > _MAX_MESSAGE:
            self.batches.drop(1, f"an entry has more than {_MAX_MESSAGE} bytes")
        else:
            super().write(entry, request)

    async def send(self, entries: Sequence[bytes]) -> None:
        """Send a batch, in several messages where one would be too long."""
        for part in _parts(entries):
            message = as_array(part, self.config.batch_max_size)
            await self._cluster.send(self.config.kafka_topic, message, self._key)


def _parts(entries: Sequence[bytes]) -> Iterator[list[bytes]]:
    part: list[bytes] = []
    size = 0
    for entry in entries:
        size += len(entry) + 1
        if part and size > _MAX_MESSAGE:
            yield part
            part, size = [], len(entry) + 1
        part.append(entry)
    yield part
