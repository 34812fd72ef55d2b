"""A listener of HTTP that stream routes may share, that speaks plain and over TLS, or that expects PROXY headers.

While none of it is the case the event loop accepts for itself and nothing is looked at. The listening socket stays the
same over both ways of accepting, so a connection that waits in the kernel is not lost when the table changes the way.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable

from headgate.gateway.net.proxy_protocol import Addresses
from headgate.gateway.net.sockets import BACKLOG
from headgate.gateway.streams.acceptor import Acceptor
from headgate.gateway.streams.context import StreamContext
from headgate.gateway.streams.identify import identify
from headgate.gateway.streams.ports import PortPlan
from headgate.gateway.streams.tcp import StreamConnection

MakeProtocol = Callable[[Addresses | None], asyncio.Protocol]
"""Makes what serves a connection. The argument is both ends as a PROXY header named them; None: ask the transport."""


class SharedListener:
    """One listening socket of the gateway.

    Args:
        context: None: it is never shared, and no headers are expected.
        listener: nonblocking, listening; becomes the object's to close.
        make_protocol: serves what is not a stream route's, until `speak` says otherwise.
        tls: spoken with those; None: plain.
        expects_proxy_header: every connection of a trusted peer begins with one.
        handshake_timeout_s: for all of a TLS handshake.
        is_taken: whether HTTPS has a server name, so that a stream route for all others leaves it alone.
    """

    def __init__(
        self,
        context: StreamContext | None,
        listener: socket.socket,
        make_protocol: MakeProtocol,
        tls: ssl.SSLContext | None,
        *,
        expects_proxy_header: bool = False,
        handshake_timeout_s: float = 15.0,
        is_taken: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._context = context
        self._listener = listener
        self._plain = make_protocol if tls is None else None
        self._secure = make_protocol if tls is not None else None
        self.tls = tls
        """Spoken with connections that are served over TLS."""
        self._expects_proxy_header = expects_proxy_header
        self._handshake_timeout_s = handshake_timeout_s
        self._is_taken = is_taken
        self._plan: PortPlan | None = None
        self._acceptor: Acceptor | None = None
        self._server: asyncio.Server | None = None
        self._endings: set[asyncio.Task[None]] = set()
        """Each ends when the connections do that one server has accepted, and the server is closed."""
        self._starting: asyncio.Task[None] | None = None
        self._is_closed = False
        self._is_paused = False

    @property
    def port(self) -> int:
        """The port's number."""
        number: int = self._listener.getsockname()[1]
        return number

    @property
    def looks_first(self) -> bool:
        """Whether connections are looked at before they are served."""
        return self._acceptor is not None

    async def start(self) -> None:
        """Accept connections."""
        self.begin()
        if self._starting is not None:
            await self._starting

    def expect_headers(self, context: StreamContext | None, *, expects: bool) -> None:
        """Expect PROXY headers of the peers that a context trusts from now on, or none."""
        self._context = context
        self._expects_proxy_header = expects
        if self._server is not None or self._acceptor is not None or self._starting is not None:
            self.share(self._plan)

    def share(self, plan: PortPlan | None) -> None:
        """Hand a plan's connections to its routes from now on; None: there are none."""
        self._plan = plan
        if self._is_closed or self._is_paused:
            return
        if self._must_look:
            self._look_first()
        elif self._acceptor is not None:
            self._acceptor.stop(final=False)
            self._acceptor = None
            self._starting = asyncio.get_running_loop().create_task(self._serve_at_once())

    def speak(self, plain: MakeProtocol | None, secure: MakeProtocol | None) -> None:
        """Serve plain connections so from now on, and those over TLS; None: there are none of these."""
        self._plain, self._secure = plain, secure
        if self._is_closed or self._is_paused:
            return
        if self._must_look:
            self._look_first()
        else:
            self.pause()
            self.resume()

    @property
    def _must_look(self) -> bool:
        return self._plan is not None or self._expects_proxy_header or None not in (self._plain, self._secure)

    def pause(self) -> None:
        """Let new connections wait in the kernel."""
        if self._is_closed or self._is_paused:
            return
        self._is_paused = True
        self._stop_serving_at_once()
        if self._acceptor is not None:
            self._acceptor.stop(final=False)
            self._acceptor = None

    def resume(self) -> None:
        """Accept connections again."""
        if self._is_closed or not self._is_paused:
            return
        self._is_paused = False
        if self._must_look:
            self._look_first()
        else:
            self._starting = asyncio.get_running_loop().create_task(self._serve_at_once())

    def close(self) -> None:
        """Accept no more."""
        self._is_closed = True
        if self._starting is not None:
            self._starting.cancel()
        if self._acceptor is not None:
            self._acceptor.stop(final=True)
        if self._server is not None:
            self._server.close()
        self._listener.close()

    @property
    def is_accepting(self) -> bool:
        """Whether connections, or TLS handshakes, are open that the event loop has accepted by itself."""
        return bool(self._endings)

    def begin(self) -> None:
        """Accept connections, from the next turn of the event loop on."""
        if self._must_look:
            self._look_first()
        else:
            self._starting = asyncio.get_running_loop().create_task(self._serve_at_once())

    async def ended(self) -> None:
        """Wait until no connection is open that the event loop has accepted by itself, TLS handshakes included."""
        if self._endings:
            await asyncio.wait(self._endings)

    def _stop_serving_at_once(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            self._starting = None
        if self._server is not None:
            self._server.close()
            self._server = None

    def _look_first(self) -> None:
        self._stop_serving_at_once()
        if self._acceptor is None:
            assert self._context is not None, "nothing can be looked at without it"
            self._acceptor = Acceptor(self._listener, self._serve, self._context.pending)
            self._acceptor.start()

    async def _serve_at_once(self) -> None:
        # A descriptor of its own: closing the server must not close the listening socket.
        duplicate = self._listener.dup()
        make, tls = self._of(is_tls=self._secure is not None)
        assert make is not None, "there is a way to speak"
        try:
            self._server = await asyncio.get_running_loop().create_server(
                lambda: make(None),
                sock=duplicate,
                ssl=tls,
                backlog=BACKLOG,
                ssl_handshake_timeout=self._handshake_timeout_s if tls is not None else None,
            )
        except BaseException:
            duplicate.close()
            raise
        # Begun while the server is open: afterwards asyncio before 3.12 waits for nothing.
        ending = asyncio.get_running_loop().create_task(self._server.wait_closed())
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    def _of(self, *, is_tls: bool) -> tuple[MakeProtocol | None, ssl.SSLContext | None]:
        return (self._secure, self.tls) if is_tls else (self._plain, None)

    async def _serve(self, accepted: socket.socket) -> None:
        context, plan = self._context, self._plan
        assert context is not None, "nothing can be looked at without it"
        expects_header = self._expects_proxy_header or (plan is not None and plan.expects_proxy_header)
        has_plain = self._plain is not None or (plan is not None and plan.has_plain)
        is_mixed = has_plain and self._secure is not None
        found = await identify(
            accepted,
            context,
            plan,
            expects_proxy_header=expects_header,
            tells_tls=is_mixed,
            is_taken=self._is_taken,
        )
        if found is None:
            return
        if found.route is not None:
            await StreamConnection(context, found.route, found.addresses, found.server_name).open(accepted)
            return
        make, tls = self._of(is_tls=found.is_tls if is_mixed else self._secure is not None)
        if make is None:
            context.stats.unrouted += 1
            accepted.close()
            return
        told = found.addresses if found.has_header else None
        # A failed handshake is the client's affair; the loop has closed the connection.
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: make(told),
                accepted,
                ssl=tls,
                ssl_handshake_timeout=self._handshake_timeout_s if tls is not None else None,
            )
