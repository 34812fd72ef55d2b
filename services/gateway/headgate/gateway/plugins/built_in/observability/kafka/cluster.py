"""A Kafka cluster as loggers find it: one producer for all that name the same brokers in the same way.

The producer is made when there is something to send, and ends when nothing was sent for a minute, or after a failure,
so that the next batch begins with the brokers that are configured. Kafka's client is imported with the first of them.
"""

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any, Final

from headgate.common.plugins.observability.loggers import KafkaLoggerConfig
from headgate.gateway.net.dialling import UNBOUNDED, Dialler
from headgate.gateway.plugins.built_in.observability.batched_logger import client_tls

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer

IDLE_S: Final = 60.0
_TELL_AGAIN_S: Final = 60.0


class KafkaCluster:
    """Sends messages. Of the configuration only what concerns the connection is looked at."""

    def __init__(self, config: KafkaLoggerConfig, dialler: Dialler = UNBOUNDED, idle_s: float = IDLE_S) -> None:
        self._config = config
        self._dialler = dialler
        self._idle_s = idle_s
        self._producer: AIOKafkaProducer | None = None
        self._opening = asyncio.Lock()
        self._users = 0
        """Messages under way."""
        self._is_ending = False
        """The producer ends with the last of them."""
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    async def send(self, topic: str, message: bytes, key: bytes | None) -> None:
        """Send a message, and wait until it is taken. Raises OSError."""
        from aiokafka.errors import KafkaError

        self._users += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            producer = await self._opened()
            await producer.send_and_wait(topic, message, key)
        except KafkaError as error:
            self._is_ending = True
            raise OSError(str(error) or type(error).__name__) from error
        finally:
            self._users -= 1
            if not self._users:
                await self._rest()

    async def _opened(self) -> "AIOKafkaProducer":
        async with self._opening:
            if self._producer is None:
                producer = _make_producer(self._config, self._dialler)
                try:
                    await producer.start()
                except BaseException:
                    await producer.stop()
                    raise
                self._producer = producer
            return self._producer

    async def _rest(self) -> None:
        if self._is_ending or not self._idle_s:
            await self._end()
        else:
            self._timer = asyncio.get_running_loop().call_later(self._idle_s, self._end_later)

    def _end_later(self) -> None:
        self._timer = None
        self._closing = asyncio.get_running_loop().create_task(self._end(), name="closing a producer of Kafka")

    async def _end(self) -> None:
        self._is_ending = False
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()

    async def close(self) -> None:
        """End once nothing is under way; what is sent from now on is sent by a producer that ends with it."""
        self._idle_s = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._closing is not None:
            await self._closing
        if not self._users:
            await self._end()


def _make_producer(config: KafkaLoggerConfig, dialler: Dialler) -> "AIOKafkaProducer":
    from aiokafka import AIOKafkaProducer

    from headgate.gateway.plugins.built_in.observability.kafka.connections import ClientName

    _quieten()
    login = config.login
    protocol = ("SASL_" if login is not None else "") + ("SSL" if config.tls is not None else "PLAINTEXT")
    options: dict[str, Any] = {}
    if login is not None:
        options["sasl_mechanism"] = login.mechanism
        options["sasl_plain_username"] = login.user
        options["sasl_plain_password"] = login.password.reveal()
    return AIOKafkaProducer(
        bootstrap_servers=[f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in config.addresses],
        client_id=ClientName("headgate", dialler),
        acks=config.required_acks,
        request_timeout_ms=config.timeout * 1000,
        metadata_max_age_ms=config.meta_refresh_interval * 1000,
        security_protocol=protocol,
        ssl_context=client_tls(verify=config.tls.verify) if config.tls is not None else None,
        **options,
    )


class _Seldom(logging.Filter):
    """Lets the same words through once a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        text, now = record.getMessage(), time.monotonic()
        self._told = {told: at for told, at in self._told.items() if now - at < _TELL_AGAIN_S}
        return self._told.setdefault(text, now) == now


def _quieten() -> None:
    """Let the client say why it cannot connect, which its errors do not, but not with every try; they say the rest."""
    log = logging.getLogger("aiokafka")
    if not log.filters:
        log.setLevel(logging.ERROR)
        log.addFilter(_Seldom())
        for part in ("cluster", "conn", "producer"):
            logging.getLogger(f"aiokafka.{part}").setLevel(logging.CRITICAL)
