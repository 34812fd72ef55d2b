"""A TCP balancer as clouds have them: it gives new connections to the replicas that say that they are ready."""

import asyncio
import contextlib
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from fakes.gateway.process import GatewayProcess

_ASK_EVERY_S = 0.05


class TcpBalancer:
    """`async with TcpBalancer([one, other]) as balancer: ...` passes connections on from `balancer.port`."""

    def __init__(self, replicas: Sequence[GatewayProcess]) -> None:
        self._replicas = list(replicas)
        self.ready: list[GatewayProcess] = []
        self.given: list[GatewayProcess] = []
        """Who got each connection."""
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self._ask()
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self._asking = asyncio.create_task(self._ask_always())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._asking.cancel()
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(self._asking, *self._tasks, return_exceptions=True)

    async def _ask_always(self) -> None:
        while True:
            await asyncio.sleep(_ASK_EVERY_S)
            await self._ask()

    async def _ask(self) -> None:
        answers = await asyncio.gather(*(replica.admin("/readyz") for replica in self._replicas))
        self.ready = [replica for replica, (status, _) in zip(self._replicas, answers, strict=True) if status == 200]

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        replica = self.ready[len(self.given) % len(self.ready)]
        self.given.append(replica)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                answers, requests = await asyncio.open_connection("127.0.0.1", replica.http_port)
                with contextlib.closing(requests):
                    await asyncio.gather(_copy(reader, requests), _copy(answers, writer))
        finally:
            self._tasks.discard(task)
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except ConnectionError:
        writer.close()
