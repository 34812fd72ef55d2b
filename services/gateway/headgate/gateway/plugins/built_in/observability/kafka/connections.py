"""Connections of Kafka's client, opened by a `Dialler`.

Brokers say themselves where the others are, and the client connects there by the event loop, without a seam for anybody
else. So its maker of connections is replaced, once, for clients whose name is a `ClientName`, which is handed through
to each of their connections; those of others stay as they were.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, Final, Self

import aiokafka.client
from aiokafka.conn import AIOKafkaConnection, ScramAuthenticator, create_conn
from aiokafka.errors import AuthenticationFailedError

from headgate.gateway.net.dialling import Dialler

MAX_ITERATIONS: Final = 16_384
"""Of PBKDF2, that a broker may ask for with SCRAM, in some 10 ms of the event loop; Kafka's own limit."""


class ClientName(str):
    """How a client calls itself to brokers, and what opens its connections."""

    __slots__ = ("dialler",)

    dialler: Dialler

    def __new__(cls, name: str, dialler: Dialler) -> Self:
        """Add what opens connections to a name."""
        made = super().__new__(cls, name)
        made.dialler = dialler
        return made


class _DiallingLoop:
    """The event loop, but for how it connects."""

    def __init__(self, loop: asyncio.AbstractEventLoop, dialler: Dialler) -> None:
        self._loop = loop
        self._dialler = dialler

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    async def create_connection(
        self, factory: Callable[[], asyncio.Protocol], host: str, port: int, *, ssl: ssl.SSLContext | None
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        return await self._dialler.connect(factory, host, port, ssl)


class _Scram(ScramAuthenticator):  # type: ignore[misc]
    def create_salted_password(self, salt: bytes, iterations: int) -> None:
        if not 0 < iterations <= MAX_ITERATIONS:
            text = f"a broker asks for {iterations} iterations of SCRAM, and {MAX_ITERATIONS} are made at most"
            raise AuthenticationFailedError(text)
        super().create_salted_password(salt, iterations)


class Connection(AIOKafkaConnection):  # type: ignore[misc]
    """A connection that the `Dialler` of its client's name opens."""

    def __init__(self, host: str, port: int, *, client_id: ClientName, **options: Any) -> None:
        super().__init__(host, port, client_id=client_id, **options)
        self._loop = _DiallingLoop(asyncio.get_running_loop(), client_id.dialler)

    def authenticator_scram(self) -> ScramAuthenticator:
        return _Scram(
            loop=self._loop,
            sasl_plain_password=self._sasl_plain_password,
            sasl_plain_username=self._sasl_plain_username,
            sasl_mechanism=self._sasl_mechanism,
        )


async def _create_conn(host: str, port: int, *, client_id: str, **options: Any) -> AIOKafkaConnection:
    if not isinstance(client_id, ClientName):
        return await create_conn(host, port, client_id=client_id, **options)
    connection = Connection(host, port, client_id=client_id, **options)
    await connection.connect()
    return connection


aiokafka.client.create_conn = _create_conn
