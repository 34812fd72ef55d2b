"""The servers and Sentinels of `deploy/redis/`: three of each with TLS and users, as the files say, on free ports.

async with deployed_redis(folder) as deployed, linked(deployed.target("gateway")) as link: ...
"""

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis.exceptions
from cryptography.x509 import IPAddress

from fakes.gateway.ports import free_port
from fakes.gateway.tls import Authority
from fakes.stores.redis import USERS_FILE, eventually, redis_binary
from headgate.common.errors import StoreUnavailable
from headgate.common.stores.redis.target import Login, RedisTarget, Server
from headgate.common.stores.redis.wire import ask_alone, dial, hang_up

DEPLOYED = USERS_FILE.parent
SERVICE = "headgate"
_BOUND_S = 60.0
SENTINEL, SERVER = "sentinel.conf", "redis.conf"


class DeployedServer:
    """One process on a shipped file; `start` does what the file's head says."""

    def __init__(self, folder: Path, text: str, *flags: str) -> None:
        self.port = free_port()
        self._folder = folder
        self._text = text
        self._flags = flags
        self._process: asyncio.subprocess.Process | None = None

    @property
    def server(self) -> Server:
        return Server("127.0.0.1", self.port)

    @property
    def config(self) -> Path:
        """The file of its own, which it rewrites."""
        return self._folder / "own.conf"

    def prepare(self, *lines: str) -> None:
        """Make the copy of the first start, with lines added."""
        self._folder.mkdir()
        text = self._text.replace("dir /data", f"dir {self._folder}")
        for shipped in (6379, 26379):
            text = text.replace(f"tls-port {shipped}\n", f"tls-port {self.port}\nbind 127.0.0.1\n")
        self.config.write_text("\n".join((text, *lines, "")))

    async def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                redis_binary(), str(self.config), *self._flags, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
            )

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def end(self) -> None:
        await self.kill()
        print((self._folder / "log").read_text(errors="replace"))


@dataclass
class DeployedRedis:
    """All six, and what their users need to get in."""

    folder: Path
    servers: list[DeployedServer]
    sentinels: list[DeployedServer]

    def target(self, user: str) -> RedisTarget:
        """What the settings of a service make."""
        tls = self.folder / "tls"
        return RedisTarget(
            tuple(each.server for each in self.sentinels),
            service=SERVICE,
            is_tls=True,
            login=Login(user, f"{user}-password"),
            sentinel_login=Login("asker", "asker-password"),
            ca_file=tls / "ca.crt",
            certificate_file=tls / "tls.crt",
            key_file=tls / "tls.key",
        )

    def replace_users(self, old: str, new: str) -> None:
        """Change words of the file of users, which all servers have."""
        path = self.folder / "users.acl"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    async def load_users(self) -> None:
        """Have every server read it again, as the user may whom the files have for that."""
        for each in self.servers:
            assert await self.ask(each, Login("reloader", "reloader-password"), "ACL", "LOAD") == b"OK"

    async def ask(self, server: DeployedServer, login: Login, *words: str) -> Any:
        """Send one command on a connection of its own, again where a busy machine was too late."""
        async with asyncio.timeout(_BOUND_S):
            while True:
                try:
                    wire = await dial(self.target("translator"), server.server, login)
                    try:
                        return await ask_alone(wire, _BOUND_S, *words)
                    finally:
                        await hang_up(wire)
                except StoreUnavailable as error:
                    if not isinstance(error.__cause__, TimeoutError | redis.exceptions.TimeoutError):
                        raise

    async def replication(self, server: DeployedServer) -> dict[str, str]:
        """What a server says of its role."""
        said = await self.ask(server, self.target("translator").login, "INFO", "replication")
        return dict(line.split(":", 1) for line in said.decode().splitlines() if ":" in line)

    async def is_replica(self, server: DeployedServer) -> bool:
        return (await self.replication(server)).get("master_link_status") == "up"

    async def is_known(self, sentinel: DeployedServer) -> bool:
        """Whether a Sentinel knows both replicas and the other two."""
        told = await self.ask(sentinel, self.target("").sentinel_login, "SENTINEL", "MASTER", SERVICE)
        facts = dict(zip(told[::2], told[1::2], strict=True))
        return bool((facts[b"num-slaves"], facts[b"num-other-sentinels"]) == (b"2", b"2"))


@asynccontextmanager
async def deployed_redis(folder: Path) -> AsyncIterator[DeployedRedis]:
    """Run three servers, the first of them the primary, and three Sentinels."""
    _prepare(folder)
    announced = ("--replica-announce-ip", "127.0.0.1")
    servers = [DeployedServer(folder / f"redis-{number}", _shipped(SERVER, folder), *announced) for number in range(3)]
    primary = f"127.0.0.1 {servers[0].port}"
    text = _shipped(SENTINEL, folder).replace("redis-0.redis 6379", primary)
    announced = ("--sentinel", "--sentinel announce-ip 127.0.0.1")
    sentinels = [DeployedServer(folder / f"sentinel-{number}", text, *announced) for number in range(3)]
    deployed = DeployedRedis(folder, servers, sentinels)
    async with AsyncExitStack() as stack:
        for each in (*servers, *sentinels):
            each.prepare(*([f"replicaof {primary}"] if each in servers[1:] else []))
            stack.push_async_callback(each.end)
        await asyncio.gather(*(each.start() for each in servers))
        for each in servers[1:]:
            await eventually(lambda each=each: deployed.is_replica(each))  # type: ignore[misc]
        await asyncio.gather(*(each.start() for each in sentinels))
        for each in sentinels:
            await eventually(lambda each=each: deployed.is_known(each))  # type: ignore[misc]
        yield deployed


def _shipped(name: str, folder: Path) -> str:
    return (DEPLOYED / name).read_text().replace("/etc/redis/", f"{folder}/")


def _prepare(folder: Path) -> None:
    lines = USERS_FILE.read_text().splitlines()
    (folder / "users.acl").write_text("".join(f"{line}\n" for line in lines if line.startswith("user ")))
    authority = Authority("Redis CA")
    issued = authority.issue("redis", IPAddress(ipaddress.ip_address("127.0.0.1")))
    (folder / "tls").mkdir()
    for name, content in (("ca.crt", authority.pem), ("tls.crt", issued.chain_pem), ("tls.key", issued.key_pem)):
        (folder / "tls" / name).write_bytes(content)
