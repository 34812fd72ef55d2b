"""One QUIC connection of a client, and HTTP/3 on top of it.

qh3 has the transport in compiled code (decision 0069). Its Python half hands every event over as soon as it is there,
and with it the client gets credit for more. Here events wait in the transport while HTTP/3 can take no more, so that
the client's window closes; therefore, and for speed, what that half does with events is done here.
"""

import logging
import time
from typing import TYPE_CHECKING, Any, Final

from qh3 import tls
from qh3._hazmat import QuicConnectionCore
from qh3.quic.connection import QuicConnection, QuicConnectionError
from qh3.quic.events import HandshakeCompleted
from qh3.quic.packet import QuicErrorCode
from qh3.quic.tls_bridge import QuicTlsBridgeError

from headgate.gateway.net.proxy_protocol import Addresses
from headgate.gateway.net.sockets import plain_address
from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.http3.numbers import EXCESSIVE_LOAD
from headgate.gateway.proxy.http3.server import Http3Connection
from headgate.gateway.proxy.peer import Peer
from headgate.gateway.quic.handshake import QuicTls, ServerTls
from headgate.gateway.quic.initial import AES_128, initial_keys
from headgate.gateway.quic.tokens import Retried

if TYPE_CHECKING:
    from headgate.gateway.quic.endpoint import QuicEndpoint

logging.getLogger("quic").setLevel(logging.CRITICAL)
"""qh3 warns of each client that closes its connection."""
_log = logging.getLogger(__name__)
_ENDED: Final = frozenset({"closing", "draining", "terminated"})
_LAST_PATH: Final = 3
"""Number of the last address of a client that qh3 takes packets from (its `MAX_PATHS`), the first being 0. A client
that has moved there is asked for a new connection, which can move again."""
_HTTPS_PORT: Final = 443
_BURST: Final = 64
"""Datagrams that one connection sends before others have a turn."""
MOST_WAITING: Final = 4096
"""Events that may wait in the transport while HTTP/3 takes none. Bodies are bounded by the client's windows, and
bytes of one stream are one event, however they came. But qh3 lets clients open further streams as others end, read or
not, and what they say of streams has no window: 500 events fit into a packet."""
_NEW_EVENTS: Final = 5
"""Where the transport's report on datagrams says how many events they made."""
NetworkAddress = tuple[Any, ...]
"""As sockets have it: address and port, of IPv6 two numbers more."""


class ClientQuic(QuicConnection):
    """A connection of a client; the `Link` of its HTTP/3."""

    def __init__(
        self,
        endpoint: "QuicEndpoint",
        address: NetworkAddress,
        retried: Retried,
        *,
        is_anonymous: bool = False,
        told: Addresses | None = None,
    ) -> None:
        """Begin; an anonymous client has connection ids of no length, as browsers have, and has chosen one of ours.

        `told` are both ends as a PROXY header named them.
        """
        super().__init__(
            configuration=endpoint.configuration,
            original_destination_connection_id=retried.original_id,
            retry_source_connection_id=retried.retry_id or None,
        )
        self._endpoint = endpoint
        self._is_anonymous = is_anonymous
        self._told = told
        if is_anonymous:
            self.host_cid = retried.retry_id or retried.original_id
        self._shown_tls: ServerTls | None = None
        self.address = address
        """Where the handshake comes from to its end, which proves it; what comes later changes nothing of it."""
        self.ids = {retried.retry_id or retried.original_id, self.host_cid}
        """Connection ids that its packets may have."""
        self._server_name = b""
        self.session: Http3Connection | None = None
        """None: the handshake is not complete."""
        self.is_over = False
        self.expires = time.monotonic() + endpoint.handshake_timeout_s
        """When a handshake has taken too long."""
        self._timer: Any = None
        self._timer_at = 0.0
        self.is_dirty = False
        """Something may have to be sent."""
        self._waiting = 0
        """Events that wait in the transport, at least."""
        self._has_failed = False

    # From the endpoint

    def receive(self, datagrams: list[bytes], address: NetworkAddress) -> None:
        """Take datagrams that came from one address."""
        if self.session is None and address[:2] != self.address[:2]:
            # Of one handshake (RFC 9000 section 9). Another address may be forged, and would count as the client's.
            return
        now = time.monotonic()
        self._endpoint.note(self)
        try:
            self._take_datagrams(datagrams, address, now)
            self._look_for_end()
        except BaseException as error:
            self._fail(error)

    def _take_datagrams(self, datagrams: list[bytes], address: NetworkAddress, now: float) -> None:
        session = self.session
        if session is None:
            self.receive_many_datagrams(datagrams, address, now)
            return
        core = self._require_core()
        report = self._call_core(core.receive_many_datagrams, datagrams, self._normalize_address(address), now)
        self._waiting += report[_NEW_EVENTS]
        self._drain_core()
        if self._waiting > MOST_WAITING:
            session.calm_down()
            self._drain_core()

    def transmit(self) -> bool:
        """Send what can be sent; False: the socket takes no more for now."""
        try:
            return self._transmit()
        except BaseException as error:
            self._fail(error)
            return True

    def _transmit(self) -> bool:
        self.is_dirty = False
        core, endpoint = self._core, self._endpoint
        if core is None or self.is_over:
            return True
        now = time.monotonic()
        datagrams: list[bytes] = []
        address: NetworkAddress | None = None
        is_taken = True
        for _ in range(_BURST):
            packet = _next_packet(core, now)
            if packet is None:
                break
            if packet[1] != address and address is not None:
                is_taken = endpoint.send(datagrams, address)
                datagrams = []
            address = packet[1]
            datagrams.append(packet[0])
        else:
            endpoint.note(self)
        if address is not None:
            is_taken = endpoint.send(datagrams, address) and is_taken
            if self.session is not None:
                self.session.sent()
        self._arm()
        return is_taken

    def _arm(self) -> None:
        """Have the timer go off in time. One that goes off too early looks again, which is cheaper than moving it."""
        due = self.get_timer()
        if due is None or self.is_over:
            return
        timer = self._timer
        if timer is None or due < self._timer_at - 0.0005:
            if timer is not None:
                timer.cancel()
            self._timer_at = due
            self._timer = self._endpoint.call_at(due, self._time_out)

    def _time_out(self) -> None:
        self._timer = None
        now = time.monotonic()
        due = self.get_timer()
        if due is None or self.is_over:
            return
        if due > now:
            self._arm()
            return
        try:
            self.handle_timer(now)
            self._look_for_end()
        except BaseException as error:
            self._fail(error)
        self._endpoint.note(self)

    def refuse(self) -> None:
        """Close a connection whose handshake is not complete."""
        self._close(QuicErrorCode.CONNECTION_REFUSED, 0, "")

    # Events

    def _create_core(self, remote_addr: NetworkAddress, initial_dcid: bytes, now: float) -> None:
        """Make the transport. It takes a client's id of no length for one that it has yet to learn, and so is told."""
        if not self._is_anonymous:
            super()._create_core(remote_addr, initial_dcid, now)
            return
        super()._create_core(remote_addr, b"", now)
        for direction, key in initial_keys(initial_dcid).items():
            self._require_core().install_packet_key(direction, 0, AES_128, *key, 0)

    def _create_tls(self, remote_source_cid: bytes | None) -> ServerTls:
        endpoint = self._endpoint
        self._tls = self._shown_tls = ServerTls(
            endpoint.choose,
            endpoint.sessions,
            endpoint.certificates,
            endpoint.counts,
            self._configuration,
            version=self._version,
            local_initial_source_connection_id=self.host_cid,
            remote_initial_source_connection_id=b"" if self._is_anonymous else remote_source_cid,
            original_destination_connection_id=self._original_destination_connection_id,
            retry_source_connection_id=self._retry_source_connection_id,
            version_change_handler=self._set_version,
        )
        return self._shown_tls

    def _drain_core(self) -> None:
        core = self._require_core()
        while True:
            session = self.session
            if session is not None and session.is_full and not session.closed:
                return
            event = core.next_event()
            if event is None:
                self._waiting = 0
                return
            self._waiting = max(self._waiting - 1, 0)
            kind = event[0]
            if kind == "stream_data":
                if session is not None:
                    session.stream_data(event[1], event[2], end=event[3])
            elif kind == "stream_finished":
                if session is not None:
                    session.stream_finished(event[1])
            elif kind == "stream_reset":
                if session is not None:
                    session.stream_reset(event[1])
            elif kind == "stop_sending":
                if session is not None:
                    session.stop_sending(event[1])
            else:
                self._take_rare(kind, event)

    def _take_rare(self, kind: str, event: tuple[Any, ...]) -> None:
        if kind == "crypto_data":
            self._take_crypto(event)
        elif kind == "connection_id_issued":
            self.ids.add(event[1])
            self._endpoint.add_id(event[1], self)
        elif kind == "connection_id_retired":
            self.ids.discard(event[1])
            self._endpoint.remove_id(event[1])
        elif kind == "peer_migration":
            if event[1] >= _LAST_PATH and self.session is not None:
                self.session.replace()
        elif kind in ("peer_closed", "protocol_error"):
            if self.session is not None:
                self.session.lost()
        elif kind == "connection_terminated":
            self.give_up()

    def _take_crypto(self, event: tuple[Any, ...]) -> None:
        assert self._shown_tls is not None, "it was made with the transport"
        try:
            self._shown_tls.receive_crypto(
                tls.Epoch(event[1]), event[3], event[2], version=self._require_core().version
            )
            self._drain_tls()
        except QuicTlsBridgeError as error:
            self._require_core().close(error.error_code, int(error.frame_type), error.reason_phrase.encode())
            return
        while self._events:
            if isinstance(self._events.popleft(), HandshakeCompleted):
                self._complete()

    def _complete(self) -> None:
        endpoint, shown = self._endpoint, self._shown_tls
        endpoint.completed(self)
        context = endpoint.context()
        assert shown is not None, "it was made with the transport"
        assert shown.shown is not None, "a certificate was presented"
        self._server_name = shown.shown.server_name.encode()
        peer = self._peer(context, shown.shown)
        context.stats.connections += 1
        exceeded = context.limits.enter(peer) if context.limits is not None else ""
        if exceeded:
            context.stats.refused_connection(exceeded)
            self.end(EXCESSIVE_LOAD, "too many connections")
            return
        self.session = Http3Connection(context, peer, self)
        self.session.start()
        if context.draining:
            self.session.announce_drain()

    def _peer(self, context: ProxyContext, shown: QuicTls) -> Peer:
        endpoint, told = self._endpoint, self._told
        ends = told or Addresses(plain_address(self.address), endpoint.address)
        (source, _), (_, port) = ends
        return Peer(
            source.encode(),
            b"https",
            endpoint.shown_port if port == endpoint.address[1] else str(port).encode(),
            ends,
            shown,
            is_trusted=context.trusted is not None and context.trusted.includes(source),
            names_https=told is not None and port == _HTTPS_PORT,
        )

    def _look_for_end(self) -> None:
        """Notice the end of a connection also while its events wait."""
        session = self.session
        if session is not None and session.is_full and self._require_core().state in _ENDED:
            session.lost()
            self._drain_core()

    def _fail(self, error: BaseException) -> None:
        """Close a connection with which something cannot go on; the others must not wait for it.

        A fault in the transport's compiled code is no Exception.
        """
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise error
        if self._has_failed or self._core is None:
            self.give_up()
            return
        self._has_failed = True
        if isinstance(error, QuicConnectionError | QuicTlsBridgeError | ValueError):
            _log.debug("QUIC connection failed", extra={"error": str(error)})
        else:
            _log.error("a connection of HTTP/3 is closed", exc_info=error)
        self._endpoint.call_at(time.monotonic() + self._endpoint.handshake_timeout_s, self.give_up)
        try:
            if self.session is not None:
                self.session.fail()
            else:
                self._close(QuicErrorCode.INTERNAL_ERROR, 0, "")
        except BaseException as further:
            self._fail(further)

    def give_up(self) -> None:
        """Forget the connection, without a word to the client."""
        if self.is_over:
            return
        self.is_over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._endpoint.remove(self)
        if self.session is not None:
            self.session.lost()

    # Link

    def serves(self, host: bytes) -> bool:
        """Tell whether a host may be reached: that which the handshake was for, and those whose policy suits QUIC."""
        return host == self._server_name or self._endpoint.suits(host)

    def open_control(self, data: bytes) -> int:
        """Open a stream of one direction."""
        stream_id: int = self._require_core().open_stream(True)
        self.send(stream_id, data, end=False)
        return stream_id

    def send(self, stream_id: int, data: bytes, *, end: bool) -> None:
        """Send at the end of the turn."""
        try:
            self._require_core().send_stream(stream_id, data, end)
        except (RuntimeError, ValueError):
            # The client has closed the connection or stopped the stream; the event that says so is on its way.
            return
        if not self.is_dirty:
            self._endpoint.note(self)

    def flush(self) -> None:
        """Send now, unless the socket takes no more."""
        if self._endpoint.is_blocked:
            self._endpoint.note(self)
        else:
            self.transmit()

    def unsent(self, stream_id: int) -> int:
        """Count the bytes that were not sent yet."""
        size: int = self._require_core().get_send_buffer_size(stream_id)
        return size

    def reset(self, stream_id: int, code: int) -> None:
        """Send nothing more on a stream."""
        try:
            self._require_core().reset_stream(stream_id, code)
        except (RuntimeError, ValueError):
            return
        self._endpoint.note(self)

    def stop(self, stream_id: int, code: int) -> None:
        """Ask for nothing more on a stream."""
        try:
            self._require_core().stop_sending(stream_id, code)
        except (RuntimeError, ValueError):
            return
        self._endpoint.note(self)

    def resume(self) -> None:
        """Go on with the events that wait."""
        self._endpoint.call_soon(self._go_on)

    def _go_on(self) -> None:
        if self.is_over:
            return
        try:
            self._drain_core()
        except BaseException as error:
            self._fail(error)
        self._endpoint.note(self)

    def end(self, code: int, reason: str) -> None:
        """Close the connection."""
        self._close(code, None, reason)

    def _close(self, code: int, frame_type: int | None, reason: str) -> None:
        """Close the connection; with the type of a frame, for a fault of QUIC and not of HTTP/3."""
        if self._core is None or self.is_over:
            return
        try:
            self._require_core().close(code, frame_type, reason.encode())
        except (RuntimeError, ValueError):
            self.give_up()
            return
        self._endpoint.note(self)


def _next_packet(core: QuicConnectionCore, now: float) -> tuple[Any, ...] | None:
    """Take the next packet to send; None: nothing may be sent now."""
    try:
        return core.poll_transmit(now)
    except RuntimeError:
        # What waits does not fit into what may be sent to an address that is not validated yet (RFC 9000 section 8).
        return None
