"""Connections of Kafka's client, opened by a `Dialler`.

Brokers say themselves where the others are, and the client connects there by the event loop, without a seam for anybody
else. So its maker of connections is replaced, once, for clients whose name is a `ClientName`, which is handed through
to each of their connections; those of others stay as they were.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, Self

import aiokafka.client
from aiokafka.conn import AIOKafkaConnection, create_conn

from headgate.gateway.dialling import Dialler


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


class _Connection(AIOKafkaConnection):  # type: ignore[misc]
    def __init__(self, host: str, port: int, *, client_id: ClientName, **options: Any) -> None:
        super().__init__(host, port, client_id=client_id, **options)
        self._loop = _DiallingLoop(asyncio.get_running_loop(), client_id.dialler)


async def _create_conn(host: str, port: int, *, client_id: str, **options: Any) -> AIOKafkaConnection:
    if not isinstance(client_id, ClientName):
        return await create_conn(host, port, client_id=client_id, **options)
    connection = _Connection(host, port, client_id=client_id, **options)
    await connection.connect()
    return connection


aiokafka.client.create_conn = _create_conn
