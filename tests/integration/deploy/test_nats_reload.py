"""What the chart runs beside a NATS server has it show certificates that were renewed."""

import asyncio
import secrets
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fakes.stores.nats_cluster import write_certificates
from fakes.stores.nats_servers import START_S, NatsServer
from headgate.cli.up.embedded_nats import server_binary

RELOAD = Path(__file__).parents[3] / "deploy" / "helm" / "headgate" / "files" / "reload.py"


@asynccontextmanager
async def reloading(name: str, port: int, folder: Path) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(sys.executable, RELOAD, name, str(port), folder)
    try:
        yield
    finally:
        process.terminate()
        assert await process.wait() == 0


async def shown(port: int) -> bytes:
    """Return the certificate of a server, in DER."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await reader.readline()
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    await writer.start_tls(context)
    certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    assert isinstance(certificate, bytes)
    return certificate


async def test_a_server_shows_every_certificate_that_is_mounted_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary, tls = tmp_path / f"nats-{secrets.token_hex(4)}", tmp_path / "tls"
    binary.symlink_to(server_binary())  # under a name of its own, as other servers of this machine are not to be told
    monkeypatch.setattr("fakes.stores.nats_servers.server_binary", lambda: str(binary))
    write_certificates(tls)
    config = f'server_name: one\ntls {{ cert_file: "{tls}/tls.crt", key_file: "{tls}/tls.key" }}\n'
    async with NatsServer(tmp_path / "server", config) as server, reloading(binary.name, server.port, tls):
        for _ in range(2):
            before = await shown(server.port)
            write_certificates(tls)
            async with asyncio.timeout(START_S):
                while await shown(server.port) == before:  # noqa: ASYNC110 - a server has no event
                    await asyncio.sleep(0.1)
