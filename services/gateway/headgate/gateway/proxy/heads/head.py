"""What heads of requests and answers say, once they are read: what is passed on as it is, and what concerns us."""

from typing import TYPE_CHECKING, Final

from headgate.gateway.proxy.heads.cutting import Fields, cut_fields

if TYPE_CHECKING:
    from headgate.gateway.proxy.config import ProxyConfig
    from headgate.gateway.proxy.heads.shape import Shape

_NO_OPTIONS: Final[frozenset[bytes]] = frozenset()
_NO_FIELDS: Final[Fields] = ((), ())
_NO_LINES: Final[list[bytes]] = []


class Head:
    """What heads of requests and answers have in common."""

    __slots__ = ("_written", "chunked", "content_length", "lines", "lists_fields", "options", "shape", "upgrade")

    # Types are written out: tables of functions in other modules look at the fields, and mypy may come to those first.
    def __init__(self) -> None:
        self.lines: bytes = b""
        """Checked lines that are passed on; framing and connection fields are not among them."""
        self.content_length: int = -1
        """-1 without the field."""
        self.chunked: bool = False
        self.options: frozenset[bytes] = _NO_OPTIONS
        """Members of Connection, lower case."""
        self.lists_fields: bool = False
        """Some of them are names of fields, which end here (RFC 9110 section 7.6.1)."""
        self.upgrade: bytes = b""
        """The one protocol that Upgrade names, lower case."""
        self.shape: Shape | None = None
        """Of the lines as they came, if it is remembered."""
        self._written = b""

    def take_lines(self, lines: bytes) -> None:
        """Set lines that were written by the shape of this head."""
        self.lines = self._written = lines

    @property
    def lines_shape(self) -> "Shape | None":
        """Which shape has all names of the lines; None where that is not known, as somebody has put others there."""
        return self.shape if self.lines is self._written else None


class RequestFields(Head):
    """What the header block of one request says."""

    __slots__ = (
        "_found",
        "_sent",
        "agent",
        "expects_continue",
        "forwarded",
        "forwarded_host",
        "host",
        "host_line",
        "passes_claims",
        "referer",
        "request_id",
        "traefik_forwarding",
    )

    def __init__(self) -> None:
        super().__init__()
        self.host: bytes = b""
        """Lower case, without port and trailing dot; empty if there is none (HTTP/1.0 only)."""
        self.host_line: bytes = b""
        """Value of Host as sent."""
        self.forwarded_host: bytes = b""
        """That the upstream gets in its place, as a trusted proxy forwarded it. The gateway decides nothing by it."""
        self._found: Fields | None = _NO_FIELDS
        """None: they have yet to be cut from the lines that were sent."""
        self._sent = _NO_LINES
        self.expects_continue: bool = False
        self.request_id: bytes = b""
        self.forwarded: dict[bytes, bytes] = {}
        """X-Forwarded-*, X-Real-IP, Forwarded and what else may name the client, by lower-case name; lists are
        joined."""
        self.passes_claims: bool = False
        """A trusted proxy says what is in `forwarded`, so that the upstream gets it."""
        self.traefik_forwarding: ProxyConfig | None = None
        """Says how the upstream hears of the request's origin as Traefik's would; None: it is not on a route of
        Traefik's."""
        self.agent: bytes = b""
        self.referer: bytes = b""

    @property
    def found(self) -> Fields:
        """Names and values of all fields as sent, those of framing and connection too."""
        found = self._found
        if found is None:
            found = self._found = cut_fields(self._sent[1:-1])
        return found

    def take_found(self, found: Fields) -> None:
        """Set what `found` gives."""
        self._found = found

    def take_sent(self, lines: list[bytes]) -> None:
        """Set the lines of the head, without their CRLF, that `found` is cut from once somebody asks."""
        self._sent = lines
        self._found = None

    @property
    def wants_websocket(self) -> bool:
        """Whether the client asks for a WebSocket (RFC 6455 section 4.1)."""
        return self.upgrade == b"websocket" and b"upgrade" in self.options


class AnswerHead(Head):
    """What the head of one answer says.

    Args:
        status: of the answer.
        status_line: what an HTTP/1 client gets as its first line, with its CRLF.
        minor: version of HTTP/1 that the answer came by.
    """

    __slots__ = ("closes", "has_date", "has_server", "minor", "status", "status_line")

    def __init__(self, status: int, status_line: bytes, minor: int = 1) -> None:
        super().__init__()
        self.status = status
        self.status_line = status_line
        self.minor = minor
        self.closes = minor == 0
        """The connection ends with this answer."""
        self.has_date = False
        self.has_server = False
