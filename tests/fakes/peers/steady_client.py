"""A client that never stops asking, and remembers every answer that was not as it should be."""

import asyncio
import time
from collections import Counter
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import aiohttp

CONNECTIONS = 4
PAUSE_S = 0.002
"""Between two requests of a connection: some hundred requests a second, and cores left for what is tested."""


class SteadyClient:
    """`async with SteadyClient(port, host) as client: ...; assert not client.failures`."""

    def __init__(
        self,
        port: int,
        host: str,
        path: str = "/",
        expected: int = 200,
        connections: int = CONNECTIONS,
        *,
        address: str = "127.0.0.1",
        keep_alive: bool = True,
        patience_s: float = 0.0,
    ) -> None:
        """Choose what is asked; nothing is before `async with`.

        Args:
            port: of the server.
            host: in the requests' head.
            path: of the requests.
            expected: status; any other is a failure.
            connections: how many there are at once.
            address: of the server.
            keep_alive: whether a connection has more than one request.
            patience_s: for how long one request is made again after a connection was refused or lost.
        """
        self.answers: Counter[str] = Counter()
        """Answers by the name of the backend that gave them."""
        self.failures: list[str] = []
        self.longest_s = 0.0
        """The slowest answer."""
        self.retries = 0
        self._url = f"http://{address}:{port}{path}"
        self._options: dict[str, Any] = {"headers": {"Host": host}}
        self._expected = expected
        self._connections = connections
        self._keep_alive = keep_alive
        self._patience_s = patience_s
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._ask_for_ever()) for _ in range(self._connections)]
        await self.wait_for_more(self._connections)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        await asyncio.gather(*self._tasks)

    def next_url(self) -> str:
        """What the next request asks for."""
        return self._url

    @property
    def count(self) -> int:
        return self.answers.total() + len(self.failures)

    async def wait_for_more(self, count: int, within_s: float = 30.0) -> None:
        """Wait until so many further requests were answered."""
        aim, end = self.count + count, time.monotonic() + within_s
        while self.count < aim:
            assert time.monotonic() < end, f"only {self.count} of {aim} requests ended; failures: {self.failures[:3]}"
            await asyncio.sleep(0.01)

    async def wait_for_answer(self, name: str, within_s: float = 30.0) -> None:
        """Wait until a backend answered this client: that another client saw it says nothing of this one's requests."""
        end = time.monotonic() + within_s
        while name not in self.answers:
            assert time.monotonic() < end, f"{name} answered nothing; failures: {self.failures[:3]}"
            await asyncio.sleep(0.01)

    async def _ask_for_ever(self) -> None:
        connector = aiohttp.TCPConnector(limit=1, force_close=not self._keep_alive)
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=30)) as session:
            while not self._stopping.is_set():
                await self._ask(session)
                with suppress(TimeoutError):
                    async with asyncio.timeout(PAUSE_S):
                        await self._stopping.wait()

    async def _ask(self, session: aiohttp.ClientSession) -> None:
        began = time.monotonic()
        while not await self._is_answered(session, last=time.monotonic() - began >= self._patience_s):
            self.retries += 1
            await asyncio.sleep(PAUSE_S)
        self.longest_s = max(self.longest_s, time.monotonic() - began)

    async def _is_answered(self, session: aiohttp.ClientSession, *, last: bool) -> bool:
        """Ask once; a lost connection counts as an answer only if it is the last try."""
        try:
            async with session.get(self.next_url(), **self._options) as answer:
                body = await answer.read()
                if answer.status == self._expected:
                    self.answers[(await answer.json())["name"]] += 1
                else:
                    reason = answer.headers.get("x-headgate-reason", "")
                    self.failures.append(f"{answer.status} {reason} {body[:200]!r}")
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError) as error:
            if not last and isinstance(error, aiohttp.ClientConnectionError | aiohttp.ClientPayloadError):
                return False
            self.failures.append(f"{type(error).__name__}: {error}")
        return True
