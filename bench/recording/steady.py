"""A steady client in a process of its own: so many requests a second, whether or not answers come.

A request is asked when its time has come, not when the one before was answered: with one every millisecond on enough
connections a stall of 50 ms shows as fifty slow answers, where a client that waits would show one. Times are
CLOCK_MONOTONIC, which all processes of a machine share.

    python -m bench.recording.steady PORT RATE CONNECTIONS FILE HOST...

Writes a line `asked answered status body` for each request to FILE when it gets SIGTERM. Status 0: no answer.
"""

import asyncio
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import httptools
import uvloop

from bench.recording.recorder import READY, Recorder


@dataclass(frozen=True, slots=True)
class Answer:
    """One request of a steady client."""

    asked: float
    """Monotonic seconds at which it was due to be sent and handed to a connection or queued for one."""
    answered: float
    status: int
    """0: the connection broke or could not be opened."""
    body: str

    @property
    def latency_ms(self) -> float:
        """From asked to completely answered."""
        return (self.answered - self.asked) * 1e3


class SteadyClient(Recorder):
    """Runs the client while the context lasts; `answers` afterwards."""

    def __init__(
        self, folder: Path, port: int, hosts: list[str], *, rate: int, connections: int, core: int | None = None
    ) -> None:
        super().__init__("steady", folder, [str(port), str(rate), str(connections)], hosts, core=core)

    @property
    def answers(self) -> list[Answer]:
        """All requests of the client."""
        return [_parse(line) for line in self.lines]


def _parse(line: str) -> Answer:
    asked, answered, status, body = line.split(" ", 3)
    return Answer(float(asked), float(answered), int(status), body)


class _Connection(asyncio.Protocol):
    """One keep-alive connection with at most one request under way."""

    def __init__(self, client: "_Client") -> None:
        self._client = client
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._asked: float | None = None
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but ancestry

    def ask(self, asked: float, head: bytes) -> None:
        assert self._transport is not None
        self._asked = asked
        self._transport.write(head)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._body = b""

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        assert self._asked is not None
        asked, self._asked = self._asked, None
        self._client.record(asked, self._parser.get_status_code(), self._body)
        keeps_open = self._parser.should_keep_alive()
        self._parser = httptools.HttpResponseParser(self)
        if keeps_open:
            self._client.take_back(self)
        elif self._transport is not None:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._asked is not None:
            self._client.record(self._asked, 0, str(exc or "closed").encode())
        self._client.replace(self)


class _Client:
    def __init__(self, port: int, rate: int, hosts: list[str]) -> None:
        self._port = port
        self._interval = 1 / rate
        self._heads = deque(f"GET / HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n\r\n".encode() for host in hosts)
        self._loop = asyncio.get_running_loop()
        self._idle: deque[_Connection] = deque()
        self._waiting: deque[float] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_stopping = False
        self.lines: list[str] = []

    async def connect(self) -> None:
        """Open one connection and put it among the idle."""
        _, connection = await self._loop.create_connection(lambda: _Connection(self), "127.0.0.1", self._port)
        self.take_back(connection)

    def replace(self, lost: _Connection) -> None:
        """Open a connection in place of a lost one, trying until it works."""
        if lost in self._idle:
            self._idle.remove(lost)
        if not self.is_stopping:
            task = self._loop.create_task(self._reconnect())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _reconnect(self) -> None:
        while not self.is_stopping:
            try:
                return await self.connect()
            except OSError as error:
                now = time.monotonic()
                self.record(now, 0, str(error).encode())
                await asyncio.sleep(0.1)

    def take_back(self, connection: _Connection) -> None:
        """Use a connection for the longest waiting request, or keep it."""
        if self._waiting:
            self._send(connection, self._waiting.popleft())
        else:
            self._idle.append(connection)

    def tick(self, due: float) -> None:
        """Ask once, and again an interval later; what the client itself was late for is skipped, not made up."""
        now = time.monotonic()
        if self._idle:
            self._send(self._idle.popleft(), now)
        else:
            self._waiting.append(now)
        following = max(due + self._interval, now)
        if not self.is_stopping:
            self._loop.call_later(max(0.0, following - now), self.tick, following)

    def _send(self, connection: _Connection, asked: float) -> None:
        connection.ask(asked, self._heads[0])
        self._heads.rotate(-1)

    def record(self, asked: float, status: int, body: bytes) -> None:
        """Note one answer."""
        text = body[:40].decode(errors="replace").replace("\n", " ")
        self.lines.append(f"{asked:.6f} {time.monotonic():.6f} {status} {text}")


async def _run(port: int, rate: int, connections: int, hosts: list[str]) -> list[str]:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    client = _Client(port, rate, hosts)
    for _ in range(connections):
        await client.connect()
    print(READY, flush=True)
    client.tick(time.monotonic())
    await stopping.wait()
    client.is_stopping = True
    await asyncio.sleep(0.2)  # for what is under way
    return client.lines


if __name__ == "__main__":
    words = sys.argv[1:]
    written = uvloop.run(_run(int(words[0]), int(words[1]), int(words[2]), words[4:]))
    Path(words[3]).write_text("\n".join(written))
