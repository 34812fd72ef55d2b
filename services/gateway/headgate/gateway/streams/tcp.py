"""TCP connections: two transports, each of which writes what the other reads.

Whatever one side cannot write at once pauses reading on the other, so a connection holds one read (at most 256 KiB) and
the write buffer (64 KiB) for each direction, however slow the reader. The end of one side is passed on as an end, a
reset as a reset.
"""

import asyncio
import contextlib
import socket
from typing import Final, Literal, cast

from headgate.common.table import BackendProtocol, MqttConnect
from headgate.gateway.health.ejection import CONNECTED
from headgate.gateway.net.destinations import DestinationDenied
from headgate.gateway.net.proxy_protocol import Addresses, write_proxy_header
from headgate.gateway.net.sockets import reset_on_close
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.proxy.heads.facts import RequestFacts
from headgate.gateway.streams.context import StreamContext
from headgate.gateway.streams.log import Status, StreamRecord
from headgate.gateway.streams.mqtt import NotMqtt, read_client_id
from headgate.gateway.streams.route import CompiledStream, choose_endpoint

BUFFER_HIGH: Final = 64 * 1024
"""Unsent bytes to one side at which reading from the other pauses."""
_ATTEMPTS: Final = 2
"""Endpoints tried for one connection."""
_REFUSALS: Final = 2
"""Endpoints that refuse at once and do not count to them, as with requests: they are gone or not there yet."""


class ClientSource:
    """A client as balancing sees it: streams have no requests, but an address to hash and perhaps a name.

    An MQTT client asks for its session, which its id names.
    """

    __slots__ = ("_facts",)

    def __init__(self, client: str, server_name: str, mqtt_client_id: bytes | None = None) -> None:
        scheme = b"tcp" if mqtt_client_id is None else b"mqtt"
        self._facts = RequestFacts(b"", scheme, server_name.encode(), mqtt_client_id or b"", b"", client.encode())

    def facts(self) -> RequestFacts:
        """Return what is known of the client."""
        return self._facts

    def note_upstream(self, state: object) -> None:
        """Pass over: streams are not counted by requests' bounds."""


class NoEndpoint(Exception):
    """No endpoint took the connection; the text says why, for the log."""


class Side(asyncio.Protocol):
    """One of the two transports of a connection."""

    __slots__ = ("_arrival", "connection", "count", "early", "has_ended", "is_lost", "other", "transport")

    other: "Side"
    transport: asyncio.Transport

    def __init__(self, connection: "StreamConnection") -> None:
        self.connection = connection
        self.count = 0
        """Bytes read."""
        self.early = bytearray()
        """Read before there was another side."""
        self._arrival: asyncio.Future[None] | None = None
        """Done with the next bytes that come early, or the end."""
        self.has_ended = False
        """It sends no more."""
        self.is_lost = True
        """There is no transport, or not any more."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self.transport = cast(asyncio.Transport, transport)
        self.is_lost = False
        self.transport.set_write_buffer_limits(high=BUFFER_HIGH)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on; keep those that come before there is another side, and read no more until then."""
        self.count += len(data)
        if not self.connection.is_linked:
            self.early += data
            self.transport.pause_reading()
            self._note_arrival()
            return
        self.other.transport.write(data)
        self.connection.note_activity()

    def pause_writing(self) -> None:
        """Stop reading what could not be written."""
        if not (self.other.is_lost or self.other.transport.is_closing()):
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read again."""
        if not (self.other.is_lost or self.other.transport.is_closing()):
            self.other.transport.resume_reading()

    def eof_received(self) -> bool:
        """Pass the end on. The other direction stays open where both transports can do that; TLS cannot."""
        self.has_ended = True
        if not self.connection.is_linked:
            self._note_arrival()
            return True
        return self._pass_end_on()

    async def read_more(self) -> None:
        """Read on before there is another side, until there is more in `early` or `has_ended`."""
        self._arrival = asyncio.get_running_loop().create_future()
        self.transport.resume_reading()
        await self._arrival

    def _note_arrival(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _pass_end_on(self) -> bool:
        other = self.other
        if other.is_lost or other.has_ended or not other.transport.can_write_eof():
            if not other.is_lost:
                other.transport.close()
            return False
        other.transport.write_eof()
        return True

    def begin(self) -> None:
        """Pass on what came early, and all that follows."""
        if self.early:
            self.other.transport.write(bytes(self.early))
            self.early.clear()
        if not self.has_ended:
            self.transport.resume_reading()
        elif not self._pass_end_on():
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the other side go too, in the same way."""
        self.is_lost = True
        self.connection.lost_side(self, exc)

    def abort(self) -> None:
        """Close at once, with a reset."""
        if not self.is_lost:
            own = self.transport.get_extra_info("socket")
            if own is not None:
                with contextlib.suppress(OSError):
                    reset_on_close(own)
            self.transport.abort()


class StreamConnection:
    """A client's connection and the endpoint that serves it."""

    __slots__ = (
        "_active_at",
        "_addresses",
        "_client",
        "_context",
        "_counters",
        "_endpoint",
        "_loop",
        "_mqtt_client_id",
        "_pool",
        "_reason",
        "_received",
        "_route",
        "_sent",
        "_server_name",
        "_started_at",
        "_status",
        "_task",
        "_timer",
        "_upstream",
        "_upstream_key",
        "is_linked",
    )

    def __init__(self, context: StreamContext, route: CompiledStream, addresses: Addresses, server_name: str) -> None:
        self._context = context
        self._route = route
        self._addresses = addresses
        self._server_name = server_name
        self._mqtt_client_id: bytes | None = None
        self._counters = context.stats.route(route.entry.key)
        self._loop = asyncio.get_running_loop()
        self._started_at = self._active_at = self._loop.time()
        self._client = Side(self)
        self._upstream = Side(self)
        self._client.other = self._upstream
        self._upstream.other = self._client
        self._pool: EndpointPool | None = None
        self._endpoint = ""
        self._upstream_key = ""
        self._status = Status.OK
        self._reason = ""
        self._received = 0
        self._sent = 0
        self.is_linked = False
        """Both sides are there, and bytes flow."""
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def open(self, accepted: socket.socket) -> None:
        """Connect an accepted socket with an endpoint. Returns once both sides are up, or the connection has ended."""
        counters = self._counters
        if refusal := self._refusal():
            accepted.close()
            self._status, self._reason = refusal
            self._record()
            return
        counters.accepted += 1
        counters.active += 1
        self._task = asyncio.current_task()
        self._context.enter(self)
        entry = self._route.entry
        try:
            await (self._open_client_first(accepted) if entry.terminate or entry.mqtt else self._open_plain(accepted))
        except NotMqtt as refusal:
            self._give_up(accepted, Status.BAD_DATA, f"not as mqtt-proxy asks: {refusal}")
        except NoEndpoint as failure:
            self._give_up(accepted, Status.NO_UPSTREAM, str(failure))
        except (OSError, TimeoutError) as error:
            # The client's side: gone, or without a TLS handshake.
            self._give_up(accepted, Status.OK, f"client: {error or type(error).__name__}")
        except asyncio.CancelledError:
            self._give_up(accepted, Status.OK, "ended before it was connected")
            raise
        except Exception as error:
            self._give_up(accepted, Status.FAILED, f"{type(error).__name__}: {error}")
            raise
        finally:
            self._task = None

    def _refusal(self) -> tuple[Status, str] | None:
        """Return why the connection is refused; None: it is counted for the bounds of its route."""
        route = self._route
        if route.problem:
            return Status.FAILED, route.problem
        if not route.allows(self._addresses.source[0]):
            return Status.FORBIDDEN, "the client's address is not in allowed_networks"
        exceeded = self._context.stats.begin(route.entry, self._addresses.source[0])
        return (Status.TOO_MANY, exceeded) if exceeded else None

    async def _open_plain(self, accepted: socket.socket) -> None:
        """Find an endpoint first: meanwhile what the client sends waits in the kernel."""
        await self._connect_upstream()
        await self._loop.connect_accepted_socket(lambda: self._client, accepted)
        self._start()

    async def _open_client_first(self, accepted: socket.socket) -> None:
        """Finish the handshake, and hear what MQTT clients say, first: who cannot is no endpoint's business."""
        terminate, mqtt = self._route.entry.terminate, self._route.entry.mqtt
        await self._loop.connect_accepted_socket(
            lambda: self._client,
            accepted,
            ssl=self._context.tls_for(self._route) if terminate else None,
            ssl_handshake_timeout=self._context.preface_timeout_s if terminate else None,
        )
        if mqtt is not None:
            self._mqtt_client_id = await self._hear_client_id(mqtt)
        await self._connect_upstream()
        self._start()

    async def _hear_client_id(self, expected: MqttConnect) -> bytes:
        """Return the client id. Raises NotMqtt if the client does not begin as is expected, or not in time."""
        client = self._client
        try:
            async with asyncio.timeout(self._context.preface_timeout_s):
                while (client_id := read_client_id(client.early, expected)) is None:
                    if client.has_ended:
                        raise NotMqtt("it ended before its client id")
                    await client.read_more()
        except TimeoutError as error:
            raise NotMqtt("its client id did not come in time") from error
        return client_id

    async def _connect_upstream(self) -> None:
        """Connect to an endpoint, or to another one if that fails.

        Raises:
            NoEndpoint: there is none, or none that takes the connection.
        """
        holder = self._route.choose_upstream()
        if holder is None:
            raise NoEndpoint("all backends have weight 0")
        self._upstream_key = holder.key
        source = ClientSource(self._addresses.source[0], self._server_name, self._mqtt_client_id)
        tried: list[EndpointPool] = []
        reason = ""
        attempts = _ATTEMPTS
        while len(tried) < attempts:
            pool = choose_endpoint(holder, tried, source)
            if pool is None:
                break
            tried.append(pool)
            try:
                async with asyncio.timeout(self._route.entry.connect_timeout_s):
                    await self._connect_to(pool)
            except (OSError, UnicodeError, TimeoutError) as error:
                if isinstance(error, DestinationDenied):
                    self._context.dialler.destinations.tell(error, str(self._route.entry.provenance))
                holder.report(pool, "connect")
                if isinstance(error, ConnectionRefusedError):
                    attempts = min(attempts + 1, _ATTEMPTS + _REFUSALS)
                reason = f"{pool.label}: {str(error) or 'no connection in time'}"
            else:
                holder.report(pool, CONNECTED)
                return
        raise NoEndpoint(reason or holder.unavailable or f"{holder.key} has no endpoint left")

    async def _connect_to(self, pool: EndpointPool) -> None:
        spec = pool.spec
        tls = spec.tls if spec.protocol == BackendProtocol.TLS else None
        dialled = await self._context.dialler.dial(pool.address, pool.port)
        try:
            if spec.proxy_protocol:
                version: Literal[1, 2] = 2 if spec.proxy_protocol == 2 else 1
                await self._loop.sock_sendall(dialled, write_proxy_header(version, self._addresses))
            await self._loop.create_connection(
                lambda: self._upstream,
                sock=dialled,
                ssl=tls,
                server_hostname=spec.server_name or pool.address if tls is not None else None,
            )
        except BaseException:
            dialled.close()
            raise
        self._pool = pool
        self._endpoint = pool.label
        pool.in_flight += 1

    def _start(self) -> None:
        """Let bytes flow."""
        for side in (self._client, self._upstream):
            if side.is_lost:
                raise ConnectionResetError("closed while the other side was connected")
        self.is_linked = True
        self._client.begin()
        self._upstream.begin()
        self._active_at = self._loop.time()
        self._timer = self._loop.call_later(self._route.entry.idle_timeout_s, self._check_idle)

    def note_activity(self) -> None:
        """Put the idle timeout off."""
        self._active_at = self._loop.time()

    def _check_idle(self) -> None:
        left = self._active_at + self._route.entry.idle_timeout_s - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._check_idle)
        else:
            self._timer = None
            self._reason = self._reason or "idle"
            self.abort()

    def lost_side(self, side: Side, exc: Exception | None) -> None:
        """Close the other side of one that is gone; finish with the second."""
        other = side.other
        if self._task is not None:
            self._task.cancel()
        elif other.is_lost:
            self._finish()
        elif exc is None:
            other.transport.close()
        else:
            self._reason = self._reason or f"{'client' if side is self._client else self._endpoint}: {exc}"
            other.abort()

    def abort(self) -> None:
        """End at once, with resets."""
        if self._task is not None:
            self._task.cancel()
        self._client.abort()
        self._upstream.abort()

    def _give_up(self, accepted: socket.socket, status: Status, reason: str) -> None:
        """End a connection that was not opened to its end."""
        self._status, self._reason = status, reason
        if self._client.is_lost:
            accepted.close()
        self._client.abort()
        self._upstream.abort()
        if self._client.is_lost and self._upstream.is_lost:
            self._finish()

    def _finish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._pool is not None:
            self._pool.in_flight -= 1
        self._counters.active -= 1
        self._context.stats.end(self._route.entry, self._addresses.source[0])
        self._context.leave(self)
        self._record()

    def count_bytes(self) -> None:
        """Bring the counters up to date: connections may last for days."""
        received, sent = self._client.count, self._upstream.count
        self._counters.received += received - self._received
        self._counters.sent += sent - self._sent
        self._received, self._sent = received, sent

    def _record(self) -> None:
        self.count_bytes()
        finished = self._counters.finished
        finished[self._status] = finished.get(self._status, 0) + 1
        if self._context.log is not None:
            entry = self._route.entry
            self._context.log(
                StreamRecord(
                    entry.protocol,
                    self._addresses.source[0],
                    self._addresses.destination[1],
                    self._server_name,
                    self._status,
                    self._received,
                    self._sent,
                    self._loop.time() - self._started_at,
                    entry.key,
                    self._upstream_key,
                    self._endpoint,
                    self._reason,
                )
            )
