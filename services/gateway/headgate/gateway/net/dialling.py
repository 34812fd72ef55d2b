"""The one way in which connections are opened that routes and plugins cause: names are resolved here, and each address
is judged by `Destinations` before it is dialled, so that what was judged and what is dialled cannot differ.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final, TypeVar

from headgate.gateway.net import descriptors
from headgate.gateway.net.destinations import ANYWHERE, DestinationDenied, Destinations

P = TypeVar("P", bound=asyncio.BaseProtocol)

AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]
"""Family, kind, protocol, canonical name, address: of `getaddrinfo`."""


class Dialler:
    """Opens connections to where they may go. Holds nothing of an event loop.

    All methods raise DestinationDenied, an OSError, if no address of a host may be connected to.
    """

    def __init__(self, destinations: Destinations = ANYWHERE) -> None:
        self.destinations = destinations

    async def connect(
        self,
        factory: Callable[[], P],
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
    ) -> tuple[asyncio.Transport, P]:
        """Connect a protocol, with TLS for a context; `server_name` is what certificates are checked for.

        Raises:
            OSError: no connection, or no TLS.
            UnicodeError: the host is a name that is none.
        """
        loop = asyncio.get_running_loop()
        server_name = (server_name or host) if tls is not None else None
        if is_ip_address(host):
            self.destinations.check(host, port)
            try:
                return await loop.create_connection(factory, host, port, ssl=tls, server_hostname=server_name)
            except OSError as error:
                descriptors.note_failure(error, "connect")
                raise
        dialled = await self.dial(host, port)
        try:
            return await loop.create_connection(factory, sock=dialled, ssl=tls, server_hostname=server_name)
        except BaseException:
            dialled.close()
            raise

    async def dial(self, host: str, port: int) -> socket.socket:
        """Connect to an IP address, or to the addresses of a name one after the other.

        Raises:
            OSError: none can be connected to, or the name has none.
            UnicodeError: the name is none.
        """
        loop = asyncio.get_running_loop()
        failure: OSError | None = None
        for info in await resolve(host, port, socket.SOCK_STREAM):
            try:
                dialled = self.open_socket(info)
            except DestinationDenied as denied:
                failure = failure or denied
                continue
            try:
                dialled.setblocking(False)
                dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await loop.sock_connect(dialled, info[4])
            except OSError as error:
                dialled.close()
                failure = error
            except BaseException:
                dialled.close()
                raise
            else:
                return dialled
        raise failure or OSError(f"{host} has no address")

    async def open_stream(
        self, host: str, port: int, tls: ssl.SSLContext | None = None, server_name: str | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect as `connect` does, for who reads and writes one after the other."""
        reader = asyncio.StreamReader()
        transport, protocol = await self.connect(
            lambda: asyncio.StreamReaderProtocol(reader), host, port, tls, server_name
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())

    async def find_for_datagrams(self, host: str, port: int) -> AddressInfo:
        """Return the first address of a host that may be sent to.

        Raises:
            OSError: there is none.
            UnicodeError: the name is none.
        """
        denied: DestinationDenied | None = None
        for info in await resolve(host, port, socket.SOCK_DGRAM):
            try:
                self._check(info)
            except DestinationDenied as error:
                denied = denied or error
            else:
                return info
        raise denied or OSError(f"{host} has no address")

    def open_socket(self, info: AddressInfo) -> socket.socket:
        """Make the socket that an address is about to be connected to by."""
        self._check(info)
        family, kind, protocol, _, _ = info
        try:
            return socket.socket(family, kind, protocol)
        except OSError as error:
            descriptors.note_failure(error, "connect")
            raise

    def _check(self, info: AddressInfo) -> None:
        address, port = info[4][:2]
        self.destinations.check(address, port)


async def resolve(host: str, port: int, kind: socket.SocketKind) -> Sequence[AddressInfo]:
    """Return what `getaddrinfo` does; IP addresses without going through a thread.

    Raises:
        OSError: the name cannot be resolved.
    """
    if is_ip_address(host):
        return [address_info(host, port, kind)]
    return await asyncio.get_running_loop().getaddrinfo(host, port, type=kind)


@lru_cache(maxsize=4096)
def is_ip_address(text: str) -> bool:
    """Tell an IP address from a name."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def address_info(address: str, port: int, kind: socket.SocketKind) -> AddressInfo:
    """Return what `getaddrinfo` does for an IP address."""
    if ":" in address:
        return (socket.AF_INET6, kind, 0, "", (address, port, 0, 0))
    return (socket.AF_INET, kind, 0, "", (address, port))


UNBOUNDED: Final = Dialler()
