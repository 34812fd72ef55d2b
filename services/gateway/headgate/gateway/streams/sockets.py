"""Sockets for listening, on one family or both, and what can be read off accepted ones."""

import asyncio
import socket
import struct
from collections.abc import Sequence
from ipaddress import ip_address

from headgate.gateway.streams.proxy_protocol import Addresses, SocketAddress

AddressInfo = tuple[
    socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
]
"""Family, kind, protocol, canonical name, address: of `getaddrinfo`."""

BACKLOG = 4096
_RESET = struct.pack("ii", 1, 0)


def open_listener(host: str | None, port: int, *, datagrams: bool = False, reuse_port: bool = False) -> socket.socket:
    """Bind a socket, and listen unless it is for datagrams. `::` takes IPv4 too; None is all addresses.

    Raises:
        OSError: the port is taken, needs privileges, or the host is none of ours.
    """
    kind = socket.SOCK_DGRAM if datagrams else socket.SOCK_STREAM
    family, _, _, _, address = socket.getaddrinfo(host, port, type=kind, flags=socket.AI_PASSIVE)[0]
    opened = socket.socket(family, kind)
    try:
        opened.setblocking(False)
        if not datagrams:
            # Connections of a port that was closed may still be there when it is opened again.
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        opened.bind(address)
        if not datagrams:
            opened.listen(BACKLOG)
    except BaseException:
        opened.close()
        raise
    return opened


async def dial(address: str, port: int) -> socket.socket:
    """Connect to an IP address, or to the addresses of a name one after the other.

    Raises:
        OSError: none can be connected to, or the name has none.
        UnicodeError: the name is none.
    """
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    for family, _, _, _, target in await resolve(address, port, socket.SOCK_STREAM):
        dialled = socket.socket(family, socket.SOCK_STREAM)
        try:
            dialled.setblocking(False)
            dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(dialled, target)
        except OSError as error:
            dialled.close()
            failure = error
        except BaseException:
            dialled.close()
            raise
        else:
            return dialled
    raise failure or OSError(f"{address} has no address")


async def resolve(address: str, port: int, kind: socket.SocketKind) -> "Sequence[AddressInfo]":
    """Return what `getaddrinfo` does; IP addresses without going through a thread.

    Raises:
        OSError: the name cannot be resolved.
    """
    if is_ip_address(address):
        return [address_info(address, port, kind)]
    return await asyncio.get_running_loop().getaddrinfo(address, port, type=kind)


def is_ip_address(text: str) -> bool:
    """Tell an IP address from a name."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def address_info(address: str, port: int, kind: socket.SocketKind) -> "AddressInfo":
    """Return what `getaddrinfo` does for an IP address."""
    if ":" in address:
        return (socket.AF_INET6, kind, 0, "", (address, port, 0, 0))
    return (socket.AF_INET, kind, 0, "", (address, port))


def plain_address(address: tuple[str, int] | tuple[str, int, int, int]) -> SocketAddress:
    """Return address and port; an IPv4 address that came over an IPv6 socket as IPv4, a scope left out."""
    return address[0].removeprefix("::ffff:").partition("%")[0], address[1]


def ends_of(accepted: socket.socket) -> Addresses:
    """Return both ends of a connection. Raises OSError if the client is gone already."""
    return Addresses(plain_address(accepted.getpeername()), plain_address(accepted.getsockname()))


def reset_on_close(accepted: socket.socket) -> None:
    """Let the peer see a reset instead of an end, so that it does not take a cut stream for a whole one."""
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
