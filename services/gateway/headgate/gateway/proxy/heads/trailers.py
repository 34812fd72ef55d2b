"""Trailers: which fields may not be among them, and how they are passed on."""

from typing import Final

from headgate.gateway.proxy.errors import FramingError
from headgate.gateway.proxy.heads.cutting import cut_fields

FORBIDDEN_TRAILERS: Final = frozenset(
    b"authorization connection content-encoding content-length content-range content-type cookie expect forwarded host "
    b"keep-alive max-forwards proxy-authenticate proxy-authorization proxy-connection range set-cookie te trailer "
    b"transfer-encoding upgrade www-authenticate x-real-ip x-request-id".split()
)
"""Framing, routing, authentication and content format are decided before a body; RFC 9110 section 6.5.1."""


def trailer_lines(block: bytes) -> bytes:
    """Check trailers that llhttp has accepted (`block`: lines, each with its CRLF) and write them anew.

    Raises:
        FramingError: a field that must not be a trailer.
    """
    lines = []
    for name, value in zip(*cut_fields(block.split(b"\r\n")[:-1]), strict=True):
        dashed = name.lower().replace(b"_", b"-")
        if dashed in FORBIDDEN_TRAILERS or dashed.startswith(b"x-forwarded-"):
            raise FramingError("a trailer that must not be one")
        lines.append(b"%b: %b\r\n" % (name, value.strip(b" \t")))
    return b"".join(lines)
