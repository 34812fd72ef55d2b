"""What all loggers but `file-logger` have in common: entries go in batches."""

import asyncio
import contextlib
import ssl
from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from headgate.common.plugins.observability.loggers import AddressConfig, BatchConfig
from headgate.common.trust import verifying_context
from headgate.gateway.net.dialling import Dialler
from headgate.gateway.plugins.built_in.observability.batches import Batches, BatchLimits
from headgate.gateway.plugins.built_in.observability.log_entries import LoggerPlugin
from headgate.gateway.plugins.interface import PluginServices, Request
from headgate.gateway.plugins.kit.memory import allocate

C = TypeVar("C", bound=BatchConfig)


class BatchedLogger(LoggerPlugin[C]):
    """Base of loggers that send batches."""

    def __init__(self, config: C, services: PluginServices) -> None:
        super().__init__(config, services)
        limits = BatchLimits(
            config.batch_max_size,
            config.inactive_timeout,
            config.buffer_duration,
            config.max_retry_count,
            config.retry_delay,
        )
        self.batches = Batches(
            self.send, limits, f"{self.target} ({self.name})", services.logger, allocate(services, self.name)
        )
        services.close_later(self.batches)

    @property
    @abstractmethod
    def target(self) -> str:
        """Whom entries go to, for our own log."""

    @abstractmethod
    async def send(self, entries: Sequence[bytes]) -> None:
        """Send entries. Raises OSError."""

    def write(self, entry: bytes, request: Request) -> None:
        """Take an entry."""
        self.batches.add(entry)


A = TypeVar("A", bound=AddressConfig)


class AddressedLogger(BatchedLogger[A]):
    """Base of those that send to a host and port."""

    @property
    def target(self) -> str:
        """Host and port."""
        return f"{self.config.host}:{self.config.port}"


def as_array(entries: Sequence[bytes], batch_size: int) -> bytes:
    """Write entries as a JSON array; as they are if batches have one each, as Apache APISIX does."""
    return entries[0] if batch_size == 1 else b"[" + b",".join(entries) + b"]"


@cache
def client_tls(*, verify: bool) -> ssl.SSLContext:
    """Make what connections with TLS are made by; once, as the reading of all authorities holds up the loop."""
    context = verifying_context()
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


async def send_stream(
    dialler: Dialler,
    host: str,
    port: int,
    data: bytes,
    *,
    timeout_s: float,
    tls: bool = False,
    server_name: str | None = None,
) -> None:
    """Send bytes over a connection of their own. Raises OSError."""
    context = None
    if tls:
        context = client_tls(verify=False)
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await dialler.open_stream(host, port, context, server_name)
            try:
                writer.write(data)
                await writer.drain()
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except TimeoutError as error:
        raise OSError(f"{host}:{port} did not take it in {timeout_s:g} s") from error


async def send_datagrams(
    dialler: Dialler, host: str, port: int, datagrams: Sequence[bytes], *, timeout_s: float
) -> None:
    """Send a datagram for each entry; the time is for finding the address. Raises OSError."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s):
            found = await dialler.find_for_datagrams(host, port)
            to = str(found[4][0]), port
            transport, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=to)
    except TimeoutError as error:
        raise OSError(f"the address of {host} was not found in {timeout_s:g} s") from error
    try:
        for datagram in datagrams:
            transport.sendto(datagram)
    finally:
        transport.close()
