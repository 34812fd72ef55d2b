"""Sockets for listening, on one family or both, and what can be read off accepted ones."""

import socket
import struct
import sys

from headgate.gateway.net.proxy_protocol import Addresses, SocketAddress

BACKLOG = 4096
_IP_FREEBIND = 15
"""ip(7); the module `socket` has no name for it. Of sockets of IPv6 too."""
_RESET = struct.pack("ii", 1, 0)


def open_listener(
    host: str | None, port: int, *, datagrams: bool = False, reuse_port: bool = False, may_be_absent: bool = False
) -> socket.socket:
    """Bind a socket, and listen unless it is for datagrams. `::` takes IPv4 too; None is all addresses.

    Args:
        host: address.
        port: number; 0 is any.
        datagrams: UDP.
        reuse_port: other sockets may have the same port, or have it at all addresses.
        may_be_absent: the address may come to the machine later, as it does when it moves. Only Linux can.

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
        if may_be_absent and sys.platform == "linux":
            opened.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
        opened.bind(address)
        if not datagrams:
            opened.listen(BACKLOG)
    except BaseException:
        opened.close()
        raise
    return opened


def plain_address(address: tuple[str, int] | tuple[str, int, int, int]) -> SocketAddress:
    """Return address and port; an IPv4 address that came over an IPv6 socket as IPv4, a scope left out."""
    return address[0].removeprefix("::ffff:").partition("%")[0], address[1]


def ends_of(accepted: socket.socket) -> Addresses:
    """Return both ends of a connection. Raises OSError if the client is gone already."""
    return Addresses(plain_address(accepted.getpeername()), plain_address(accepted.getsockname()))


def reset_on_close(accepted: socket.socket) -> None:
    """Let the peer see a reset instead of an end, so that it does not take a cut stream for a whole one."""
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
