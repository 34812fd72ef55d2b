"""Getting in: TLS both ways, users and their rights; what is refused is told in one clear line."""

import asyncio
import ipaddress
import json
import logging
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509

from fakes.gateway.tls import Authority
from fakes.stores.nats import real_nats
from fakes.stores.nats_servers import NatsServer
from headgate.common.bus.access import NatsAccess, NatsTls
from headgate.common.bus.connection import Bus
from headgate.common.errors import NotPermitted, SettingsError
from headgate.common.stores.nats import NatsStores

BOUND_S = 30.0
JETSTREAM = 'jetstream: { store_dir: "." }\n'
LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
RIGHTS = """
authorization: { users: [
  { user: admin, password: secret }
  { user: reader, password: secret, permissions: {
    publish: { allow: ["$JS.API.STREAM.INFO.>"] }, subscribe: { allow: ["_INBOX.reader.>"] } } }
] }
"""


def write(folder: Path, **contents: bytes) -> None:
    for name, content in contents.items():
        (folder / f"{name}.pem").write_bytes(content)


@pytest.fixture
def tls(tmp_path: Path) -> NatsTls:
    """Certificates of one authority for the servers and for us, in files."""
    authority = Authority()
    server, client = authority.issue("nats", LOOPBACK), authority.issue("translator")
    write(tmp_path, ca=authority.pem, server=server.chain_pem, server_key=server.key_pem)
    write(tmp_path, client=client.chain_pem, client_key=client.key_pem, stranger=Authority("Another CA").pem)
    return NatsTls(tmp_path / "ca.pem", tmp_path / "client.pem", tmp_path / "client_key.pem")


def tls_config(folder: Path) -> str:
    files = ", ".join(
        f'{key}: "{folder / name}.pem"'
        for key, name in (("cert_file", "server"), ("key_file", "server_key"), ("ca_file", "ca"))
    )
    return f"tls: {{ {files}, verify: true }}\n{JETSTREAM}"


@asynccontextmanager
async def connected(access: NatsAccess, wait_s: float | None = BOUND_S) -> AsyncIterator[Bus]:
    bus = await Bus.connect(access, name="test", wait_s=wait_s)
    try:
        yield bus
    finally:
        await bus.close()


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [getattr(one, "reason", "") for one in caplog.records if one.message.startswith("no connection to NATS")]


async def until_told(caplog: pytest.LogCaptureFixture, pattern: str = "") -> None:
    """Wait until a reason was told."""
    async with asyncio.timeout(BOUND_S):
        while not any(re.search(pattern, line) for line in told(caplog)):  # noqa: ASYNC110 - a log has no event
            await asyncio.sleep(0.01)


async def test_both_sides_show_certificates_and_the_stores_work_over_tls(tls: NatsTls, tmp_path: Path) -> None:
    async with (
        NatsServer(tmp_path / "server", tls_config(tmp_path)) as server,
        connected(NatsAccess(f"nats://127.0.0.1:{server.port}", tls=tls)) as bus,
    ):
        stores = await NatsStores.open(bus)
        assert await stores.snapshots.read_pointer("default") is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ca_file": "stranger.pem"}, "unable to get local issuer certificate"),
        ({"ca_file": None}, "unable to get local issuer certificate"),
        ({"server_name": "another.example"}, "Hostname mismatch"),
        ({"certificate_file": None, "key_file": None}, "certificate required"),
    ],
)
async def test_who_is_not_trusted_is_told_why_once_and_tried_again(
    tls: NatsTls, tmp_path: Path, change: dict[str, str | None], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    paths = {key: tmp_path / name if name and key.endswith("file") else name for key, name in change.items()}
    wrong = NatsTls(**{key: paths.get(key, getattr(tls, key)) for key in tls.__dataclass_fields__})
    async with (
        NatsServer(tmp_path / "server", tls_config(tmp_path)) as server,
        connected(NatsAccess(f"nats://127.0.0.1:{server.port}", tls=wrong), wait_s=0) as bus,
    ):
        await until_told(caplog, reason)
        await asyncio.sleep(0.5)  # some attempts more, of which nothing is told
        assert not bus.is_connected
    assert len(told(caplog)) <= 2  # the connection may break before its server says why


async def test_nothing_is_said_to_a_server_without_tls(tls: NatsTls, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[bytes] = []

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"INFO " + json.dumps({"server_id": "x", "max_payload": 1048576}).encode() + b"\r\n")
        heard.append(await reader.read())
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as impostor:
        port = impostor.sockets[0].getsockname()[1]
        access = NatsAccess(f"tls://127.0.0.1:{port}", user="translator", password="secret", tls=tls)
        async with connected(access, wait_s=0):
            await until_told(caplog)
    assert set(heard) == {b""}
    assert told(caplog) == ["the server does not ask for TLS, and is not trusted without it"]


async def test_files_that_were_replaced_are_used_at_the_next_connection(tls: NatsTls, tmp_path: Path) -> None:
    async with (
        NatsServer(tmp_path / "server", tls_config(tmp_path)) as server,
        connected(NatsAccess(f"nats://127.0.0.1:{server.port}", tls=tls)) as bus,
    ):
        reconnected = asyncio.Event()
        bus.on_reconnect(reconnected.set)
        await server.kill()
        authority = Authority("Next CA")
        issued, client = authority.issue("nats", LOOPBACK), authority.issue("translator")
        write(tmp_path, ca=authority.pem, server=issued.chain_pem, server_key=issued.key_pem)
        write(tmp_path, client=client.chain_pem, client_key=client.key_pem)
        await server.start()
        async with asyncio.timeout(BOUND_S):
            await reconnected.wait()


async def test_files_that_cannot_be_used_are_named_at_the_start(tls: NatsTls, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nats_ca_file: .*none\.pem cannot be used: No such file"):
        await Bus.connect(NatsAccess("tls://127.0.0.1:1", tls=NatsTls(tmp_path / "none.pem")), name="test")
    (tmp_path / "client.pem").write_text("no certificate")
    with pytest.raises(SettingsError, match=r"nats_certificate_file: .*client\.pem with key .*cannot be used"):
        await Bus.connect(NatsAccess("tls://127.0.0.1:1", tls=tls), name="test")


async def test_a_wrong_password_is_told_once_and_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with NatsServer(tmp_path / "server", RIGHTS) as server:
        access = NatsAccess(f"nats://127.0.0.1:{server.port}", user="reader", password="wrong")
        async with connected(access, wait_s=0) as bus:
            await until_told(caplog)
            await asyncio.sleep(0.5)  # some attempts more, of which nothing is told
            assert not bus.is_connected
    assert told(caplog) == ["the user 'reader' or its password is refused"]


async def test_an_outage_with_two_kinds_of_reasons_tells_both(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with NatsServer(tmp_path / "server", RIGHTS) as server:
        access = NatsAccess(f"nats://127.0.0.1:{server.port}", user="reader", password="secret", inbox="_INBOX.reader")
        async with connected(access):
            await server.kill()
            server.configure(RIGHTS.replace("secret", "another"))
            await server.start()
            async with asyncio.timeout(BOUND_S):
                while len(told(caplog)) < 2:  # noqa: ASYNC110 - a log has no event
                    await asyncio.sleep(0.02)
    assert told(caplog) == ["the connection broke", "the user 'reader' or its password is refused"]


async def test_what_is_not_permitted_fails_at_once_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with NatsServer(tmp_path / "server", RIGHTS + JETSTREAM) as server:
        access = NatsAccess(f"nats://127.0.0.1:{server.port}", user="reader", password="secret", inbox="_INBOX.reader")
        async with connected(access) as bus, asyncio.timeout(BOUND_S):
            for name in ("ONE", "TWO", "ONE"):
                with pytest.raises(NotPermitted, match=rf"\$JS\.API\.STREAM\.CREATE\.{name}$"):
                    await bus.request(f"$JS.API.STREAM.CREATE.{name}", b"{}", timeout_s=60)
            assert b"stream not found" in (await bus.request("$JS.API.STREAM.INFO.ONE")).data
    refusals = [one for one in caplog.records if "does not permit" in one.message]
    assert [(one.subject, one.user) for one in refusals] == [  # type: ignore[attr-defined]
        ("$JS.API.STREAM.CREATE.ONE", "reader"),
        ("$JS.API.STREAM.CREATE.TWO", "reader"),
    ]


async def test_answers_that_may_not_be_heard_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with NatsServer(tmp_path / "server", RIGHTS + JETSTREAM) as server:
        access = NatsAccess(f"nats://127.0.0.1:{server.port}", user="reader", password="secret")
        async with connected(access) as bus:
            with pytest.raises(TimeoutError):
                await bus.request("$JS.API.STREAM.INFO.ONE", timeout_s=1.0)
    [refusal] = [one for one in caplog.records if "does not permit" in one.message]
    assert refusal.what == "subscription"  # type: ignore[attr-defined]


async def test_without_tls_a_server_that_asks_for_it_gets_it_with_the_systems_authorities(
    tls: NatsTls, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        NatsServer(tmp_path / "server", tls_config(tmp_path)) as server,
        connected(NatsAccess(f"nats://127.0.0.1:{server.port}"), wait_s=0) as bus,
    ):
        await until_told(caplog, "certificate verify failed")
        assert not bus.is_connected


async def test_a_server_that_hangs_over_tls_is_left_for_another(tls: NatsTls, tmp_path: Path) -> None:
    async with (
        NatsServer(tmp_path / "one", tls_config(tmp_path)) as one,
        NatsServer(tmp_path / "two", tls_config(tmp_path), name="two") as two,
        connected(NatsAccess(f"tls://127.0.0.1:{one.port},tls://127.0.0.1:{two.port}", tls=tls)) as bus,
    ):
        url = bus.nc.connected_url
        assert url is not None
        hung, other = (one, two) if url.port == one.port else (two, one)
        reconnected = asyncio.Event()
        bus.on_reconnect(reconnected.set)
        hung.process.send_signal(signal.SIGSTOP)
        try:
            async with asyncio.timeout(2 * BOUND_S):
                await reconnected.wait()
            after = bus.nc.connected_url
            assert after is not None
            assert after.port == other.port
        finally:
            hung.process.send_signal(signal.SIGCONT)


async def test_a_service_waits_for_a_server_that_comes_later_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with real_nats() as (server, url):
        await server.stop()
        connecting = asyncio.create_task(Bus.connect(url, name="early"))
        while not told(caplog):  # noqa: ASYNC110 - a log has no event
            await asyncio.sleep(0.01)
        assert not connecting.done()
        await server.start()
        async with asyncio.timeout(BOUND_S):
            bus = await connecting
        await bus.close()
    assert len(told(caplog)) == 1
    assert caplog.messages[-1] == "connected to NATS"
