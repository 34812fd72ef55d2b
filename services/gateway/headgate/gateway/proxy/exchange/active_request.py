"""The request under way on a client's side, as its parts know it: the state that they share, and what they ask for."""

from typing import TYPE_CHECKING, Final

from headgate.gateway.proxy.exchange.request_body import RequestBody
from headgate.gateway.proxy.heads.facts import RequestFacts
from headgate.gateway.proxy.heads.forward import forwarded_lines, forwarded_shape
from headgate.gateway.proxy.heads.shape import Shape
from headgate.gateway.proxy.sides import ClientSide, Rerouting, SentRequest, UpstreamSide

if TYPE_CHECKING:
    from headgate.gateway.proxy.endpoint_pool import EndpointPool
    from headgate.gateway.proxy.request_source import UpstreamState
    from headgate.gateway.proxy.seam import RouteTarget

_MAX_REROUTINGS: Final = 10
"""As nginx has it of locations: a path that is rewritten in a circle is an error."""


class ActiveRequest(SentRequest):
    """What the parts of an exchange share. `Exchange` begins and ends it, and does what they ask for."""

    __slots__ = (
        "_facts",
        "active",
        "answer_begun",
        "began",
        "body",
        "bytes_sent",
        "head_only",
        "needs_cleaning",
        "path",
        "pool",
        "reason",
        "retries",
        "route",
        "status",
        "tunnel",
        "upstream_state",
    )

    def __init__(self, client: ClientSide, body: RequestBody) -> None:
        super().__init__(client)
        self.active = False
        self.body = body
        self.path = b""
        """That routes are asked for; empty for the gateway's own requests."""
        self.needs_cleaning = False
        """Its path is one that only routes of Traefik take, which clean it."""
        self.head_only = False
        self.tunnel = False
        self.route: RouteTarget | None = None
        self.pool: EndpointPool | None = None
        """Of the endpoint that was tried last."""
        self.upstream_state: UpstreamState | None = None
        """What the upstream's health and load are told to."""
        self.retries = 0
        """How often the request was sent again."""
        self.answer_begun = False
        self.status = 0
        self.bytes_sent = 0
        self.reason = ""
        """For the log: why the answer is not the upstream's; empty if it is."""
        self.began = 0.0
        """Monotonic seconds."""
        self._facts: RequestFacts | None = None

    @property
    def backend(self) -> str:
        """Key of the upstream that a route with several chose; empty: none, or the route's only one."""
        return self._facts.backend if self._facts is not None else ""

    @property
    def route_name(self) -> str:
        """Name of its route, for logs; empty: there is none yet."""
        return self.route.name if self.route is not None else ""

    @property
    def client_address(self) -> str:
        """Address of the client, the one that trusted proxies name where there are such; a plugin may know better."""
        facts = self._facts
        return self.origin.address_text if facts is None else facts.client.decode("latin-1")

    def reroute(self, target: bytes, original: tuple[bytes, bytes, bytes], variables: dict[str, object]) -> bool:
        """Take another target, for which a route has to be chosen; False: that was done too often.

        What the first route has decided before its plugins stays in force: bounds of body and time, and header lines.

        Args:
            target: new path and query.
            original: method, target and host as they came.
            variables: what plugins have told each other, for those of the next route.
        """
        rerouting = self.rerouting or Rerouting(original)
        if rerouting.count >= _MAX_REROUTINGS:
            return False
        rerouting.count += 1
        rerouting.variables = variables
        self.rerouting = rerouting
        self.run = None
        self.route = None
        self._facts = None
        self.target = target
        return True

    def facts(self) -> RequestFacts:
        """Give what routes may look at: the header is the one that an upstream gets."""
        facts = self._facts
        if facts is None:
            origin, fields = self.origin, self.fields
            lines = forwarded_lines(fields, origin, self.client.peer)
            facts = RequestFacts(self.method, origin.scheme, fields.host, self.target, lines, origin.address)
            facts.path, facts.peer = self.path or facts.path, self.client.peer.address
            facts.came, facts.shape = fields, forwarded_shape(fields)
            facts.transport = b"http" if origin.tls is None else b"https"
            self._facts = facts
        return facts

    def lines_to_send(self) -> tuple[bytes, Shape | None]:
        """Give the header lines that an upstream gets, and which shape has all their names, if one is known to."""
        facts = self._facts
        if facts is not None:
            return facts.lines, facts.shape
        fields = self.fields
        return forwarded_lines(fields, self.origin, self.client.peer), forwarded_shape(fields)

    def change_lines(self, lines: bytes) -> None:
        """Put other header lines in the place of the client's."""
        self.fields.lines = lines
        if self._facts is not None:
            self._facts.change_lines(forwarded_lines(self.fields, self.origin, self.client.peer))

    def change_query(self, query: bytes) -> None:
        """Put another query in the place of the client's, which was not empty."""
        self.target = self.target.partition(b"?")[0] + b"?" + query
        if self._facts is not None:
            self._facts.change_query(query)

    def note_upstream(self, state: "UpstreamState | None") -> None:
        """Hear of the upstream that is about to be chosen from."""
        raise NotImplementedError

    def send(self, upstream: UpstreamSide) -> None:
        """Send the request, with what is there of its body."""
        raise NotImplementedError

    def timed_out(self) -> None:
        """React to a deadline that passed."""
        raise NotImplementedError

    def refuse(self, status: int, reason: str, extra: bytes = b"") -> None:
        """Answer by ourselves; an answer that has begun is cut off instead. `extra` are whole header lines."""
        raise NotImplementedError
