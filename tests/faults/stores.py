"""The stores under test: NATS, alone or three servers with TLS and users, and Redis with Sentinels for the tables."""

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import nats.errors

from fakes.stores.nats_cluster import NatsCluster, nats_cluster
from fakes.stores.nats_servers import NatsServer
from fakes.stores.redis import RedisServer, WatchedPair, eventually
from headgate.common.bus.access import NatsAccess
from headgate.common.bus.connection import Bus

UP_S = 30.0
CONFIG = 'jetstream {{ store_dir: "{folder}", sync_interval: always }}\n'


class Broker:
    """NATS servers, and how services get in."""

    def __init__(self, folder: Path, servers: Sequence[NatsServer], cluster: NatsCluster | None) -> None:
        self.servers = servers
        self._folder = folder
        self._cluster = cluster

    def access(self) -> NatsAccess:
        """For the test itself."""
        return (
            self._cluster.access("admin") if self._cluster else NatsAccess(f"nats://127.0.0.1:{self.servers[0].port}")
        )

    def flags(self, user: str, ports: Sequence[int]) -> list[str]:
        """For a service that reaches the servers through these ports."""
        scheme = "tls" if self._cluster else "nats"
        url = ",".join(f"{scheme}://127.0.0.1:{port}" for port in ports)
        login = self._cluster.flags(user) if self._cluster else []
        return [*(flag for flag in login if not flag.startswith("--nats-url")), f"--nats-url={url}"]

    async def kill(self) -> None:
        """Crash all servers."""
        await asyncio.gather(*(server.kill() for server in self.servers))

    async def start(self) -> None:
        """Start all servers, and wait until they have agreed on who leads what."""
        await asyncio.gather(*(server.start() for server in self.servers))
        bus = await Bus.connect(self.access(), name="whether it is up")
        try:
            async with asyncio.timeout(UP_S):
                while not await _is_led(bus):  # noqa: ASYNC110 - elections have no event
                    await asyncio.sleep(0.1)
        finally:
            await bus.close()

    async def copy(self) -> None:
        """Keep a copy of all that is stored."""
        for server in self.servers:
            server.process.send_signal(signal.SIGSTOP)
        for server in self.servers:
            shutil.rmtree(self._copy_of(server), ignore_errors=True)
            shutil.copytree(server.folder / "jetstream", self._copy_of(server))
        for server in self.servers:
            server.process.send_signal(signal.SIGCONT)

    def lose(self) -> None:
        """Forget all that is stored; the servers do not run."""
        for server in self.servers:
            shutil.rmtree(server.folder / "jetstream", ignore_errors=True)

    def restore(self) -> None:
        """Put the copy in the place of what is stored; the servers do not run."""
        self.lose()
        for server in self.servers:
            shutil.copytree(self._copy_of(server), server.folder / "jetstream")

    def _copy_of(self, server: NatsServer) -> Path:
        return self._folder / f"copy-of-{server.name}"


async def _is_led(bus: Bus) -> bool:
    """Whether all streams can be used: those of a cluster elect leaders, which takes some seconds."""
    try:
        js = bus.nc.jetstream(timeout=1.0)
        await js.account_info()
        infos = [await js.stream_info(stream.config.name) for stream in await js.streams_info() if stream.config.name]
    except (nats.errors.Error, OSError):
        return False
    return all(info.cluster is None or info.cluster.leader for info in infos)


@asynccontextmanager
async def broker(folder: Path, *, is_cluster: bool) -> AsyncIterator[Broker]:
    """Run one server, or three as `deploy/nats/` has them."""
    if is_cluster:
        async with nats_cluster(folder) as cluster:
            yield Broker(folder, cluster.servers, cluster)
        return
    home = folder / "nats"
    async with NatsServer(home, CONFIG.format(folder=home)) as server:
        yield Broker(folder, [server], None)


class Tables:
    """A primary and a replica of Redis, which change places when the primary dies."""

    def __init__(self, pair: WatchedPair) -> None:
        self.pair = pair
        servers = ",".join(map(str, pair.target.servers))
        self.url = f"redis+sentinel://{servers}/{pair.target.service}"
        self._copy: list[bytes] = []

    @property
    def primary(self) -> RedisServer:
        return self.pair.primary

    async def settle(self) -> None:
        """Let the other server follow the one that the Sentinels have made the primary."""
        await eventually(self._is_chosen)
        await self.pair.replica.ask("REPLICAOF", "127.0.0.1", self.primary.port)
        await eventually(self._is_replicating)

    async def _is_chosen(self) -> bool:
        """Whether the Sentinels name a primary that knows that it is one."""
        service = self.pair.target.service
        named = [await each.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", service) for each in self.pair.sentinels]
        port, *others = {int(each[1]) for each in named}
        if others:
            return False
        if port != self.primary.port:
            self.pair.primary, self.pair.replica = self.pair.replica, self.pair.primary
        return b"role:master" in await self.primary.ask("INFO", "replication")

    async def cut_replication(self) -> None:
        """From now on what is written is lost with the primary."""
        await self.settle()
        await self.pair.cut_replication()

    async def fail_over(self) -> None:
        """Crash the primary, let the replica take its place, and start the other again.

        It begins as a primary too, and must not be taken for the one before all Sentinels have heard of the new one.
        """
        await self.pair.kill_primary()
        await eventually(self._is_chosen)
        await self.pair.replica.start()
        await self.settle()

    async def _is_replicating(self) -> bool:
        return b"master_link_status:up" in await self.pair.replica.ask("INFO", "replication")

    async def copy(self) -> None:
        """Keep a copy of all that is stored."""
        await self.settle()
        self._copy = []
        for key in await self.primary.ask("KEYS", "*"):
            left_ms, content = await self.primary.ask("PTTL", key), await self.primary.ask("DUMP", key)
            if content is not None:
                self._copy += [key, b"%d" % max(left_ms, 0), content]

    async def lose(self) -> None:
        """Forget all that is stored."""
        await self.settle()
        await self.primary.ask("FLUSHALL")

    async def restore(self) -> None:
        """Put the copy in the place of what is stored."""
        script = (
            "redis.call('FLUSHALL') for i = 1, #ARGV, 3 do redis.call('RESTORE', ARGV[i], ARGV[i + 1], ARGV[i + 2]) end"
        )
        await self.settle()
        await self.primary.ask("EVAL", script, 0, *self._copy)


@asynccontextmanager
async def tables(folder: Path) -> AsyncIterator[Tables]:
    """Run a primary, a replica and three Sentinels."""
    async with AsyncExitStack() as stack:
        pair = WatchedPair(folder)
        stack.push_async_callback(pair.end)
        await pair.start()
        yield Tables(pair)
