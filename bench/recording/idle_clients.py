"""Connections that rest: `python -m bench.recording.idle_clients PORT HOST http|websocket COUNT FILE`.

Each is opened from one of many loopback addresses, so that ports do not run out, used once, and then left alone. On
SIGTERM each is used once more. Writes `opened`, `lost` (closed by the other side while at rest) and `answered` (the
second time) with their numbers to FILE, and the reasons of failures.
"""

import asyncio
import base64
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import uvloop

from bench.errors import BenchError
from bench.recording.recorder import READY, Recorder

AT_ONCE = 100
PER_ADDRESS = 1000
_ANSWER_S = 30.0
_PING = b"\x82\x84" + bytes(4) + b"ping"
"""A binary frame, masked with zeros."""


class IdleClients(Recorder):
    """Holds the connections while the context lasts; figures afterwards."""

    def __init__(self, folder: Path, port: int, host: str, *, kind: str, count: int, core: int) -> None:
        arguments = [str(port), host, kind, str(count)]
        super().__init__("idle_clients", folder, arguments, core=core, patience_s=120.0)

    @property
    def figures(self) -> dict[str, int]:
        """`opened`, `lost` and `answered`."""
        return parse_idle(self.lines)

    @property
    def reasons(self) -> list[str]:
        """Why some failed."""
        return [line.partition(" ")[2] for line in self.lines if line.startswith("because ")]


def parse_idle(lines: Iterable[str]) -> dict[str, int]:
    """Read the numbers.

    Raises:
        BenchError: one is missing.
    """
    words = (line.split() for line in lines)
    found = {word[0]: int(word[1]) for word in words if word and word[0] in ("opened", "lost", "answered")}
    if len(found) < 3:
        raise BenchError(f"the idle clients said no figures: {found}")
    return found


def _address(number: int) -> str:
    return f"127.0.{1 + number // PER_ADDRESS // 250}.{1 + number // PER_ADDRESS % 250}"


class _Connection(asyncio.Protocol):
    """One connection, used twice."""

    def __init__(self, host: str, kind: str) -> None:
        self._kind = kind
        head = f"GET / HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n"
        if kind == "websocket":
            key = base64.b64encode(os.urandom(16)).decode()
            head += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            head += f"Sec-WebSocket-Key: {key}\r\n"
        self._head = head.encode() + b"\r\n"
        self._received = b""
        self._answer: asyncio.Future[None] | None = None
        self._is_tunnel = False
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._answer and not self._answer.done() and self._is_answered():
            self._answer.set_result(None)

    def _is_answered(self) -> bool:
        if self._is_tunnel:
            return self._received == _PING
        head, end, body = self._received.partition(b"\r\n\r\n")
        if self._kind == "websocket":
            return head.startswith(b"HTTP/1.1 101 ") and bool(end)
        return head.startswith(b"HTTP/1.1 200 ") and bool(end) and len(body) >= 1024

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        if self._answer and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("closed"))

    async def use(self) -> None:
        """Send a request, or a frame, and wait for what comes back."""
        if self.is_lost:
            raise ConnectionResetError("closed while at rest")
        self._received = b""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(_PING if self._is_tunnel else self._head)
        try:
            await asyncio.wait_for(self._answer, _ANSWER_S)
        except TimeoutError:
            raise ConnectionError(f"no answer: {self._received[:60]!r}") from None
        self._is_tunnel = self._kind == "websocket"


async def _run(port: int, host: str, kind: str, count: int) -> list[str]:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    held: list[_Connection] = []
    reasons: list[str] = []
    turns = asyncio.Semaphore(AT_ONCE)

    async def open_one(number: int) -> None:
        async with turns:
            source = (_address(number), 0)
            try:
                _, connection = await loop.create_connection(
                    lambda: _Connection(host, kind), "127.0.0.1", port, local_addr=source
                )
                await connection.use()
            except OSError as error:
                reasons.append(f"because opening: {error}")
            else:
                held.append(connection)

    async def use_again(connection: _Connection) -> bool:
        async with turns:
            try:
                await connection.use()
            except OSError as error:
                reasons.append(f"because using: {error}")
                return False
            return True

    await asyncio.gather(*(open_one(number) for number in range(count)))
    print(READY, flush=True)
    await stopping.wait()
    lost = sum(connection.is_lost for connection in held)
    answered = sum(await asyncio.gather(*(use_again(connection) for connection in held)))
    return [f"opened {len(held)}", f"lost {lost}", f"answered {answered}", *sorted(set(reasons))[:5]]


if __name__ == "__main__":
    words = sys.argv[1:]
    written = uvloop.run(_run(int(words[0]), words[1], words[2], int(words[3])))
    Path(words[4]).write_text("\n".join(written))
