"""Connections that are under way while the settings of their port change."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.tls_listener import client_context
from fakes.waiting import until
from headgate.common.table.listener import ClientConnections
from headgate.gateway.listeners.http_port import HttpPort
from headgate.gateway.proxy.clock import Clock
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.outbox import Outbox
from headgate.gateway.proxy.seam import RouterHolder
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.table.listener_ports import PortSettings
from headgate.gateway.tls import CertificateStore

PATIENCE_S = 5.0
END_OF_TIME = 1e12


def settings(idle_timeout_s: float) -> PortSettings:
    return PortSettings(connections=ClientConnections(idle_timeout_s=idle_timeout_s))


@contextlib.asynccontextmanager
async def listening(tls: ssl.SSLContext | None) -> AsyncIterator[HttpPort]:
    """Listen on a free port, with settings of its own."""
    bound = socket.create_server(("127.0.0.1", 0))
    bound.setblocking(False)
    holder = RouterHolder.__new__(RouterHolder)
    context = ProxyContext(holder, ProxyConfig(), ProxyStats(), None, Clock(0.5), Outbox())
    port = HttpPort(context, None, bound, tls, settings=settings(5))
    await port.listener.start()
    try:
        yield port
    finally:
        port.listener.close()
        for connection in list(port.connections):
            connection.transport.abort()
        await asyncio.sleep(0)


def swept(port: HttpPort) -> bool:
    """Look at all deadlines once clients have their session tickets, and tell whether every connection is closed."""
    if not any(connection.transport.undelivered() for connection in port.connections):
        port.sweep(END_OF_TIME)
    return not port.connections


async def handshaking(store: CertificateStore, port: HttpPort) -> asyncio.StreamWriter:
    """Connect, and begin no handshake."""
    _, writer = await asyncio.open_connection("127.0.0.1", port.number)
    await until(lambda: store.counts.started == 1, PATIENCE_S)
    return writer


@pytest.mark.parametrize("changes", [1, 3])
async def test_a_connection_in_its_handshake_during_a_change_has_deadlines(changes: int) -> None:
    store = CertificateStore()
    async with listening(store.server_context) as port:
        writer = await handshaking(store, port)
        for number in range(changes):
            port.configure(settings(6 + number))
        await asyncio.wait_for(writer.start_tls(client_context()), PATIENCE_S)
        await until(lambda: len(port.connections) == 1, PATIENCE_S)
        await until(lambda: swept(port), PATIENCE_S)
        writer.close()


async def test_a_connection_in_its_handshake_as_its_port_closes_is_drained() -> None:
    store = CertificateStore()
    async with listening(store.server_context) as port:
        writer = await handshaking(store, port)
        port.configure(settings(6))
        port.retire(0.0)
        await asyncio.wait_for(writer.start_tls(client_context()), PATIENCE_S)
        await until(lambda: len(port.connections) == 1, PATIENCE_S)
        assert not port.has_ended
        await until(lambda: swept(port), PATIENCE_S)
        writer.close()
        await until(lambda: port.has_ended, PATIENCE_S)


@pytest.mark.parametrize("speaks_tls", [False, True])
async def test_a_connection_keeps_the_settings_that_it_was_made_with(speaks_tls: bool) -> None:
    tls = CertificateStore().server_context if speaks_tls else None
    async with listening(tls) as port:
        opened = [
            await asyncio.open_connection("127.0.0.1", port.number, ssl=client_context() if speaks_tls else None)
            for _ in range(2)
        ]
        await until(lambda: len(port.connections) == 2, PATIENCE_S)
        port.configure(settings(6))
        port.configure(settings(7))
        assert len(port.connections) == 2
        await until(lambda: swept(port), PATIENCE_S)
        for _, writer in opened:
            writer.close()


class _Broken:
    """A connection that fails when it is late."""

    deadline = 0.0
    is_aborted = False

    def __init__(self, connection: Any) -> None:
        self.transport = connection.transport
        self.peer = connection.peer

    def timed_out(self) -> None:
        raise RuntimeError("a mistake")

    def abort(self) -> None:
        self.is_aborted = True


async def test_a_connection_that_fails_when_it_is_late_takes_no_other_along(caplog: pytest.LogCaptureFixture) -> None:
    async with listening(None) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port.number)
        await until(lambda: len(port.connections) == 1, PATIENCE_S)
        broken = _Broken(next(iter(port.connections)))
        port.connections.add(broken)
        port.sweep(END_OF_TIME)
        assert broken.is_aborted
        await until(lambda: port.connections == {broken}, PATIENCE_S)
        port.sweep(END_OF_TIME)
        assert caplog.text.count("a connection is cut off") == 1
        writer.close()
