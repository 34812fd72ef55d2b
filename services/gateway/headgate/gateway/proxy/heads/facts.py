"""What conditions, hash keys and plugins may look at in a request.

Nothing is parsed before it is asked for, and nothing twice. Values are bytes as they came, but for query parameters,
which are percent-decoded.
"""

from typing import Final

from headgate.gateway.proxy.heads.body_fields import BodyFields, read_pairs, read_values
from headgate.gateway.proxy.heads.head import RequestFields
from headgate.gateway.proxy.heads.shape import Shape

_BLANKS: Final = b" \t"
QUESTION_MARK: Final = 0x3F
"""As a number, which CPython finds in bytes without making an exception in between, as it does for `b"?"`."""
_ENDING_HERE: Final = frozenset(
    b"connection upgrade te keep-alive proxy-connection proxy-authorization http2-settings "
    b"content-length expect x-request-id".split()
)
"""Fields that upstreams do not get as they were sent: what of them is asked is what the client sent."""
_NOTHING: Final = RequestFields()


class RequestFacts:
    """One request, as far as its head and its body say.

    Args:
        method: as sent.
        scheme: `http` or `https`.
        host: lower case, without port and trailing dot.
        target: path and query as sent.
        lines: checked header lines `Name: value`, each with its CRLF; Host is not among them.
        client: address of the client, without port.
    """

    __slots__ = (
        "_body_fields",
        "_cookies",
        "_folded",
        "_parameters",
        "_split_values",
        "_values",
        "backend",
        "body",
        "came",
        "chosen",
        "client",
        "consumer",
        "host",
        "lines",
        "method",
        "path",
        "peer",
        "query",
        "scheme",
        "shape",
        "target",
        "transport",
    )

    def __init__(self, method: bytes, scheme: bytes, host: bytes, target: bytes, lines: bytes, client: bytes) -> None:
        self.method = method
        self.scheme = scheme
        self.host = host
        self.target = target
        self.lines = lines
        self.client = client
        self.shape: Shape | None = None
        """Which shape has all names of the lines; None where that is not known."""
        self.peer = client
        """Address of who is connected, without port: the client, or a trusted proxy."""
        self.path: bytes = target
        """As routes are asked for it, without the query."""
        self.query: bytes = b""
        """As sent, without `?`."""
        if QUESTION_MARK in target:
            self.path, _, self.query = target.partition(b"?")
        self.came = _NOTHING
        """The fields as they came, whether they go on or not."""
        self.transport: bytes = scheme
        """`https` if the gateway's own connection speaks TLS, else `http`."""
        self.body: bytes | None = None
        """The whole body once somebody has read it, without its transfer coding."""
        self.backend: str = ""
        """Key of the upstream that the route chose; empty before, and for routes that have no choice."""
        self.chosen: object = None
        """What remembers the choice of a backend, for the route that made it."""
        self.consumer: bytes = b""
        """Name of the consumer that a plugin recognised; empty before, and for all others."""
        self._folded: bytes = b""
        """The lines in lower case behind a CRLF; offsets are two more than in `lines`."""
        self._parameters: dict[bytes, bytes] | None = None
        self._values: dict[bytes, list[bytes]] | None = None
        """All values of each parameter."""
        self._split_values: dict[bytes, list[bytes]] | None = None
        """The same with `;` between parameters too."""
        self._cookies: dict[bytes, bytes] | None = None
        self._body_fields: BodyFields | None = None

    def change_lines(self, lines: bytes) -> None:
        """Look at other header lines from now on; what is known of the request besides stays known."""
        self.lines = lines
        self.shape = None
        self._folded = b""
        self._cookies = None

    def change_query(self, query: bytes) -> None:
        """Look at another query from now on."""
        self.query = query
        self.target = self.target.partition(b"?")[0] + b"?" + query
        self._parameters = None
        self._values = None
        self._split_values = None

    def header(self, name: bytes) -> bytes | None:
        """Return the value of a field by its name in lower case, several joined by `, `; None if there is none.

        Cookies are joined by `; ` (RFC 9113 section 8.2.3).
        """
        if name == b"host":
            return self.host or None
        folded = self._folded
        if not folded:
            folded = self._folded = b"\r\n" + self.lines.lower()
        needle = b"\r\n" + name + b":"
        at = folded.find(needle)
        if at < 0:
            ended = self._ended(name)
            return b", ".join(ended) if ended else None
        value = self._value(at + len(needle))
        at = folded.find(needle, at + 2)
        while at >= 0:
            value += (b"; " if name == b"cookie" else b", ") + self._value(at + len(needle))
            at = folded.find(needle, at + 2)
        return value

    def header_values(self, name: bytes) -> list[bytes]:
        """Return the values of a field by its name in lower case, each line's; cookies are one value."""
        if name == b"host" or name == b"cookie":
            value = self.header(name)
            return [] if value is None else [value]
        if self.header(name) is None:
            return []
        folded, needle = self._folded, b"\r\n" + name + b":"
        found: list[bytes] = []
        at = folded.find(needle)
        if at < 0:
            return self._ended(name)
        while at >= 0:
            found.append(self._value(at + len(needle)))
            at = folded.find(needle, at + 2)
        return found

    def _ended(self, name: bytes) -> list[bytes]:
        """Return the values of a field that ends at the gateway; none of another one."""
        if name not in _ENDING_HERE:
            return []
        names, values = self.came.found
        return [value.strip(_BLANKS) for found, value in zip(names, values, strict=True) if found.lower() == name]

    def _value(self, start: int) -> bytes:
        """Return the value that begins at an offset of the folded lines."""
        lines = self.lines
        begin = start - 2
        end = lines.find(b"\r\n", begin)
        return lines[begin:end].strip(_BLANKS)

    def query_value(self, name: bytes) -> bytes | None:
        """Return the first value of a query parameter, percent-decoded with `+` for a space; None if there is none.

        A parameter without `=` has an empty value.
        """
        found = self._parameters
        if found is None:
            found = self._parameters = read_pairs(self.query, -1)
        return found.get(name)

    def query_values(self, name: bytes, semicolons: bool = False) -> list[bytes]:
        """Return all values of a query parameter, as `query_value` does the first; `semicolons` separate parameters
        too, as Traefik has it.
        """
        splits = semicolons and self.query.find(b";") >= 0
        found = self._split_values if splits else self._values
        if found is None:
            found = read_values(self.query.replace(b";", b"&") if splits else self.query)
            if splits:
                self._split_values = found
            else:
                self._values = found
        return found.get(name) or []

    def cookie(self, name: bytes) -> bytes | None:
        """Return the first value of a cookie as sent, quotes included (RFC 6265 section 5.4); None if there is none."""
        found = self._cookies
        if found is None:
            found = {}
            for part in (self.header(b"cookie") or b"").split(b";"):
                cut = part.find(b"=")
                if cut > 0:
                    found.setdefault(part[:cut].strip(_BLANKS), part[cut + 1 :].strip(_BLANKS))
            self._cookies = found
        return found.get(name)

    def body_fields(self) -> BodyFields | None:
        """Return the fields of the body; None if it was not read."""
        if self._body_fields is None and self.body is not None:
            self._body_fields = BodyFields(self.header(b"content-type") or b"", self.body)
        return self._body_fields
