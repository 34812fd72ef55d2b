"""NATS servers with a configuration of their own: TLS, users, a cluster.

async with NatsServer(folder, CONFIG) as server: ...
"""

import asyncio
import contextlib
import json
import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from fakes.gateway.ports import free_ports
from headgate.cli.up.embedded_nats import server_binary

START_S = 20.0


class NatsServer:
    """A server on a configuration; its log is in the folder."""

    def __init__(
        self,
        folder: Path,
        config: Path | str,
        *,
        name: str = "one",
        flags: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare.

        Args:
            folder: of this server; made if absent.
            config: a file, or the text of one.
            name: of the server.
            flags: for the command line; they go before what the configuration says.
            environment: variables besides its name, for the configuration.
        """
        self.name = name
        self.folder = folder
        (self.port,) = free_ports(1)
        self._config = config
        self._flags = flags
        self._environment = dict(environment or {})
        self._process: asyncio.subprocess.Process | None = None

    @property
    def config(self) -> Path:
        """The file that it reads."""
        return self.folder / "nats.conf" if isinstance(self._config, str) else self._config

    def configure(self, config: Path | str) -> None:
        """Read another file, or the text of one, when it starts again."""
        self._config = config

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.kill()
        if error is not None:
            print(self.log)

    async def start(self) -> None:
        """Start, and wait until the server greets."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if isinstance(self._config, str):
            self.config.write_text(self._config)
        command = [server_binary(), f"--config={self.config}", "--addr=127.0.0.1", f"--port={self.port}", *self._flags]
        if "$SERVER_NAME" not in self.config.read_text():
            command.append(f"--name={self.name}")
        environment = os.environ | {"SERVER_NAME": self.name} | self._environment
        with (self.folder / "log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command, cwd=self.folder, env=environment, stdout=log, stderr=log
            )
        async with asyncio.timeout(START_S):
            while not await self._greets():
                assert self._process.returncode is None, self.log
                await asyncio.sleep(0.02)

    async def _greets(self) -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            try:
                info = json.loads((await reader.readline()).removeprefix(b"INFO "))
                return bool(info["server_name"] == self.name)
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
        except (OSError, ValueError, KeyError):
            return False

    def published(self, user: str) -> set[str]:
        """Subjects on which clients of a user have published, of a server that was started with `--trace`."""
        return set(re.findall(rf'"HEADGATE/user:{user}" - <<- \[H?PUB (\S+)', self.log))

    async def reload(self) -> None:
        """Have it read its configuration again, and wait until it did."""
        before = self.log.count("Reloaded server configuration")
        self.process.send_signal(signal.SIGHUP)
        async with asyncio.timeout(START_S):
            while self.log.count("Reloaded server configuration") == before:
                assert "Failed to reload" not in self.log, self.log
                await asyncio.sleep(0.02)

    async def kill(self) -> None:
        """End with SIGKILL, as a crash does; harmless when it does not run."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def stop(self) -> None:
        """End with SIGTERM."""
        self.process.terminate()
        async with asyncio.timeout(START_S):
            await self.process.wait()
