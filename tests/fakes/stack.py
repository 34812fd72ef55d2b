"""The whole stack as a user starts it: `headgate up` as a process of its own, on free ports and a folder of its own."""

import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

from fakes.gateway.ports import free_ports
from headgate.cli.up.data_dir import read_state
from headgate.operations.status.up_state import UpState

START_S = 120.0
"""Bound of a start on a busy machine; five seconds are usual. Each of the six processes takes a second of a core."""
POLL_S = 0.02


@dataclass(frozen=True)
class Answer:
    """What a client got."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Stack:
    """`async with Stack(manifests=folder) as stack: answer = await stack.get("demo.localhost", "/")`."""

    def __init__(
        self,
        *,
        manifests: Path | None = None,
        kubeconfig: Path | None = None,
        data_dir: Path | None = None,
        workers: int = 1,
        publish_address: str = "",
        extra: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        wait_until_ready: bool = True,
        start_within_s: float = START_S,
        has_console: bool = False,
    ) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="headgate-stack-") if data_dir is None else None
        self.data_dir = data_dir or Path(self._temporary.name if self._temporary else "")
        self.http_port, self.https_port, self.admin_port = free_ports(3)
        self.console_port = free_ports(1)[0] if has_console else 0
        """0: no console."""
        source = [f"--manifests={manifests}"] if manifests else []
        source += [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
        self._flags = [*source, f"--workers={workers}", *extra]
        # A cluster's objects name no loopback addresses, but a fake one's.
        self._environment = {"HEADGATE_ALLOWED_DESTINATIONS": "127.0.0.0/8"} if kubeconfig else {}
        self._environment |= environment or {}
        if publish_address:
            self._environment["HEADGATE_PUBLISH_ADDRESSES"] = publish_address
        self._wait_until_ready = wait_until_ready
        self._start_within_s = start_within_s
        self._process: asyncio.subprocess.Process | None = None
        self._session: aiohttp.ClientSession | None = None

    @property
    def command(self) -> list[str]:
        """The command line that the stack is started with."""
        return [
            *(sys.executable, "-m", "headgate.cli", "up", *self._flags),
            f"--http-port={self.http_port}",
            f"--https-port={self.https_port}",
            f"--admin-port={self.admin_port}",
            f"--console-port={self.console_port}",
            f"--data-dir={self.data_dir}",
        ]

    def set_environment(self, environment: Mapping[str, str]) -> None:
        """Have further variables from the next start on, as where they depend on the ports."""
        self._environment |= environment

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    @property
    def log(self) -> str:
        """Everything that `up` and its services printed."""
        return self._log_file.read_text(errors="replace") if self._log_file.exists() else ""

    @property
    def _log_file(self) -> Path:
        return self.data_dir / "test-output.log"

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            print(self.log)
        await self._end()

    async def _end(self) -> None:
        if self._session is not None:
            await self._session.close()
        if self._process is not None:
            await self.stop()
        if self._temporary is not None:
            self._temporary.cleanup()

    async def start(self) -> None:
        """Start, and wait until a table is served."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        with self._log_file.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self.command, stdout=log, stderr=log, env={**os.environ, **self._environment}
            )
        if self._wait_until_ready:
            await self.wait_for_state(lambda state: state.is_ready, self._start_within_s)

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal to `up`, wait until it has ended and return its exit code."""
        if self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(START_S):
            return await self.process.wait()

    def state(self) -> UpState:
        """What `up` says about itself, with the process ids of the services."""
        state = read_state(self.data_dir)
        assert state is not None, "up.json is absent"
        return state

    async def wait_for_state(self, is_reached: Any, within_s: float = START_S) -> UpState:
        """Wait until `up.json` satisfies a condition."""
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            state = read_state(self.data_dir)
            if state is not None and is_reached(state):
                return state
            if self.process.returncode is not None:
                raise AssertionError(f"up ended with exit code {self.process.returncode}:\n{self.log}")
            await asyncio.sleep(POLL_S)
        raise AssertionError(f"up.json is {read_state(self.data_dir)}:\n{self.log}")

    async def wait_for_log(self, text: str) -> None:
        """Wait until `up` or a service has printed a text."""
        end = time.monotonic() + START_S
        while text not in self.log:
            assert time.monotonic() < end, self.log
            await asyncio.sleep(POLL_S)

    async def get(
        self, host: str, path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Answer:
        """Make one request over plain HTTP on a kept connection.

        Raises:
            aiohttp.ClientError: there was no answer.
        """
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=START_S))
        url = f"http://127.0.0.1:{self.http_port}{path}"
        async with self._session.request(
            method, url, headers={"Host": host, **(headers or {})}, data=body or None, allow_redirects=False
        ) as answer:
            return Answer(answer.status, answer.headers, await answer.read())

    async def wait_for_answer(
        self, host: str, path: str, status: int = 200, *, name: str | None = None, within_s: float = START_S
    ) -> Answer:
        """Ask until the answer has a status and, if given, comes from the demo backend of a name."""
        last: Answer | Exception | None = None
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            try:
                last = await self.get(host, path)
            except (aiohttp.ClientError, TimeoutError) as error:
                last = error
            else:
                if last.status == status and (name is None or last.json["name"] == name):
                    return last
            await asyncio.sleep(POLL_S)
        raise AssertionError(f"{host}{path} did not answer {status} {name or ''} but {last}:\n{self.log}")


@asynccontextmanager
async def running_service(stack: Stack, name: str, *flags: str) -> AsyncIterator[None]:
    """Run one more service on a stack's NATS server."""
    state = read_state(stack.data_dir)
    assert state is not None
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "headgate.cli", name, f"--nats-url={state.nats_url}"),
        *(f"--data-dir={stack.data_dir}", *flags),
        stdout=asyncio.subprocess.DEVNULL,
        env=os.environ,
    )
    try:
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
