"""`clickhouse-logger`: what requests were, inserted into a table of ClickHouse.

https://clickhouse.com/docs/interfaces/http
"""

import random
from collections.abc import Sequence

from headgate.common.plugins.observability.vendor_loggers import ClickhouseLoggerConfig
from headgate.gateway.plugins.built_in.observability.batched_logger import BatchedLogger
from headgate.gateway.plugins.built_in.observability.posted_logger import post
from headgate.gateway.plugins.interface import Headers, PluginServices


class ClickhouseLogger(BatchedLogger[ClickhouseLoggerConfig]):
    """Inserts entries as rows."""

    name = "clickhouse-logger"
    order = 398
    Config = ClickhouseLoggerConfig

    def __init__(self, config: ClickhouseLoggerConfig, services: PluginServices) -> None:
        self._addresses = (config.endpoint_addr,) if config.endpoint_addr is not None else config.endpoint_addrs
        super().__init__(config, services)

    @property
    def target(self) -> str:
        """The servers' URLs, without their queries."""
        return ", ".join(address.partition("?")[0] for address in self._addresses)

    async def send(self, entries: Sequence[bytes]) -> None:
        """Insert a batch, at a server that is drawn."""
        config = self.config
        headers = Headers(
            [
                ("Content-Type", "application/json"),
                ("X-ClickHouse-User", config.user),
                ("X-ClickHouse-Key", config.password.reveal()),
                ("X-ClickHouse-Database", config.database),
            ]
        )
        body = f"INSERT INTO {config.logtable} FORMAT JSONEachRow ".encode() + b" ".join(entries)
        address = random.choice(self._addresses)  # noqa: S311 - spreads load, guards nothing
        await post(self.services, address, headers, body, timeout_s=config.timeout, verify=config.ssl_verify)
