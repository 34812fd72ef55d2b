"""TLS policies and certificates of a table, in a gateway as a process."""

import asyncio
import re
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.gateway.process import BOUND_S, GatewayProcess, commit
from fakes.gateway.table import certificate, host, route, upstream
from fakes.gateway.tls import Authority
from fakes.gateway.tls_listener import asking, client_context
from fakes.peers.echo import EchoServer
from fakes.translator.sealing import seal
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.sealing import load_or_create_key_pair
from headgate.common.stores.nats import NatsStores
from headgate.common.table import Endpoint
from headgate.common.table_image import TableImage
from headgate.gateway.tls import self_signed


async def asked(port: int, name: str, context: ssl.SSLContext) -> int:
    """Send a request for a host over TLS; give the status."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % name.encode())
        return int((await asyncio.wait_for(reader.readuntil(b"\r\n"), BOUND_S)).split()[1])
    finally:
        writer.close()


async def test_table_decides_who_gets_through_the_handshake_and_metrics_tell(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores
) -> None:
    data, authority = tmp_path / "data", Authority()
    data.mkdir()
    sealing = load_or_create_key_pair(data)
    chain, key = self_signed("foo.com")
    fallback, alice = Authority().issue("fallback"), authority.issue("alice")
    chain_file, key_file = fallback.write(tmp_path)
    async with EchoServer("one") as echo:
        table = TableImage(
            [
                host("foo.com", route("/", "prefix", "up")).model_copy(update={"tls": asking(authority.pem)}),
                host("bar.com", route("/", "prefix", "up")),
                upstream("up", Endpoint(address="127.0.0.1", port=echo.port)),
                certificate(
                    "c1/default/tls", seal(key, [sealing.public_key]), "foo.com", chain=chain.decode()
                ).model_copy(update={"not_after": "2031-01-01T00:00:00Z"}),
            ]
        )
        await commit(stores.snapshots, table, (1, 1))
        files = (f"--default-certificate-file={chain_file}", f"--default-certificate-key-file={key_file}")
        async with GatewayProcess(data, broker.url, *files) as gateway:
            await gateway.ready()
            (listener,) = re.findall(r"https://127.0.0.1:(\d+)", (await gateway.admin("/version"))[1])
            port = int(listener)
            folder = tmp_path / "alice"
            folder.mkdir()
            holder = client_context(alice.write(folder))
            assert await asked(port, "foo.com", holder) == 200
            assert await asked(port, "bar.com", client_context()) == 200
            with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
                await asked(port, "foo.com", client_context())
            failed = 'headgate_tls_handshake_failures_total{reason="PEER_DID_NOT_RETURN_A_CERTIFICATE"} 1.0'
            async with asyncio.timeout(BOUND_S):  # the client may hear of it first
                while failed not in (metrics := (await gateway.admin("/metrics"))[1]):  # noqa: ASYNC110 - a process
                    await asyncio.sleep(0.02)
            assert 'headgate_certificate_not_after_seconds{certificate="c1/default/tls"}' in metrics


def come_back(port: int, context: ssl.SSLContext, session: ssl.SSLSession | None) -> tuple[bool, ssl.SSLSession | None]:
    """Ask once over a connection of its own; give whether its session was resumed, and the one to come back with."""
    with (
        socket.create_connection(("127.0.0.1", port), BOUND_S) as plain,
        context.wrap_socket(plain, server_hostname="foo.com", session=session) as tls,
    ):
        tls.sendall(b"GET / HTTP/1.1\r\nHost: foo.com\r\nConnection: close\r\n\r\n")
        assert tls.recv(12) == b"HTTP/1.1 200"
        while tls.recv(4096):
            pass
        return bool(tls.session_reused), tls.session


async def begin_and_come_back(tmp_path: Path, url: str, stores: NatsStores, *flags: str) -> tuple[set[bool], set[str]]:
    """Whether sessions were resumed that a client came back with 24 times, and which workers it met."""
    data = tmp_path / "data"
    data.mkdir()
    async with EchoServer("one") as echo:
        endpoint = Endpoint(address="127.0.0.1", port=echo.port)
        await commit(
            stores.snapshots,
            TableImage([host("foo.com", route("/", "prefix", "up")), upstream("up", endpoint)]),
            (1, 1),
        )
        async with GatewayProcess(data, url, *flags) as gateway:
            await gateway.ready()
            (port, *_) = re.findall(r"https://127.0.0.1:(\d+)", (await gateway.admin("/version"))[1])
            client = client_context()
            _, session = await asyncio.to_thread(come_back, int(port), client, None)
            resumed = set()
            for _ in range(24):
                was_resumed, session = await asyncio.to_thread(come_back, int(port), client, session)
                resumed.add(was_resumed)
            metrics = (await gateway.admin("/metrics"))[1]
    told = r'headgate_tls_handshakes_total\{session="resumed",worker="(\d)"\} [1-9]'
    return resumed, set(re.findall(told, metrics))


async def test_workers_resume_each_others_sessions(tmp_path: Path, broker: EmbeddedNats, stores: NatsStores) -> None:
    resumed, workers = await begin_and_come_back(tmp_path, broker.url, stores, "--workers=2")
    assert (resumed, workers) == ({True}, {"0", "1"})


async def test_a_secret_of_tickets_that_is_none_keeps_the_gateway_from_starting(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("short")
    command = [sys.executable, "-m", "headgate.gateway", f"--tls-ticket-key-file={file}", f"--data-dir={tmp_path}"]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE, stdout=subprocess.DEVNULL)
    async with asyncio.timeout(BOUND_S):
        _, errors = await process.communicate()
    assert process.returncode == 1
    assert b"tls_ticket_key_file" in errors
