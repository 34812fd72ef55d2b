"""A gateway as a process of its own, on free ports; tables are committed to a store by the test."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

from fakes.gateway.ports import free_ports
from fakes.gateway.table import publish
from headgate.common.bus.connection import Bus
from headgate.common.stores import SnapshotStore
from headgate.common.stores.nats import NatsStores
from headgate.common.table_image import TableImage

BOUND_S = 60.0
"""Of everything that is waited for, on a busy machine."""


class GatewayProcess:
    """`async with GatewayProcess(folder, nats_url, "--workers=2") as gateway: await gateway.ready()`."""

    def __init__(self, data_dir: Path, nats_url: str, *flags: str, http_host: str = "127.0.0.1") -> None:
        self.http_port, self.admin_port = free_ports(2)
        self.log_file = data_dir / "gateway.log"
        data_dir.mkdir(exist_ok=True)
        if not any(flag.startswith("--allowed-destinations") for flag in flags):
            flags += ("--allowed-destinations=127.0.0.0/8",)
        self._flags = (
            *flags,
            f"--data-dir={data_dir}",
            f"--nats-url={nats_url}",
            f"--http-host={http_host}",
            f"--http-port={self.http_port}",
            "--https-port=0",
            f"--admin-port={self.admin_port}",
        )
        self._process: asyncio.subprocess.Process | None = None
        self._session: aiohttp.ClientSession | None = None

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=BOUND_S))
        with self.log_file.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "headgate.gateway", *self._flags), stdout=log, stderr=log, env={**os.environ}
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None
        await self._session.close()
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        if error is not None:
            print(self.log)

    async def admin(self, path: str) -> tuple[int, str]:
        """Answer of the admin site; 0 while it does not answer."""
        assert self._session is not None
        try:
            async with self._session.get(f"http://127.0.0.1:{self.admin_port}{path}") as answer:
                return answer.status, await answer.text()
        except (aiohttp.ClientError, TimeoutError):
            return 0, ""

    async def ready(self, status: int = 200) -> None:
        """Wait until the gateway says that it is ready, or that it is not."""
        async with asyncio.timeout(BOUND_S):
            while (await self.admin("/readyz"))[0] != status:
                self._check_alive()
                await asyncio.sleep(0.02)

    async def serves(self, version: str) -> None:
        """Wait until the gateway (its first worker) serves a version."""
        async with asyncio.timeout(BOUND_S):
            while f'"version": "{version}"' not in (await self.admin("/version"))[1]:
                self._check_alive()
                await asyncio.sleep(0.02)

    async def listens(self, text: str) -> None:
        """Wait until the gateway's first worker says that it listens so."""
        async with asyncio.timeout(BOUND_S):
            while text not in json.loads((await self.admin("/version"))[1] or "{}").get("listeners", ()):
                self._check_alive()
                await asyncio.sleep(0.02)

    def _check_alive(self) -> None:
        assert self.process.returncode is None, self.log

    async def get(self, host: str = "foo.com", path: str = "/", session: aiohttp.ClientSession | None = None) -> Any:
        """Ask through the gateway; the JSON answer of an echo server."""
        client = session or self._session
        assert client is not None
        async with client.get(f"http://127.0.0.1:{self.http_port}{path}", headers={"Host": host}) as answer:
            return await answer.json() if answer.status == 200 else answer.status

    async def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.wait_for(self.process.wait(), BOUND_S)


async def commit(store: SnapshotStore, image: TableImage, version: tuple[int, int]) -> None:
    """Commit an image as a translator does."""
    manifest, chunks = publish(image, version)
    await store.put_chunks(chunks)
    await store.commit(manifest, await store.read_pointer(manifest.table))


async def open_stores(url: str) -> tuple[Bus, NatsStores]:
    """Stores on a running server."""
    bus = await Bus.connect(url, name="test")
    return bus, await NatsStores.open(bus)
