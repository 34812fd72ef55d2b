"""Rotation of the keys that Secrets are sealed to, as docs/operations.md has it, while clients ask over TLS."""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from fakes.command import headgate
from fakes.gateway.process import GatewayProcess
from fakes.gateway.tls import SelfSigned
from fakes.peers.echo import EchoServer
from fakes.service_process import running_service
from fakes.translator.manifests import ingress, service, write
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.service.tasks import cancel

HOST = "shop.example"
BOUND_S = 60.0


class Client:
    """Asks every replica that may be asked, again and again; only the Secret's certificate will do."""

    def __init__(self, certificate: SelfSigned) -> None:
        self._context = ssl.create_default_context(cadata=certificate.certificate_pem.decode())
        self._ports: dict[int, asyncio.Lock] = {}
        self.answers = 0
        self.failure: Exception | None = None

    async def run(self) -> None:
        while self.failure is None:
            for port, lock in list(self._ports.items()):
                async with lock:
                    if port in self._ports:
                        try:
                            await self._ask(port)
                        except (OSError, EOFError, AssertionError) as failure:
                            self.failure = failure
            await asyncio.sleep(0.01)

    async def _ask(self, port: int) -> None:
        async with asyncio.timeout(BOUND_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=self._context, server_hostname=HOST)
            writer.write(f"GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n")
            await reader.read()
            writer.close()
        assert b" 200 " in head, head
        self.answers += 1

    async def take(self, port: int) -> None:
        """Ask a replica from now on; return after its first answer."""
        self._ports[port] = asyncio.Lock()
        await self.more()

    async def leave(self, port: int) -> None:
        """Ask a replica no more, as a load balancer does before it is stopped."""
        if port in self._ports:
            async with self._ports[port]:
                del self._ports[port]

    async def more(self) -> None:
        """Wait for two answers of each."""
        wanted = self.answers + 2 * len(self._ports)
        async with asyncio.timeout(BOUND_S):
            while self.answers < wanted:
                assert self.failure is None, repr(self.failure)
                await asyncio.sleep(0.01)


async def https_port(gateway: GatewayProcess) -> int:
    await gateway.ready()
    (port,) = re.findall(r"https://127.0.0.1:(\d+)", (await gateway.admin("/version"))[1])
    return int(port)


class Replica:
    """A gateway that is asked while it runs."""

    def __init__(self, client: Client, folder: Path, url: str) -> None:
        self._client, self._folder, self._url = client, folder, url
        self._gateway: GatewayProcess | None = None
        self._port = 0

    async def start(self, *keys: Path) -> None:
        """Start it, or start it anew, with these private keys."""
        await self.stop()
        flags = [f"--sealing-private-keys={key / 'gateway.key'}" for key in keys]
        self._gateway = await GatewayProcess(self._folder, self._url, *flags).__aenter__()
        self._port = await https_port(self._gateway)
        await self._client.take(self._port)

    async def stop(self) -> None:
        """End it in an orderly way, once nobody asks it."""
        if self._gateway is not None:
            gateway, self._gateway = self._gateway, None
            try:
                await self._client.leave(self._port)
                assert await gateway.stop() == 0, gateway.log
            finally:
                await gateway.__aexit__(None, None, None)


@asynccontextmanager
async def replicas(client: Client, folder: Path, url: str) -> AsyncIterator[tuple[Replica, Replica]]:
    asking = asyncio.create_task(client.run())
    both = Replica(client, folder / "g1", url), Replica(client, folder / "g2", url)
    async with AsyncExitStack() as ends:
        ends.push_async_callback(cancel, asking)
        for each in both:
            ends.push_async_callback(each.stop)
        yield both
        assert client.failure is None, repr(client.failure)


def watcher(url: str, manifests: Path, folder: Path, *keys: Path) -> tuple[str, ...]:
    public = [f"--sealing-public-keys={key / 'gateway.pub'}" for key in keys]
    return (f"--nats-url={url}", f"--manifests={manifests}", f"--data-dir={folder}", *public)


@asynccontextmanager
async def control_plane(folder: Path) -> AsyncIterator[str]:
    """A NATS server and a translator; yields the server's URL."""
    broker = EmbeddedNats(folder / "nats")
    await broker.start()
    try:
        async with running_service("translator", f"--nats-url={broker.url}", log=folder / "translator.log"):
            yield broker.url
    finally:
        await broker.stop()


async def test_tls_is_served_while_the_sealing_key_is_exchanged(tmp_path: Path) -> None:
    old, new, manifests = [tmp_path / name for name in ("old", "new", "manifests")]
    manifests.mkdir()
    for keys in (old, new):
        await headgate("keys", str(keys))
    certificate = SelfSigned(HOST)
    async with EchoServer("shop") as echo, control_plane(tmp_path) as url:
        tls = ingress("shop", HOST, "shop") + f"  tls: [{{hosts: [{HOST}], secretName: shop-tls}}]\n"
        secret = json.dumps(certificate.secret("default", "shop-tls")) + "\n"
        write(manifests, "shop.yaml", tls, service("shop", echo.port), secret)
        client = Client(certificate)
        async with replicas(client, tmp_path, url) as both:
            watching = watcher(url, manifests, tmp_path / "w1", old)
            async with running_service("watcher", *watching, log=tmp_path / "w1.log"):
                for each in both:
                    await each.start(old)
                for each in both:
                    await each.start(new, old)
                asked = ("sealed", f"--nats-url={url}", f"--without={old / 'gateway.pub'}")
                assert (
                    await headgate(*asked, code=1)
                ).out == "opened by no other key: Certificate local/default/shop-tls\n"
            watching = watcher(url, manifests, tmp_path / "w2", new)
            async with running_service("watcher", *watching, log=tmp_path / "w2.log"):
                async with asyncio.timeout(BOUND_S):
                    while (await headgate(*asked, code=None)).code:  # noqa: ASYNC110 - another process
                        await asyncio.sleep(0.1)
                for each in both:
                    await each.start(new)
                await client.more()
