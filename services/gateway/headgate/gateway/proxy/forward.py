"""How heads change on their way: what is added towards upstreams and towards clients.

Towards an upstream: Host kept, `X-Forwarded-For`, `-Proto`, `-Host`, `-Port` and `X-Real-IP` of this connection (what
the client claims is dropped unless it is trusted), `X-Request-ID`, our own framing. Towards a client: `Date` and
`Server` where the upstream gave none, our own framing and `Connection`.
"""

import itertools
import secrets
from dataclasses import dataclass

from headgate.gateway.proxy.head import AnswerHead, RequestFields

SERVER_LINE = b"Server: headgate\r\n"
CHUNKED_LINE = b"Transfer-Encoding: chunked\r\n"

_ID_PREFIX = secrets.token_hex(8).encode()
_ids = itertools.count(secrets.randbits(60))


def new_request_id() -> bytes:
    """Make a request id: 16 random digits of this process, then a count that starts anywhere; 32 hexadecimal digits."""
    return b"%b%016x" % (_ID_PREFIX, next(_ids) & 0xFFFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True)
class Peer:
    """The client's side of one connection, as upstreams are told of it."""

    address: bytes
    scheme: bytes
    port: bytes
    """Port that the client connected to."""


def upstream_lines(fields: RequestFields, peer: Peer, *, trusted: bool) -> bytes:
    """Build all that follows the request line towards an upstream, up to the request id and the empty line.

    Depends on nothing but the header block and the connection, so it is made once for equal blocks of a connection.
    """
    claimed = fields.forwarded if trusted else {}
    chain = claimed.get(b"x-forwarded-for")
    parts = [b"Host: %b\r\n" % fields.host_line if fields.host_line else b"", fields.lines]
    parts.append(b"X-Forwarded-For: %b\r\n" % (b"%b, %b" % (chain, peer.address) if chain else peer.address))
    for name, value in (
        (b"X-Forwarded-Proto", peer.scheme),
        (b"X-Forwarded-Host", fields.host_line),
        (b"X-Forwarded-Port", peer.port),
        (b"X-Real-IP", peer.address),
    ):
        parts.append(b"%b: %b\r\n" % (name, claimed.get(name.lower()) or value))
    written = {b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"x-forwarded-port", b"x-real-ip"}
    parts += [b"%b: %b\r\n" % item for item in claimed.items() if item[0] not in written and b"_" not in item[0]]
    if fields.chunked:
        parts.append(CHUNKED_LINE)
    elif fields.content_length >= 0:
        parts.append(b"Content-Length: %d\r\n" % fields.content_length)
    if fields.request_id:
        parts.append(b"X-Request-ID: %b\r\n" % fields.request_id)
    return b"".join(parts)


def answer_head(answer: AnswerHead, date_line: bytes, framing: bytes, connection: bytes) -> bytes:
    """Build the head of an answer towards the client, empty line included.

    `framing` and `connection` are whole lines or nothing.
    """
    return b"".join(
        (
            answer.lines,
            b"" if answer.has_date else date_line,
            b"" if answer.has_server else SERVER_LINE,
            framing,
            connection,
            b"\r\n",
        )
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
