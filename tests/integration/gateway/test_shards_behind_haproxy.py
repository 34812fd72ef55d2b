"""HAProxy sends requests to the gateways of their shards, by the configuration that docs/shards.md has."""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from fakes.gateway.ports import free_ports
from fakes.gateway.proxied import Client, answering
from fakes.gateway.served import Served, asking, at, named, origins, read_answer, served, site, to
from fakes.gateway.tls import unverified
from headgate.common.table import TableEntry
from headgate.common.table.shards import Shard

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="HAProxy is not installed")
PAGE = Path(__file__).parents[3] / "docs" / "shards.md"
SHARDS = [Shard(number, 4) for number in range(4)]
NAMES = [f"n{number}.shop.example" for number in range(24)]
DEFAULTS = "defaults\n    timeout connect 5s\n    timeout client 30s\n    timeout server 30s\n\n"


def configuration(http: int, https: int, gateways: list[Served]) -> str:
    """The page's, with other addresses."""
    [written] = re.findall(r"```haproxy\n(.*?)```", PAGE.read_text(), re.DOTALL)
    written = written.replace("bind :80", f"bind 127.0.0.1:{http}").replace("bind :443", f"bind 127.0.0.1:{https}")
    for number, gateway in enumerate(gateways):
        for port, own in ((8080, gateway.port), (8443, gateway.https_port)):
            before = f"192.0.2.{10 + number}:{port}"
            assert before in written
            written = written.replace(before, f"127.0.0.1:{own}")
    return DEFAULTS + written


@asynccontextmanager
async def haproxy(config: Path, port: int) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec("haproxy", "-db", "-f", str(config))
    try:
        async with asyncio.timeout(30):
            while True:
                with suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                await asyncio.sleep(0.02)
        yield
    finally:
        process.terminate()
        await process.wait()


async def status(port: int, host: str, *, is_secure: bool = False) -> int:
    tls = {"ssl": unverified(), "server_hostname": host} if is_secure else {}
    client = Client(*await asyncio.open_connection("127.0.0.1", port, **tls))  # type: ignore[arg-type]
    try:
        await client.send(asking(host=host.upper() + "." if not is_secure else host))
        return (await read_answer(client)).status
    finally:
        client.close()


async def test_every_host_comes_to_its_shard(tmp_path: Path) -> None:
    http, https = free_ports(2)
    async with AsyncExitStack() as stack:
        [origin] = await stack.enter_async_context(origins(answering(named(b"one"))))
        table: list[TableEntry] = [at(origin.port), *(site(to("up"), host=name) for name in NAMES)]
        gateways = [await stack.enter_async_context(served(*table, shard=shard)) for shard in SHARDS]
        (tmp_path / "haproxy.cfg").write_text(configuration(http, https, gateways))
        await stack.enter_async_context(haproxy(tmp_path / "haproxy.cfg", http))
        assert {shard for shard in SHARDS for name in NAMES if shard.has_name(name.encode())} == set(SHARDS)
        assert {await status(http, name) for name in NAMES} == {200}
        assert {await status(https, name, is_secure=True) for name in NAMES} == {200}
        assert {await status(http, f"un{name}") for name in NAMES} == {404}
        # Without HAProxy three of four gateways refuse a host.
        answers = [await status(gateway.port, NAMES[0]) for gateway in gateways]
        assert sorted(answers) == [200, 421, 421, 421]
