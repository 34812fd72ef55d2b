"""The UDP socket of HTTP/3: datagrams to connections by their ids, and new connections within bounds."""

import asyncio
import contextlib
import logging
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from qh3._hazmat import UdpSocketState, pull_quic_header
from qh3.quic.configuration import QuicConfiguration
from qh3.quic.packet import QuicPacketType, encode_quic_retry, encode_quic_version_negotiation

from headgate.gateway.net.proxy_protocol import Addresses, BadProxyHeader, SocketAddress, read_datagram_header
from headgate.gateway.net.sockets import plain_address
from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.quic.connection import ClientQuic, NetworkAddress
from headgate.gateway.quic.forwarding import NO_FORWARDING, Forwarding
from headgate.gateway.quic.handshake import ALPN, Certificates, Presented
from headgate.gateway.quic.sessions import Sessions
from headgate.gateway.quic.tokens import Retried, RetryTokens
from headgate.gateway.tls import CertificateStore, self_signed
from headgate.gateway.tls.handshake import Chosen

_ID_LENGTH: Final = 8
_LONG_HEADER: Final = 0x80
_MIN_INITIAL: Final = 1200
"""Bytes of the smallest datagram that begins a connection (RFC 9000 section 14.1)."""
VALIDATE_ABOVE: Final = 64
"""Handshakes in progress from which on new clients have to show that their address is theirs, by a Retry."""
MAX_HANDSHAKES: Final = 1024
"""Handshakes in progress from which on packets that begin another are dropped."""
STREAM_WINDOW: Final = 256 * 1024
CONNECTION_WINDOW: Final = 1024 * 1024
_MARGIN_S: Final = 5.0
"""By which QUIC waits longer than HTTP/3, which says a word before it closes."""
_BUFFER: Final = 4 * 1024 * 1024
"""Bytes that the kernel should keep for us either way; it gives what `net.core.rmem_max` allows."""


_log = logging.getLogger(__name__)

Groups = dict[ClientQuic, tuple[NetworkAddress, list[bytes]]]
"""Datagrams that came at once, by their connections."""
SendsHeaders = Callable[[str], bool]
"""Tells whether an address begins its datagrams with a PROXY header."""


class QuicEndpoint:
    """A UDP port, and its connections.

    Args:
        bound: nonblocking, bound; becomes the object's to close.
        context: gives what new connections share.
        certificates: of all ports.
        presented: what is presented here, by server name; None: as on the gateway's own port.
        shown_port: number of the port that clients connect to.
        forwarding: to the other processes with the same port.
        header_senders: tells who begins its datagrams with a PROXY header now; it gives None for nobody.
    """

    def __init__(
        self,
        bound: socket.socket,
        context: Callable[[], ProxyContext],
        certificates: CertificateStore,
        shown_port: int,
        forwarding: Forwarding = NO_FORWARDING,
        *,
        presented: Presented | None = None,
        header_senders: Callable[[], SendsHeaders | None] = lambda: None,
    ) -> None:
        self._socket = bound
        self._udp: UdpSocketState | None = UdpSocketState(bound.fileno())
        self._loop = asyncio.get_running_loop()
        self.context = context
        self.choose, self._find_policy = presented or Presented(certificates.choose, certificates.policy_for)
        self._store = certificates
        self._header_senders = header_senders
        self.counts = certificates.counts
        self.certificates = Certificates()
        self.shown_port = str(shown_port).encode()
        self.address: SocketAddress = plain_address(bound.getsockname())
        config = context().config
        self.handshake_timeout_s = config.tls_handshake_timeout_s
        longest_s = max(config.idle_timeout_s, config.read_timeout_s, config.body_timeout_s)
        self.configuration = _configuration(longest_s + _MARGIN_S)
        self._tokens = RetryTokens()
        self._by_id: dict[bytes, ClientQuic] = {}
        self._handshakes: set[ClientQuic] = set()
        self._dirty: list[ClientQuic] = []
        self._backlog: deque[tuple[list[bytes], NetworkAddress]] = deque()
        """What the kernel did not take yet."""
        self._is_accepting = True
        self._forwarding = forwarding
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            bound.setsockopt(socket.SOL_SOCKET, option, _BUFFER)

    def start(self) -> None:
        """Read datagrams."""
        self._loop.add_reader(self._socket.fileno(), self._read)
        self._forwarding.start(self._take_forwarded)

    def stop_accepting(self) -> None:
        """Take no new connections; those in a handshake are refused."""
        self._is_accepting = False
        for connection in list(self._handshakes):
            connection.refuse()

    def close(self) -> None:
        """Close the socket, with whatever still uses it."""
        connections = set(self._by_id.values())
        for connection in connections:
            if connection.session is not None:
                connection.session.abort()
            else:
                connection.refuse()
        self._flush()
        self._loop.remove_reader(self._socket.fileno())
        self._loop.remove_writer(self._socket.fileno())
        self._forwarding.close()
        for connection in connections:
            connection.give_up()
        self._udp = None  # It has a descriptor of its own, with which the port would stay.
        self._socket.close()

    @property
    def is_used(self) -> bool:
        """Whether there is a connection."""
        return bool(self._by_id)

    def sweep(self, now: float) -> None:
        """End handshakes that take too long."""
        for connection in [each for each in self._handshakes if each.expires < now]:
            connection.give_up()

    # From the network

    def _read(self) -> None:
        if self._udp is None:
            return
        groups: Groups = {}
        # One batch, which may be two thousand datagrams: others have their turn before the next.
        with contextlib.suppress(OSError):  # of a datagram that could not be delivered: QUIC notices by itself
            senders = self._header_senders()
            for data, address in self._udp.recv():
                if senders is None or not senders(plain_address(address)[0]):
                    self._sort(groups, data, address)
                else:
                    self._sort_told(groups, data, address)
        for connection, (address, datagrams) in groups.items():
            connection.receive(datagrams, address)

    def _sort_told(self, groups: Groups, data: bytes, address: NetworkAddress) -> None:
        """Take a datagram off whose header says who its client is; one without a header may be anybody's."""
        try:
            header = read_datagram_header(data)
        except BadProxyHeader as error:
            _log.debug("a datagram without its PROXY header", extra={"error": str(error)})
            return
        self._sort(groups, data[header.size :], address, header.addresses)

    def _sort(self, groups: Groups, data: bytes, address: NetworkAddress, told: Addresses | None = None) -> None:
        connection = None if data[:1] >= b"\x80" else self._by_id.get(data[1 : 1 + _ID_LENGTH])
        if connection is None:
            self._take_other(data, address, told)
            return
        group = groups.get(connection)
        if group is None:
            groups[connection] = (address, [data])
        elif group[0] == address:
            group[1].append(data)
        else:
            connection.receive(group[1], group[0])
            groups[connection] = (address, [data])

    def _take_other(self, data: bytes, address: NetworkAddress, told: Addresses | None) -> None:
        """Take a datagram with a long header, or of a connection that is not known here."""
        if not data:
            return
        if not data[0] & _LONG_HEADER:
            self._forwarding.forward(data[1 : 1 + _ID_LENGTH], data, address)
            return
        try:
            header = pull_quic_header(data, 0, _ID_LENGTH)
        except ValueError:
            return
        version, kind, destination_id, source_id = header[0], header[1], header[3], header[4]
        connection = self._by_id.get(destination_id)
        if connection is not None:
            connection.receive([data], address)
        elif version not in self.configuration.supported_versions:
            if len(data) >= _MIN_INITIAL and version:
                versions = self.configuration.supported_versions
                self._answer(encode_quic_version_negotiation(destination_id, source_id, versions), address)
        elif kind == QuicPacketType.INITIAL and len(data) >= _MIN_INITIAL:
            self._begin(data, address, header, told)
        else:
            self._forwarding.forward(destination_id, data, address)

    def _take_forwarded(self, connection_id: bytes, data: bytes, address: NetworkAddress) -> bool:
        """Take a datagram that another process has read; False: its connection is not here."""
        connection = self._by_id.get(connection_id)
        if connection is None:
            return False
        connection.receive([data], address)
        return True

    def _begin(self, data: bytes, address: NetworkAddress, header: tuple[Any, ...], told: Addresses | None) -> None:
        version, destination_id, source_id, token = header[0], header[3], header[4], header[5]
        if not self._is_accepting or len(destination_id) < _ID_LENGTH or len(self._handshakes) >= MAX_HANDSHAKES:
            return
        client = address[0], address[1]
        retried = self._tokens.open(client, token) if token else None
        if retried is None:
            # A client without an id of its own names ours, which must have the length that all have.
            if len(self._handshakes) >= VALIDATE_ABOVE or (not source_id and len(destination_id) != _ID_LENGTH):
                retry_id = os.urandom(_ID_LENGTH)
                token = self._tokens.seal(client, destination_id, retry_id)
                self._answer(encode_quic_retry(version, retry_id, source_id, destination_id, token), address)
                return
            retried = Retried(destination_id, b"")
        elif retried.retry_id != destination_id:
            return
        connection = ClientQuic(self, address, retried, is_anonymous=not source_id, told=told)
        self.counts.started += 1
        self._handshakes.add(connection)
        for each in connection.ids:
            self._by_id[each] = connection
        connection.receive([data], address)

    def _answer(self, datagram: bytes, address: NetworkAddress) -> None:
        """Answer an address that may be forged, if the kernel takes it now: nothing is kept for it."""
        if self._udp is not None and not self.is_blocked:
            with contextlib.suppress(OSError):
                self._udp.send([datagram], address)

    # From connections

    @property
    def is_blocked(self) -> bool:
        """Whether the kernel takes no more for now."""
        return bool(self._backlog)

    def suits(self, host: bytes) -> bool:
        """Tell whether QUIC can follow the policy of a host."""
        policy = self._find_policy(host)
        return policy is None or policy.suits_quic

    def sessions(self, chosen: Chosen, server_name: str) -> Sessions | None:
        """Find the sessions of a server name; None: its policy wants no tickets."""
        scope = self._store.ticket_scope(chosen, ALPN)
        return Sessions(self._store.own_tickets, scope, server_name) if scope is not None else None

    def completed(self, connection: ClientQuic) -> None:
        """Note that a handshake is complete."""
        self._handshakes.discard(connection)
        self.counts.completed += 1

    def add_id(self, connection_id: bytes, connection: ClientQuic) -> None:
        """Hand a connection packets with a further id."""
        self._by_id[connection_id] = connection

    def remove_id(self, connection_id: bytes) -> None:
        """Hand nobody packets with an id."""
        self._by_id.pop(connection_id, None)

    def remove(self, connection: ClientQuic) -> None:
        """Forget a connection that is over."""
        self._handshakes.discard(connection)
        for each in connection.ids:
            self._by_id.pop(each, None)

    def call_at(self, when: float, callback: Callable[[], None]) -> Any:
        """Call at a monotonic time."""
        return self._loop.call_at(when, callback)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call in the next turn."""
        self._loop.call_soon(callback)

    def note(self, connection: ClientQuic) -> None:
        """Have a connection send what it has to at the end of this turn."""
        if connection.is_dirty or connection.is_over:
            return
        connection.is_dirty = True
        if not self._dirty:
            self._loop.call_soon(self._flush)
        self._dirty.append(connection)

    def _flush(self) -> None:
        if self._backlog:
            return
        dirty, self._dirty = self._dirty, []
        for at, connection in enumerate(dirty):
            if not connection.transmit():
                connection.is_dirty = True
                self._dirty = dirty[at:] + self._dirty
                return

    def send(self, datagrams: list[bytes], address: NetworkAddress) -> bool:
        """Hand datagrams to the kernel; False: it takes no more, and keeps the rest waiting here."""
        if self._udp is None:
            return True
        if self._backlog:
            self._backlog.append((datagrams, address))
            return False
        # A network that does not take them is a loss, which QUIC makes good.
        with contextlib.suppress(OSError):
            sent = self._udp.send(datagrams, address)
            if sent < len(datagrams):
                self._backlog.append((datagrams[sent:], address))
                self._loop.add_writer(self._socket.fileno(), self._write)
                return False
        return True

    def _write(self) -> None:
        """Go on where the kernel took no more."""
        self._loop.remove_writer(self._socket.fileno())
        waiting, self._backlog = self._backlog, deque()
        for datagrams, address in waiting:
            self.send(datagrams, address)
        if not self._backlog and self._dirty:
            self._flush()


def _configuration(idle_timeout_s: float) -> QuicConfiguration:
    configuration = QuicConfiguration(
        is_client=False,
        alpn_protocols=[ALPN],
        connection_id_length=_ID_LENGTH,
        idle_timeout=idle_timeout_s,
        max_data=CONNECTION_WINDOW,
        max_stream_data=STREAM_WINDOW,
    )
    # Another is chosen by server name; without one no configuration of a server is taken.
    chain, key = self_signed("headgate.invalid")
    configuration.load_cert_chain(chain, key)
    return configuration
