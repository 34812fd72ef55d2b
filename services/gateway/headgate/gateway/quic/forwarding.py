"""Datagrams that came to the wrong process.

The kernel spreads clients over the processes of a port by their addresses. A client whose address changes (RFC 9000
section 9) may so come to another process than has its connection, and many do when a process ends or begins. That one
asks all others; the one that has the connection answers, and gets the rest directly.

Rejected: ids that name the process, as qh3 draws the further ones of a connection itself; and a program in the kernel
(SO_ATTACH_REUSEPORT_CBPF), which would have to look into the ids as well.
"""

import asyncio
import contextlib
import socket
import struct
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from headgate.gateway.proxy.http2.budget import Bucket

_DATAGRAM: Final = 0
_MINE: Final = 1
_HEAD: Final = struct.Struct("!BBBHII")
"""Kind, length of the id, length of the client's address, its port, and what IPv6 has beside."""
_REMEMBERED: Final = 65_536
_UNKNOWN: Final = (1000.0, 1000.0)
"""Datagrams of which nobody is known to have the connection: burst, a second. Each is sent to all other processes."""
_AT_ONCE: Final = 64
_BUFFER: Final = 1024 * 1024

NetworkAddress = tuple[object, ...]
Take = Callable[[bytes, bytes, tuple[object, ...]], bool]
"""Takes a datagram that another process has read, with the id of its connection; False: the connection is not here."""


class Forwarding(Protocol):
    """The way to the other processes of a port."""

    def start(self, take: Take) -> None:
        """Take datagrams from others."""

    def forward(self, connection_id: bytes, data: bytes, address: NetworkAddress) -> None:
        """Hand a datagram to the process that has its connection, if there is one."""

    def close(self) -> None:
        """Take no more."""


class _Nowhere:
    """There are no other processes."""

    def start(self, take: Take) -> None:
        """Nothing will come."""

    def forward(self, connection_id: bytes, data: bytes, address: NetworkAddress) -> None:
        """Drop it."""

    def close(self) -> None:
        """Nothing is open."""


NO_FORWARDING: Final[Forwarding] = _Nowhere()


class WorkerForwarding:
    """Unix datagram sockets, one for each worker.

    Args:
        folder: where they are, which nobody else may write to.
        index: of this worker.
        count: of all workers.
        name: of the port, in the names of the sockets.
    """

    def __init__(self, folder: Path, index: int, count: int, name: str = "") -> None:
        self._own = _path(folder, name, index)
        self._others = [_path(folder, name, each) for each in range(count) if each != index]
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._known: OrderedDict[bytes, str] = OrderedDict()
        """Sockets of the workers that have a connection, by its id."""
        self._unknown = Bucket(*_UNKNOWN)
        self._take: Take = lambda *_: False

    def start(self, take: Take) -> None:
        """Take datagrams from others."""
        self._take = take
        with contextlib.suppress(FileNotFoundError):
            Path(self._own).unlink()
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self._socket.bind(self._own)
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._read)

    def close(self) -> None:
        """Take no more."""
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()
        with contextlib.suppress(FileNotFoundError):
            Path(self._own).unlink()

    def forward(self, connection_id: bytes, data: bytes, address: NetworkAddress) -> None:
        """Hand a datagram to who has its connection, or ask all."""
        message = _written(connection_id, data, address)
        known = self._known.get(connection_id)
        if known is not None:
            if self._send(known, message):
                return
            del self._known[connection_id]
        if self._unknown.take():
            for other in self._others:
                self._send(other, message)

    def _send(self, path: str, message: bytes) -> bool:
        """Send, if it can be done now: QUIC makes good what is lost."""
        try:
            self._socket.sendto(message, path)
        except OSError:
            return False
        return True

    def _read(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                message, sender = self._socket.recvfrom(65_536 + 128)
            except OSError:
                return
            self._take_message(message, sender)

    def _take_message(self, message: bytes, sender: str) -> None:
        kind, id_length, host_length, port, flow, scope = _HEAD.unpack_from(message)
        at = _HEAD.size
        connection_id = message[at : at + id_length]
        at += id_length
        if kind == _MINE:
            self._known[connection_id] = sender
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
            return
        host = message[at : at + host_length].decode()
        address = (host, port, flow, scope) if ":" in host else (host, port)
        if self._take(connection_id, message[at + host_length :], address):
            self._send(sender, _HEAD.pack(_MINE, id_length, 0, 0, 0, 0) + connection_id)


def _written(connection_id: bytes, data: bytes, address: NetworkAddress) -> bytes:
    host, port, flow, scope = (*address, 0, 0)[:4]
    named = str(host).encode()
    return _HEAD.pack(_DATAGRAM, len(connection_id), len(named), port, flow, scope) + connection_id + named + data


def _path(folder: Path, name: str, index: int) -> str:
    return str(folder / f"quic{name}-{index}.sock")
