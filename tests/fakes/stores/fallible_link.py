"""A TCP connection between two services that a test can partition.

async with FallibleLink(port) as link:      # clients connect to link.port
    link.stall()                            # nothing passes, nothing is lost: packets that are sent again and again
    link.cut()                              # everything open is reset, and so is every new connection
    link.heal()
"""

import asyncio
import contextlib
import socket
import struct
from types import TracebackType
from typing import Self

from headgate.common.service.tasks import cancel, run_together

PIECE = 65536


class FallibleLink:
    """Passes connections on to a port of 127.0.0.1 for as long as it is whole."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.port = 0
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._is_cut = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        await cancel(*self._tasks)

    @property
    def is_whole(self) -> bool:
        return self._flowing.is_set() and not self._is_cut

    def stall(self) -> None:
        """Hold back everything that is said from now on."""
        self._flowing.clear()

    def cut(self) -> None:
        """Reset what is open, and what is opened until the link is healed."""
        self._is_cut = True
        for writer in list(self._writers):
            _reset(writer)

    def heal(self) -> None:
        """Pass everything on again, first of all what was held back."""
        self._is_cut = False
        self._flowing.set()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            await self._flowing.wait()
            if self._is_cut:
                _reset(writer)
                return
            answers, requests = await asyncio.open_connection("127.0.0.1", self.target_port)
            self._writers.add(requests)
            with contextlib.closing(requests):
                await run_together(self._copy(reader, requests), self._copy(answers, writer))
            self._writers.discard(requests)
        except (OSError, asyncio.CancelledError):
            pass  # the end of either side is the end of both
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(PIECE):
            await self._flowing.wait()
            writer.write(data)
            await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
