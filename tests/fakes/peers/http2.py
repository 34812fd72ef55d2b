"""A raw HTTP/2 client and server on `h2`, of which every frame is decided and seen by the test."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import hyperframe.frame

from fakes.gateway.proxied import PATIENCE_S

Headers = Iterable[tuple[bytes, bytes]]
ErrorCodes = h2.errors.ErrorCodes


def request(
    method: bytes = b"GET", path: bytes = b"/", *more: tuple[bytes, bytes], authority: bytes = b"a"
) -> list[tuple[bytes, bytes]]:
    """Header list of a request."""
    return [(b":method", method), (b":scheme", b"http"), (b":authority", authority), (b":path", path), *more]


@dataclass
class Answer:
    """What came on one stream."""

    informational: list[dict[bytes, bytes]] = field(default_factory=list)
    headers: dict[bytes, bytes] = field(default_factory=dict)
    fields: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    trailers: dict[bytes, bytes] = field(default_factory=dict)
    ended: bool = False
    reset: int | None = None

    @property
    def status(self) -> int:
        return int(self.headers.get(b":status", b"0"))


class Peer:
    """One end of a connection: runs `h2` over what comes and notes it by stream."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        client_side: bool,
        returns_windows: bool = True,
        settings: dict[int, int] | None = None,
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.returns_windows = returns_windows
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(
                client_side=client_side,
                header_encoding=None,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        if settings is not None:
            known = {h2.settings.SettingCodes(code): value for code, value in settings.items()}
            self.h2.local_settings = h2.settings.Settings(client=client_side, initial_values=known)
        self.answers: dict[int, Answer] = {}
        self.events: list[h2.events.Event] = []
        self.goaways: list[hyperframe.frame.GoAwayFrame] = []
        self.is_closed = False
        self._changed = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None
        # A GOAWAY would end everything in h2 at once.
        self.h2._frame_dispatch_table[hyperframe.frame.GoAwayFrame] = self._note_goaway  # noqa: SLF001 - h2 has no hook

    def start(self) -> None:
        """Greet and read from now on."""
        self.h2.initiate_connection()
        self.flush()
        self._reading = asyncio.create_task(self._read())

    def _note_goaway(self, frame: hyperframe.frame.GoAwayFrame) -> tuple[list[object], list[h2.events.Event]]:
        self.goaways.append(frame)
        return [], []

    async def _read(self) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await self.reader.read(65536):
                for event in self.h2.receive_data(data):
                    self.events.append(event)
                    self._note(event)
                self.flush()
                self._wake()
        self.is_closed = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _note(self, event: h2.events.Event) -> None:
        stream_id = getattr(event, "stream_id", None)
        if not stream_id:
            return
        answer = self.answers.setdefault(stream_id, Answer())
        match event:
            case h2.events.ResponseReceived() | h2.events.RequestReceived():
                answer.headers = dict(event.headers or [])
                answer.fields = list(event.headers or [])
            case h2.events.InformationalResponseReceived():
                answer.informational.append(dict(event.headers or []))
            case h2.events.DataReceived():
                answer.body += event.data
                if self.returns_windows and event.flow_controlled_length:
                    self.h2.increment_flow_control_window(event.flow_controlled_length)
                    with contextlib.suppress(h2.exceptions.ProtocolError):
                        self.h2.increment_flow_control_window(event.flow_controlled_length, stream_id)
            case h2.events.TrailersReceived():
                answer.trailers = dict(event.headers or [])
            case h2.events.StreamEnded():
                answer.ended = True
            case h2.events.StreamReset():
                answer.reset = int(event.error_code)

    def flush(self) -> None:
        """Send what `h2` has written."""
        data = self.h2.data_to_send()
        if data:
            self.writer.write(data)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something to have come; raises TimeoutError, or AssertionError when nothing more can come."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                assert not self.is_closed, "the connection is closed"
                changed = self._changed
                await changed.wait()

    async def closed(self) -> None:
        """Wait for the end of the connection."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.is_closed:
                changed = self._changed
                await changed.wait()

    async def answer(self, stream_id: int) -> Answer:
        """Wait for the end of a stream."""
        await self.until(lambda: stream_id in self.answers and self.is_over(stream_id))
        return self.answers[stream_id]

    def is_over(self, stream_id: int) -> bool:
        answer = self.answers.get(stream_id)
        return answer is not None and (answer.ended or answer.reset is not None)

    def open(self, headers: Headers, *, end: bool = True) -> int:
        """Send a head on a new stream."""
        stream_id = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream_id, list(headers), end_stream=end)
        self.flush()
        return stream_id

    def ignore_limits(self) -> None:
        """Open more streams than the peer allows."""
        self.h2.remote_settings.update({h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 2**20})
        self.h2.remote_settings.acknowledge()

    def send(self, stream_id: int, data: bytes, *, end: bool = False) -> None:
        """Send body that the windows have room for."""
        for at in range(0, len(data), 16_384):
            self.h2.send_data(stream_id, data[at : at + 16_384])
        if end:
            self.h2.end_stream(stream_id)
        self.flush()

    async def send_all(self, stream_id: int, data: bytes, *, end: bool = True) -> None:
        """Send as much body as there is, as windows open."""
        while data:
            await self.until(lambda: self.h2.local_flow_control_window(stream_id) > 0)
            room = min(self.h2.local_flow_control_window(stream_id), 16_384)
            self.send(stream_id, data[:room])
            data = data[room:]
            await self.writer.drain()
        if end:
            self.h2.end_stream(stream_id)
            self.flush()

    def trailers(self, stream_id: int, headers: Headers) -> None:
        """End a stream with trailers."""
        self.h2.send_headers(stream_id, list(headers), end_stream=True)
        self.flush()

    def reset(self, stream_id: int, code: int = 8) -> None:
        """Reset a stream."""
        self.h2.reset_stream(stream_id, code)
        self.flush()

    def frames(self, *frames: hyperframe.frame.Frame) -> None:
        """Send frames that `h2` knows nothing of."""
        self.writer.write(b"".join(frame.serialize() for frame in frames))

    async def fetch(self, headers: Headers, body: bytes = b"") -> Answer:
        """Send a request and wait for its answer."""
        stream_id = self.open(headers, end=not body)
        if body:
            await self.send_all(stream_id, body)
        return await self.answer(stream_id)

    @property
    def last_error(self) -> int | None:
        """Code of the last GOAWAY."""
        return int(self.goaways[-1].error_code) if self.goaways else None

    async def close(self) -> None:
        self.writer.close()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)


@contextlib.asynccontextmanager
async def http2_client(
    port: int,
    *,
    tls: ssl.SSLContext | None = None,
    returns_windows: bool = True,
    settings: dict[int, int] | None = None,
) -> AsyncIterator[Peer]:
    """Connect with prior knowledge, or by ALPN where there is TLS."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=tls, server_hostname="a.example" if tls is not None else None
    )
    peer = Peer(reader, writer, client_side=True, returns_windows=returns_windows, settings=settings)
    peer.start()
    try:
        yield peer
    finally:
        await peer.close()


Serve = Callable[[Peer, int], Awaitable[None]]


class Http2Origin:
    """A server that calls a script for each request, once its head is there."""

    def __init__(self, serve: Serve, settings: dict[int, int] | None = None, returns_windows: bool = True) -> None:
        self.serve = serve
        self.settings = settings
        self.returns_windows = returns_windows
        self.peers: list[Peer] = []
        self.port = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self._server = await asyncio.start_server(self._accept, host, self.port, ssl=tls)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop_listening(self) -> None:
        assert self._server is not None
        self._server.close()

    async def stop(self) -> None:
        self.stop_listening()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for peer in self.peers:
            await peer.close()

    @property
    def requests(self) -> list[Answer]:
        """All that was asked, by connection and stream."""
        return [request for peer in self.peers for _, request in sorted(peer.answers.items()) if request.headers]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer, client_side=False, settings=self.settings, returns_windows=self.returns_windows)
        self.peers.append(peer)
        peer.start()
        served: set[int] = set()
        with contextlib.suppress(AssertionError, TimeoutError, asyncio.CancelledError):
            while True:
                await peer.until(
                    lambda: any(request.headers and key not in served for key, request in peer.answers.items())
                )
                for stream_id in [key for key, each in peer.answers.items() if each.headers and key not in served]:
                    served.add(stream_id)
                    task = asyncio.create_task(self._serve(peer, stream_id))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

    async def _serve(self, peer: Peer, stream_id: int) -> None:
        with contextlib.suppress(h2.exceptions.ProtocolError, AssertionError):
            await self.serve(peer, stream_id)


def answer_with(body: bytes = b"ok", *more: tuple[bytes, bytes], trailers: Sequence[tuple[bytes, bytes]] = ()) -> Serve:
    """Script: wait for the whole request, then answer 200."""

    async def serve(peer: Peer, stream_id: int) -> None:
        await peer.answer(stream_id)
        length = [] if trailers else [(b"content-length", b"%d" % len(body))]
        head = [(b":status", b"200"), *length, *more]
        peer.h2.send_headers(stream_id, head, end_stream=not (body or trailers))
        if body or trailers:
            await peer.send_all(stream_id, body, end=not trailers)
        if trailers:
            peer.trailers(stream_id, trailers)
        peer.flush()

    return serve
