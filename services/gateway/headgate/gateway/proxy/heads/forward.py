"""How heads change on their way: what is added towards upstreams and towards clients.

Towards an upstream: Host kept, `X-Forwarded-For`, `-Proto`, `-Host`, `-Port` and `X-Real-IP` of this connection (what
the client claims is dropped unless it is trusted), `X-Request-ID`, our own framing. Towards a client: `Date` and
`Server` where the upstream gave none, our own framing and `Connection`.
"""

import secrets
from typing import TYPE_CHECKING, Final

from headgate.gateway.proxy.errors import FramingError
from headgate.gateway.proxy.heads.authority import normal_host
from headgate.gateway.proxy.heads.head import AnswerHead, RequestFields
from headgate.gateway.proxy.heads.traefik_forwarding import traefik_lines

if TYPE_CHECKING:
    from headgate.gateway.proxy.endpoint_pool import EndpointPool
    from headgate.gateway.proxy.heads.shape import Shape
    from headgate.gateway.proxy.peer import Peer
    from headgate.gateway.proxy.sides import SentRequest

SERVER_LINE: Final = b"Server: headgate\r\n"
CHUNKED_LINE: Final = b"Transfer-Encoding: chunked\r\n"


class _RequestIds:
    """Ids of 32 hexadecimal digits: 16 random ones of this process, then a count that starts anywhere.

    All but the last three digits are written once for 4,096 ids.
    """

    __slots__ = ("_block", "_prefix", "_process", "_used")

    def __init__(self) -> None:
        self._process = secrets.token_hex(8).encode()
        self._block = secrets.randbits(52)
        self._prefix = b""
        self._used = len(_LAST_DIGITS)

    def make(self) -> bytes:
        """Give the next id."""
        used = self._used
        if used >= len(_LAST_DIGITS):
            self._block = (self._block + 1) & 0xF_FFFF_FFFF_FFFF
            self._prefix = b"%b%013x" % (self._process, self._block)
            used = 0
        self._used = used + 1
        return self._prefix + _LAST_DIGITS[used]


_LAST_DIGITS: Final[list[bytes]] = [b"%03x" % number for number in range(1 << 12)]
_IDS: Final = _RequestIds()


def new_request_id() -> bytes:
    """Make a request id that no other request has."""
    return _IDS.make()


HOP_LINE: Final = b"Headgate-Hop: 1\r\n"
"""Tells a gateway of another cluster that it must send the request no further than to its own cluster."""


def forwarded_lines(fields: RequestFields, origin: "Peer", peer: "Peer") -> bytes:
    """Build the header lines towards an upstream, but for Host, X-Request-ID and framing.

    `origin` is the client, `peer` who is connected: the same unless a trusted proxy is.
    """
    if fields.traefik_forwarding is not None:
        return fields.lines + traefik_lines(fields, peer, fields.traefik_forwarding)
    if fields.passes_claims:
        return fields.lines + _trusted_lines(fields, origin, peer)
    host = fields.forwarded_host or fields.host_line
    if host:
        return b"%bX-Forwarded-Host: %b\r\n%b" % (fields.lines, host, origin.lines)
    return fields.lines + origin.lines


def forwarded_shape(fields: RequestFields) -> "Shape | None":
    """Return which shape has all names of `forwarded_lines`; None where that is not known."""
    is_told_by_others = fields.traefik_forwarding is not None or fields.passes_claims
    return None if is_told_by_others else fields.lines_shape


def nginx_lines(fields: RequestFields, origin: "Peer") -> bytes:
    """Build the lines that upstreams of ingress-nginx get besides; what a request claims in their place is dropped.

    A trusted proxy's address, scheme and port stand in `origin` already. The first host that it forwards goes to the
    upstream in the place of the request's own.
    """
    claimed = fields.forwarded
    lines = b"X-Forwarded-Scheme: %b\r\nX-Scheme: %b\r\n" % (origin.scheme, origin.scheme)
    if claimed:
        for name, line in _ORIGINALS:
            if value := claimed.get(name):
                lines += line % value
        if fields.passes_claims:
            fields.passes_claims = False
            fields.forwarded_host = _first_host(claimed.get(b"x-forwarded-host", b""))
            for name, value in claimed.items():
                if b"_" not in name and value and name not in _REPLACED:
                    lines += b"%b: %b\r\n" % (name, value)
    return lines


def _first_host(hosts: bytes) -> bytes:
    """Give the first member of a list if it is a host, else nothing."""
    first = hosts.partition(b",")[0].strip(b" \t")
    try:
        normal_host(first)
    except FramingError:
        return b""
    return first


_REPLACED: Final = frozenset(
    {
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-port",
        b"x-forwarded-proto",
        b"x-forwarded-scheme",
        b"x-original-forwarded-for",
        b"x-original-forwarded-host",
        b"x-real-ip",
        b"x-scheme",
    }
)
_ORIGINALS: Final = (
    (b"x-forwarded-for", b"X-Original-Forwarded-For: %b\r\n"),
    (b"x-forwarded-host", b"X-Original-Forwarded-Host: %b\r\n"),
)
_IDENTITY: Final = (b"x-consumer-", b"x-credential-", b"ssl-client-", b"x-user", b"x-access-token", b"x-id-token")
"""How the names begin by which plugins and client certificates tell an upstream who the client is."""


def forwarded_trailers(trailers: bytes, head: bytes) -> bytes:
    """Choose which trailers of a request go on: none that names an identity, none that `head`, its header lines, has.

    Upstreams that merge trailers into headers (which RFC 9110 section 6.5.1 forbids) would take the trailer for a value
    of the gateway's. A name with an underscore may be read as any of these.
    """
    taken = {line.partition(b":")[0].lower() for line in head.splitlines()}
    passed = []
    for line in trailers.splitlines(keepends=True):
        name = line.partition(b":")[0].lower()
        if name not in taken and b"_" not in name and not name.startswith(_IDENTITY):
            passed.append(line)
    return b"".join(passed)


def request_head(exchange: "SentRequest", pool: "EndpointPool") -> bytes:
    """Build the head of a request in HTTP/1.1, empty line included."""
    fields = exchange.fields
    method, target, lines = exchange.method, exchange.target, exchange.lines
    if pool.is_hop:
        method, target, host = as_it_came(exchange)
        lines += HOP_LINE
    elif pool.spec.host is None and not fields.forwarded_host:
        host = fields.host_line or pool.label.encode()
    else:
        host = authority(exchange, pool)
    if fields.chunked:
        framing = CHUNKED_LINE
    elif fields.content_length >= 0:
        framing = b"Content-Length: %d\r\n" % fields.content_length
    elif exchange.upgrade:
        framing = b"Connection: Upgrade\r\nUpgrade: %b\r\n" % exchange.upgrade
    else:
        framing = b""
    if pool.spec.connection_line and not exchange.upgrade:
        framing += pool.spec.connection_line
    return b"%b %b HTTP/1.1\r\nHost: %b\r\n%b%bX-Request-ID: %b\r\n\r\n" % (
        method,
        target,
        host,
        lines,
        framing,
        exchange.request_id,
    )


def as_it_came(exchange: "SentRequest") -> tuple[bytes, bytes, bytes]:
    """Return method, target and host for a gateway that has the same routes and will change them as we did."""
    run, fields, rerouting = exchange.run, exchange.fields, exchange.rerouting
    if rerouting is not None:
        return rerouting.original
    return run.original if run is not None else (exchange.method, exchange.target, fields.host_line)


def came_by_hop(fields: RequestFields) -> bool:
    """Whether a gateway of another cluster sent a request. Who pretends to be one is kept from other clusters."""
    return b"\nheadgate-hop:" in b"\n" + fields.lines.lower()


def authority(exchange: "SentRequest", pool: "EndpointPool") -> bytes:
    """Give the Host of a request: what a plugin or the upstream wants, what a trusted proxy forwards, or the client's.

    An HTTP/1.0 client may leave Host out, an HTTP/1.1 request may not.
    """
    fields, wanted = exchange.fields, pool.spec.host
    if exchange.has_other_host:
        host = fields.host_line
    elif wanted is None:
        host = fields.forwarded_host or fields.host_line
    else:
        host = wanted.encode()
    return host or pool.label.encode()


def _trusted_lines(fields: RequestFields, origin: "Peer", peer: "Peer") -> bytes:
    """Keep what a trusted proxy claims, fill in what it does not, and add it to the chain of addresses."""
    lines = {
        b"x-forwarded-for": (b"X-Forwarded-For", peer.address),
        b"x-forwarded-proto": (b"X-Forwarded-Proto", peer.scheme),
        b"x-forwarded-host": (b"X-Forwarded-Host", fields.host_line),
        b"x-forwarded-port": (b"X-Forwarded-Port", peer.port),
    }
    for name, claimed in fields.forwarded.items():
        if b"_" not in name and claimed:
            spelled = lines[name][0] if name in lines else name
            chain = b"%b, %b" % (claimed, peer.address) if name == b"x-forwarded-for" else claimed
            lines[name] = (spelled, chain)
    if peer.names_https:
        lines[b"x-forwarded-proto"] = (b"X-Forwarded-Proto", peer.scheme)
    # Another trusted proxy may have been the client of the one that wrote it.
    lines[b"x-real-ip"] = (b"X-Real-IP", origin.address)
    return b"".join(b"%b: %b\r\n" % line for line in lines.values())


def answer_head(answer: AnswerHead, date_line: bytes, framing: bytes, connection: bytes, payload: bytes = b"") -> bytes:
    """Build the head of an answer towards the client, empty line included, with what is there of the body behind it.

    `framing` and `connection` are whole lines or nothing.
    """
    return b"%b%b%b%b%b%b\r\n%b" % (
        answer.status_line,
        answer.lines,
        b"" if answer.has_date else date_line,
        b"" if answer.has_server else SERVER_LINE,
        framing,
        connection,
        payload,
    )


def answer_framing(answer: AnswerHead, *, bodiless: bool, minor: int) -> bytes:
    """Choose the line that says where the body ends for a client that speaks HTTP/1.`minor`.

    An answer without a body keeps the field that its body would have had (HEAD and 304), except 204 and 1xx, which have
    none (RFC 9110 section 8.6). A body of unknown length is chunked for 1.1 and ends with the connection for 1.0.
    """
    if answer.status == 204 or answer.status < 200:
        return b""
    if answer.content_length >= 0:
        return b"Content-Length: %d\r\n" % answer.content_length
    if minor == 0 or (bodiless and not answer.chunked):
        return b""
    return CHUNKED_LINE
