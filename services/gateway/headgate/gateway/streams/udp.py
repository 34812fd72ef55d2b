"""UDP sessions: the datagrams of one client address, sent to one endpoint from a socket of their own.

Datagrams are read, sent and forgotten in one go on the event loop; what the kernel does not take at once is dropped and
counted, as any router would. So nothing is queued, and memory is bounded by the number of sessions. Answers leave from
the address that the client sent to, which matters where a host has several.

Rejected: asyncio's datagram transports. They queue what cannot be sent, without bound, and hide that address.
"""

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from headgate.gateway.balancing.upstream import UpstreamHolder
from headgate.gateway.health.ejection import CONNECTED, Outcome
from headgate.gateway.net.destinations import DestinationDenied
from headgate.gateway.net.dialling import AddressInfo, address_info, is_ip_address
from headgate.gateway.net.proxy_protocol import (
    Addresses,
    BadProxyHeader,
    SocketAddress,
    read_datagram_header,
    write_datagram_header,
)
from headgate.gateway.net.sockets import plain_address
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.streams.context import StreamContext
from headgate.gateway.streams.log import Status, StreamRecord
from headgate.gateway.streams.route import CompiledStream, choose_endpoint
from headgate.gateway.streams.tcp import ClientSource

_log = logging.getLogger(__name__)

DATAGRAMS_AT_ONCE: Final = 64
"""Datagrams of one socket before others get their turn."""
_MAX_DATAGRAM: Final = 65_535
_ANCILLARY: Final = 64
_WAITING: Final = 16
"""Datagrams kept while an endpoint's name is resolved."""
_IP_PKTINFO: Final = 8
"""linux/in.h; Python 3.11 has no name for it."""

RawAddress = tuple[str, int] | tuple[str, int, int, int]


class SessionKey(NamedTuple):
    """Who datagrams are of, and where answers go."""

    peer: RawAddress
    """That sent the datagrams: the client, or a proxy before us."""
    control: tuple[tuple[int, int, bytes], ...]
    """The address of ours that it sends to, as control data of the socket."""
    told: Addresses | None = None
    """The client's, and the one that it sent to, as the peer says; None: the peer is the client."""


class UdpPort:
    """One bound port and its sessions.

    Args:
        bound: nonblocking; the port's to close.
        on_closed: called once the port is closed and its last session is over.
    """

    def __init__(
        self, context: StreamContext, bound: socket.socket, route: CompiledStream, on_closed: Callable[[], None]
    ) -> None:
        self._context = context
        self._socket = bound
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._sessions: dict[SessionKey, UdpSession] = {}
        self._refused: set[str] = set()
        self.route: CompiledStream | None = route
        """For new sessions; None: the port takes none any more, and closes with the last it has."""
        self._expects_header = False
        self.port: int = bound.getsockname()[1]
        if bound.family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        else:
            bound.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
        self._loop.add_reader(bound, self._read)

    def retire(self) -> None:
        """Take no new sessions; close with the last one. Setting `route` takes it back."""
        self.route = None
        self._close_if_done()

    def _close_if_done(self) -> None:
        if self.route is None and not self._sessions and self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._on_closed()

    def _read(self) -> None:
        for _ in range(DATAGRAMS_AT_ONCE):
            try:
                data, control, _, peer = self._socket.recvmsg(_MAX_DATAGRAM, _ANCILLARY)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                # An ICMP error about an answer that we sent: somebody else's datagram is next.
                _log.debug("a datagram could not be received", extra={"error": str(error)})
                return
            self._take(SessionKey(peer, _answer_control(control)), data)

    def _take(self, key: SessionKey, data: bytes) -> None:
        if self.route is not None:
            self._expects_header = self.route.entry.accept_proxy_protocol
        if self._expects_header and self._context.trusts(plain_address(key.peer)[0]):
            try:
                header = read_datagram_header(data)
            except BadProxyHeader as error:
                _log.debug("a datagram without its PROXY header", extra={"error": str(error), "port": self.port})
                self._context.stats.unrouted += 1
                return
            key, data = key._replace(told=header.addresses), data[header.size :]
        session = self._sessions.get(key) or self._new_session(key)
        if session is not None:
            session.send(data)

    def _new_session(self, key: SessionKey) -> "UdpSession | None":
        route = self.route
        if route is None:
            return None
        client = key.told.source if key.told is not None else plain_address(key.peer)
        counters = self._context.stats.route(route.entry.key)
        # Each session takes a socket of this worker.
        is_full = route.entry.max_connections is None and counters.active >= self._context.max_udp_sessions
        if is_full or route.problem or not route.allows(client[0]) or self._context.stats.begin(route.entry, client[0]):
            # No record: a flood of datagrams must not become a flood of log lines.
            counters.dropped += 1
            return None
        session = UdpSession(self, self._context, route, key, client)
        self._sessions[key] = session
        session.open()
        return None if session.is_over else session

    def answer(self, key: SessionKey, data: bytes) -> bool:
        """Send a datagram to a client; False: the kernel does not take it."""
        try:
            self._socket.sendmsg([data], key.control, 0, key.peer)
        except OSError:
            return False
        return True

    def ends_of(self, key: SessionKey) -> Addresses:
        """Return a session's client, and the address that it sends to."""
        if key.told is not None:
            return key.told
        peer = plain_address(key.peer)
        return Addresses(peer, (_asked_address(key.control) or self._socket.getsockname()[0], self.port))

    def forget(self, key: SessionKey) -> None:
        """Take a session off the list, as it ended."""
        self._sessions.pop(key, None)
        self._close_if_done()


def _answer_control(control: list[tuple[int, int, bytes]]) -> tuple[tuple[int, int, bytes], ...]:
    """Turn what a datagram was received with into what its answer is sent with: source address, any interface."""
    for level, kind, value in control:
        if level == socket.IPPROTO_IP and kind == _IP_PKTINFO and len(value) == 12:
            return ((level, kind, bytes(4) + value[4:8] + bytes(4)),)
        if level == socket.IPPROTO_IPV6 and kind == socket.IPV6_PKTINFO and len(value) == 20:
            is_link_local = value[0] == 0xFE and value[1] & 0xC0 == 0x80
            return ((level, kind, value if is_link_local else value[:16] + bytes(4)),)
    return ()


def _asked_address(control: tuple[tuple[int, int, bytes], ...]) -> str:
    """Return the address that a datagram came to; empty if the kernel did not say."""
    for level, _, value in control:
        if level == socket.IPPROTO_IP:
            return socket.inet_ntop(socket.AF_INET, value[4:8])
        return plain_address((socket.inet_ntop(socket.AF_INET6, value[:16]), 0))[0]
    return ""


class UdpSession:
    """The datagrams of one client, to one endpoint and back."""

    __slots__ = (
        "_active_at",
        "_answers",
        "_client",
        "_context",
        "_counters",
        "_header",
        "_holder",
        "_key",
        "_loop",
        "_pool",
        "_port",
        "_received",
        "_requests",
        "_route",
        "_sent",
        "_socket",
        "_started_at",
        "_task",
        "_timer",
        "_waiting",
        "is_over",
    )

    def __init__(
        self, port: UdpPort, context: StreamContext, route: CompiledStream, key: SessionKey, client: SocketAddress
    ) -> None:
        self._port = port
        self._context = context
        self._route = route
        self._key = key
        self._client = client
        self._counters = context.stats.route(route.entry.key)
        self._loop = asyncio.get_running_loop()
        self._started_at = self._active_at = self._loop.time()
        self._socket: socket.socket | None = None
        self._header = b""
        """That every datagram to the endpoint begins with."""
        self._pool: EndpointPool | None = None
        self._task: asyncio.Task[None] | None = None
        self._waiting: deque[bytes] = deque(maxlen=_WAITING)
        self._holder: UpstreamHolder | None = None
        self._requests = self._answers = self._received = self._sent = 0
        self._timer = self._loop.call_later(route.entry.idle_timeout_s, self._check_idle)
        self.is_over = False

    def open(self) -> None:
        """Choose an endpoint and connect to it, at once if it has an IP address."""
        self._counters.accepted += 1
        self._counters.active += 1
        self._context.enter(self)
        holder = self._route.choose_upstream()
        if holder is None:
            self._end(Status.NO_UPSTREAM, "all backends have weight 0")
            return
        self._holder = holder
        pool = choose_endpoint(holder, (), ClientSource(self._client[0], ""))
        if pool is None:
            self._end(Status.NO_UPSTREAM, holder.unavailable or f"{holder.key} has no endpoint")
            return
        self._pool = pool
        pool.in_flight += 1
        if pool.spec.proxy_protocol:
            self._header = write_datagram_header(self._port.ends_of(self._key))
        if is_ip_address(pool.address):
            self._connect(address_info(pool.address, pool.port, socket.SOCK_DGRAM))
        else:
            self._task = self._loop.create_task(self._resolve(pool))

    async def _resolve(self, pool: EndpointPool) -> None:
        try:
            async with asyncio.timeout(self._route.entry.connect_timeout_s):
                found = await self._context.dialler.find_for_datagrams(pool.address, pool.port)
        except DestinationDenied as error:
            self._deny(error)
            return
        except (OSError, UnicodeError, TimeoutError) as error:
            self._fail(f"{pool.label}: {str(error) or 'not resolved in time'}")
            return
        self._connect(found)
        waiting, self._waiting = self._waiting, deque()
        for data in waiting:
            self._forward(data)

    def _connect(self, info: AddressInfo) -> None:
        try:
            opened = self._context.dialler.open_socket(info)
        except DestinationDenied as error:
            self._deny(error)
            return
        try:
            opened.setblocking(False)
            opened.connect(info[4])
        except OSError as error:
            opened.close()
            self._fail(str(error))
            return
        self._socket = opened
        self._loop.add_reader(opened, self._read)

    def send(self, data: bytes) -> None:
        """Pass a client's datagram on, or keep it while the endpoint's name is resolved."""
        self._active_at = self._loop.time()
        self._requests += 1
        self._received += len(data)
        self._counters.received += len(data)
        if self._socket is None:
            self._waiting.append(data)
        else:
            self._forward(data)

    def _forward(self, data: bytes) -> None:
        if self._socket is None:
            return
        try:
            self._socket.send(self._header + data if self._header else data)
        except ConnectionError as error:
            self._fail(str(error))
            return
        except OSError:
            # A full queue, or a datagram longer than the way takes.
            self._counters.dropped += 1
        if self._route.entry.udp_responses == 0:
            self._end(Status.OK, "")

    def _read(self) -> None:
        for _ in range(DATAGRAMS_AT_ONCE):
            if self._socket is None:
                return
            try:
                data = self._socket.recv(_MAX_DATAGRAM)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                # The next datagram begins a new session, perhaps with an endpoint that is there.
                self._fail(str(error))
                return
            self._answer(data)

    def _answer(self, data: bytes) -> None:
        self._active_at = self._loop.time()
        self._answers += 1
        if self._answers == 1:
            self._report(CONNECTED)
        if self._port.answer(self._key, data):
            self._sent += len(data)
            self._counters.sent += len(data)
        else:
            self._counters.dropped += 1
        expected = self._route.entry.udp_responses
        # As nginx counts: a client may ask twice before the first answer, as resolvers do for A and AAAA.
        if expected is not None and self._answers >= expected * self._requests:
            self._end(Status.OK, "")

    def _deny(self, denied: DestinationDenied) -> None:
        self._context.dialler.destinations.tell(denied, str(self._route.entry.provenance))
        self._fail(denied.reason)

    def _fail(self, reason: str) -> None:
        """End, as the endpoint does not take datagrams."""
        self._report("connect")
        self._end(Status.NO_UPSTREAM, reason)

    def _report(self, outcome: Outcome) -> None:
        if self._holder is not None and self._pool is not None:
            self._holder.report(self._pool, outcome)

    def _check_idle(self) -> None:
        left = self._active_at + self._route.entry.idle_timeout_s - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._check_idle)
        else:
            self._end(Status.OK, "")

    def abort(self) -> None:
        """End at once."""
        self._end(Status.OK, "the gateway stops")

    def count_bytes(self) -> None:
        """Nothing to bring up to date: each datagram is counted as it passes."""

    def _end(self, status: Status, reason: str) -> None:
        if self.is_over:
            return
        self.is_over = True
        self._timer.cancel()
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        if self._pool is not None:
            self._pool.in_flight -= 1
        self._counters.active -= 1
        self._context.stats.end(self._route.entry, self._client[0])
        self._counters.finished[status] = self._counters.finished.get(status, 0) + 1
        self._context.leave(self)
        self._port.forget(self._key)
        self._log(status, reason)

    def _log(self, status: Status, reason: str) -> None:
        if self._context.log is None:
            return
        self._context.log(
            StreamRecord(
                "udp",
                self._client[0],
                self._port.port,
                "",
                status,
                self._received,
                self._sent,
                self._loop.time() - self._started_at,
                self._route.entry.key,
                self._holder.key if self._holder is not None else "",
                self._pool.label if self._pool is not None else "",
                reason,
            )
        )
