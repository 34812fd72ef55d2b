"""Accepting connections by hand, and looking at what they begin with before anything is consumed.

TLS wants a connection's first byte, so what decides whether and by whom TLS is spoken - PROXY header and server name -
is looked at in the kernel's buffer (MSG_PEEK); only a PROXY header is taken out. The kernel wakes us when more than
what we saw is there (SO_RCVLOWAT), so a client that sends byte by byte costs a look for each, and no spinning.

Rejected: reading into memory and feeding TLS through a memory BIO. It is a second implementation of TLS transports.
"""

import asyncio
import errno
import logging
import select
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Protocol, TypeVar

from headgate.gateway.errors import GatewayError
from headgate.gateway.net import descriptors
from headgate.gateway.net.proxy_protocol import (
    MAX_HEADER,
    Addresses,
    BadProxyHeader,
    read_proxy_header,
)
from headgate.gateway.net.sockets import ends_of
from headgate.gateway.streams.context import StreamContext
from headgate.gateway.tls.client_hello import MAX_HELLO, ClientHello, HelloOutcome, read_client_hello

_log = logging.getLogger(__name__)

T = TypeVar("T")

ACCEPTS_AT_ONCE = 64
"""Connections accepted before others get their turn."""
PAUSE_S = 0.5
"""After the process ran out of descriptors or memory."""
_BLIND_PAUSE_S = 0.02
"""Between two looks where the kernel does not honour SO_RCVLOWAT."""


class ConnectionEnded(GatewayError):
    """A client that went away before it said what is needed."""


class Serve(Protocol):
    """What is done with an accepted connection, which becomes the callee's to close."""

    def __call__(self, accepted: socket.socket, /) -> Coroutine[Any, Any, None]:
        """Serve it, as far as that needs a task."""


class Acceptor:
    """Accepts the connections of one listening socket, each into a task of its own.

    Args:
        listener: nonblocking; stays the caller's to close.
        serve: must close the connection if it fails.
        pending: where the tasks of connections are that are not served yet.
    """

    def __init__(self, listener: socket.socket, serve: Serve, pending: "set[asyncio.Task[None]]") -> None:
        self._listener = listener
        self._serve = serve
        self._loop = asyncio.get_running_loop()
        self._pending = pending
        self._pause: asyncio.TimerHandle | None = None
        self._is_running = False

    def start(self) -> None:
        """Accept from now on."""
        self._is_running = True
        self._loop.add_reader(self._listener, self._accept)

    def stop(self, *, final: bool) -> None:
        """Stop accepting. `final`: take what waits in the kernel first, which closing would reset."""
        if not self._is_running:
            return
        if final and self._pause is None:
            self._accept()
        self._is_running = False
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        self._loop.remove_reader(self._listener)

    def _accept(self) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                accepted, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue
            except OSError as error:
                self._pause_accepting(error)
                return
            accepted.setblocking(False)
            task = self._loop.create_task(self._run(accepted))
            self._pending.add(task)
            task.add_done_callback(partial(self._finish, accepted))

    def _finish(self, accepted: socket.socket, task: "asyncio.Task[None]") -> None:
        self._pending.discard(task)
        if task.cancelled():
            # Perhaps before its first step, when nobody else would.
            accepted.close()

    def _pause_accepting(self, error: OSError) -> None:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            descriptors.note_exhausted("accept")
        else:
            _log.error("connections cannot be accepted for a moment", extra={"error": str(error)})
        self._loop.remove_reader(self._listener)
        self._pause = self._loop.call_later(PAUSE_S, self._resume_accepting)

    def _resume_accepting(self) -> None:
        self._pause = None
        self.start()

    async def _run(self, accepted: socket.socket) -> None:
        try:
            await self._serve(accepted)
        except Exception:
            accepted.close()
            _log.exception("a connection cannot be served")


async def read_addresses(accepted: socket.socket, context: StreamContext) -> Addresses | None:
    """Return both ends of a connection that begins with a PROXY header, which is consumed.

    None: its peer is not trusted to send one, or the header leaves the connection's own in force.

    Raises:
        BadProxyHeader: the connection begins with something else.
        ConnectionEnded: it ended before.
        OSError: it is broken.
    """
    if not context.trusts(ends_of(accepted).source[0]):
        return None
    header = await _peek(accepted, MAX_HEADER, read_proxy_header)
    if header is None:
        raise BadProxyHeader("a PROXY protocol header that does not end")
    accepted.recv(header.size)
    return header.addresses


async def read_hello(accepted: socket.socket) -> ClientHello | None:
    """Return the ClientHello that a connection begins with, without consuming it; None: it begins with none.

    Raises:
        ConnectionEnded: it ended before.
        OSError: it is broken.
    """

    def read(data: bytes) -> ClientHello | HelloOutcome | None:
        found = read_client_hello(data)
        return None if found is HelloOutcome.NEED_MORE else found

    found = await _peek(accepted, MAX_HELLO, read)
    return found if isinstance(found, ClientHello) else None


async def _peek(accepted: socket.socket, limit: int, read: Callable[[bytes], T | None]) -> T | None:
    """Look at the first bytes until they can be read; None if `limit` bytes cannot."""
    seen = 0
    while True:
        await _wait_for_more(accepted, seen)
        try:
            data = accepted.recv(limit, socket.MSG_PEEK)
        except BlockingIOError:
            continue
        found = read(data)
        if found is not None or len(data) >= limit:
            return found
        if len(data) == seen:
            if not data or _has_ended(accepted):
                raise ConnectionEnded("the client closed the connection")
            await asyncio.sleep(_BLIND_PAUSE_S)
        seen = len(data)


async def _wait_for_more(accepted: socket.socket, seen: int) -> None:
    """Wait until more bytes are there than were seen, or the end."""
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, seen + 1)
    loop.add_reader(accepted, _note, readable)
    try:
        await readable
    finally:
        loop.remove_reader(accepted)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


def _note(readable: "asyncio.Future[None]") -> None:
    if not readable.done():
        readable.set_result(None)


def _has_ended(accepted: socket.socket) -> bool:
    poll = select.poll()
    poll.register(accepted, select.POLLRDHUP)
    return bool(poll.poll(0))
