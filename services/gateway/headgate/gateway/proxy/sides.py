"""The two sides of an exchange, whatever version of HTTP each speaks.

An exchange knows requests and answers in one form: heads as checked HTTP/1.1 header lines without framing, bodies as
payload. `ClientSide` and `UpstreamSide` turn that into bytes on a connection and back. They are classes, not protocols,
as calls through a known class cost the compiled engine a tenth of calls by name.
"""

from typing import TYPE_CHECKING, Final

from headgate.gateway.proxy.heads.head import AnswerHead, RequestFields
from headgate.gateway.proxy.hooks import HookRun
from headgate.gateway.proxy.peer import Peer

if TYPE_CHECKING:
    from headgate.gateway.health.circuit import Circuit
    from headgate.gateway.proxy.endpoint_pool import EndpointPool


NO_FIELDS: Final = RequestFields()
"""Of a request whose head was not read."""


class ClientSide:
    """Where a request came from: an HTTP/1.1 connection, or one stream of an HTTP/2 connection."""

    __slots__ = ("deadline", "is_grpc", "peer", "write_paused")

    def __init__(self) -> None:
        self.peer: Peer
        self.write_paused = False
        """The client takes the answer more slowly than it comes."""
        self.is_grpc = False
        """The request is a call of gRPC, whose protocol has trailers."""
        self.deadline = 0.0
        """Coarse monotonic time at which the exchange has to be asked what to do."""

    @property
    def version(self) -> bytes:
        """As the access log writes it: `1.1`."""
        raise NotImplementedError

    def send_answer(self, answer: AnswerHead, payload: bytes, *, bodiless: bool, done: bool, trailers: bytes) -> None:
        """Send the head of an answer, with what is there of its body. Once `done` the exchange is over."""
        raise NotImplementedError

    def send_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Send more of the body, as `send_answer`."""
        raise NotImplementedError

    def send_informational(self, answer: AnswerHead) -> None:
        """Send a 1xx, if the client may know it."""
        raise NotImplementedError

    def send_continue(self) -> None:
        """Ask for the body of a request that expects it."""
        raise NotImplementedError

    def open_tunnel(self, answer: AnswerHead, payload: bytes) -> None:
        """Tell the client that the protocol was switched; from now on bytes pass as they are, both ways."""
        raise NotImplementedError

    def end_tunnel(self) -> None:
        """Close the tunnel behind the last byte."""
        raise NotImplementedError

    def cut_off(self) -> None:
        """End in the middle of an answer, in a way that cannot be taken for its end."""
        raise NotImplementedError

    def taken(self) -> int:
        """Count the bytes of answers that the client has taken, from any beginning."""
        raise NotImplementedError

    def unsent(self) -> int:
        """Count the bytes of the answer that wait for the client."""
        raise NotImplementedError

    def abort(self) -> None:
        """End at once; the client does not listen."""
        raise NotImplementedError

    def update_reading(self) -> None:
        """Read the request's body, or not: nothing is taken that could not be passed on or kept."""
        raise NotImplementedError

    def own_answer(self, answer: AnswerHead, status: int, reason: str) -> AnswerHead | None:
        """Give an answer of our own the form that the client's protocol wants, without body; None: it is good as is."""
        return None


class UpstreamSide:
    """Where a request goes: an HTTP/1.1 connection, or one stream of an HTTP/2 connection."""

    __slots__ = ("exchange", "pool", "reused", "seen", "write_paused")

    def __init__(self, pool: "EndpointPool") -> None:
        self.pool = pool
        self.exchange: SentRequest | None = None
        """Whose request it serves."""
        self.reused = False
        """The connection has answered before, so that it may have died of old age."""
        self.seen = False
        """Something came back for the current request."""
        self.write_paused = False
        """The upstream takes the body more slowly than it comes."""

    def begin(self, exchange: "SentRequest", payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Send the head of an exchange's request and the first bytes of its body."""
        raise NotImplementedError

    def send_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Send more of the body."""
        raise NotImplementedError

    def end_tunnel(self) -> None:
        """End the sending half of a tunnel: the client has nothing more to say."""
        raise NotImplementedError

    def discard(self) -> None:
        """Part with the exchange, and let nothing more come of its request."""
        raise NotImplementedError

    def count_by(self, circuit: "Circuit | None") -> None:
        """Tell an upstream's bounds of the end of the connection, and of its rests."""

    def pause_reading(self) -> None:
        """Take no more of the answer for now, as the client is slow."""
        raise NotImplementedError

    def resume_reading(self) -> None:
        """Go on taking the answer."""
        raise NotImplementedError


class Rerouting:
    """A request whose route was chosen again for another path."""

    __slots__ = ("count", "original", "variables")

    def __init__(self, original: tuple[bytes, bytes, bytes]) -> None:
        self.count = 0
        """How often."""
        self.original = original
        """Method, target and host as they came."""
        self.variables: dict[str, object] = {}
        """What plugins of its routes before told each other."""


class SentRequest:
    """A request as the upstream's side that serves it knows it, and what that side reports; an `Exchange` is one."""

    __slots__ = (
        "client",
        "fields",
        "has_other_host",
        "lines",
        "method",
        "origin",
        "request_done",
        "request_id",
        "rerouting",
        "run",
        "target",
        "upgrade",
        "upstream",
    )

    origin: Peer
    """Who the request is from: the peer, or whom a trusted one names."""

    def __init__(self, client: ClientSide) -> None:
        # All are set here, so that the compiled engine need not look whether they are.
        self.client = client
        self.upstream: UpstreamSide | None = None
        """That serves it; None: none yet, or no more."""
        self.method = b""
        self.target = b""
        self.fields = NO_FIELDS
        self.lines = b""
        """Header lines for the upstream; empty until they are needed."""
        self.request_id = b""
        self.request_done = False
        """All of its body has come."""
        self.upgrade = b""
        """Protocol that the upstream may switch to."""
        self.has_other_host = False
        """A plugin has chosen the Host that is sent."""
        self.rerouting: Rerouting | None = None
        """Set once its route was chosen again."""
        self.run: HookRun | None = None
        """The request on its way through the hooks of its route; None: it has none."""

    def informational(self, answer: AnswerHead) -> None:
        """Pass a 1xx on."""
        raise NotImplementedError

    def answer(self, answer: AnswerHead, payload: bytes, *, bodiless: bool, done: bool, trailers: bytes) -> None:
        """Pass the head of the answer on, with what is there of its body."""
        raise NotImplementedError

    def answer_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Pass more of the answer's body on."""
        raise NotImplementedError

    def switch(self, answer: AnswerHead, payload: bytes) -> None:
        """Open the tunnel: the upstream has switched to the protocol that the client asked for."""
        raise NotImplementedError

    def upstream_failed(self, reason: str) -> None:
        """The upstream's answer is not one; its connection is closed already."""
        raise NotImplementedError

    def upstream_lost(self, upstream: UpstreamSide) -> None:
        """The upstream's connection ended before its answer did."""
        raise NotImplementedError

    def upstream_refused(self, upstream: UpstreamSide) -> None:
        """The upstream has not begun with the request, so that any may be sent again that is still at hand."""
        raise NotImplementedError

    def upstream_resumed(self) -> None:
        """The upstream takes more of the body again."""
        raise NotImplementedError
