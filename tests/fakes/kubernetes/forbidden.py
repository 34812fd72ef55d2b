"""A server that nobody may connect to, and what keeps them from it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from headgate.gateway.net.destinations import Destinations
from headgate.gateway.net.dialling import Dialler


@dataclass
class Forbidden:
    """Where it is, and how often somebody connected all the same."""

    port: int = 0
    accepted: int = 0


@contextlib.asynccontextmanager
async def forbidden(host: str = "127.0.0.1") -> AsyncIterator[Forbidden]:
    """Listen, and close each connection; the block must not let one come about."""
    server = Forbidden()

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.accepted += 1
        writer.close()

    listener = await asyncio.start_server(count, host, 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
        # A connection that came about is accepted before this one, which is made after it.
        before = server.accepted
        _, writer = await asyncio.open_connection(host, server.port)
        writer.close()
        async with asyncio.timeout(30):
            while server.accepted == before:  # noqa: ASYNC110 - a counter has no event
                await asyncio.sleep(0.005)
        assert server.accepted == 1
    finally:
        listener.close()


def without(*networks: str, allowed: tuple[str, ...] = ()) -> Dialler:
    """What connects to anywhere but these networks."""
    return Dialler(Destinations(networks, allowed))
