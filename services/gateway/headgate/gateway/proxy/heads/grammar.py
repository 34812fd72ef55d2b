"""Checks on raw bytes that come on top of llhttp, one regular expression or table each.

llhttp reads the messages (`parser`); these refuse what it would put up with: more than one space in a request line, a
version that we do not speak, a fragment, chunk sizes of any number of digits, a Host that is none.

All quantifiers are possessive: matching is linear in the length of the input, whatever the input is.
"""

import re
from typing import Final

TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]"
_VALUE: Final = rb"[\t\x20-\x7e\x80-\xff]*+"

REQUEST_LINE: Final = re.compile(rb"(" + TOKEN + rb"++) ([\x21\x22\x24-\x7e]++) HTTP/1\.([01])\r\n")
"""Method, target (visible ASCII without `#`), minor version."""

STATUS_LINE: Final = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: (" + _VALUE + rb"))?+")
"""Without its CRLF: minor version, status, reason phrase. Many servers leave out the space before an empty phrase,
harmlessly."""

ABSOLUTE_TARGET: Final = re.compile(rb"(?i:https?)://([^/?@]*+)([/?].*+)?+", re.DOTALL)
"""Authority, then path and query. User information has no business here (RFC 9110 section 4.2.4)."""

HOST: Final = re.compile(rb"([0-9A-Za-z._~-]++|\[[0-9A-Fa-f:.]++\])(?::([0-9]{1,5}))?+")
"""Name or address literal, port. Percent-encoded bytes and sub-delimiters are legal in a URI, never meant well here."""

CHUNK_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})((?:;[\t\x20-\x7e\x80-\xff]*+)?+)\r\n")
"""Size, extensions. Extensions are read over and never forwarded."""

PARTIAL_HEAD_FAULT: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|(?<!\r)\n|\r(?!\n|\Z)")
"""What no continuation of an incomplete head can mend: a control character, a bare LF, a bare CR."""

_PRINTABLE: Final = bytes([byte if 0x20 <= byte <= 0x7E else 0x20 for byte in range(256)])
_VISIBLE: Final = bytes([byte if 0x21 <= byte <= 0x7E else 0x21 for byte in range(256)])


def is_printable(text: bytes) -> bool:
    """Tell whether all of a text is printable ASCII, spaces too."""
    # For an id of 36 characters this takes a fourth of what `str.isprintable` does.
    return text.translate(_PRINTABLE) == text


def is_visible(text: bytes) -> bool:
    """Tell whether all of a text is visible ASCII."""
    return text.translate(_VISIBLE) == text


def fault_of_block(block: bytes) -> str:
    """Name what is wrong with a block of header lines that llhttp refused; empty if it is nothing with a name."""
    for fault, text in _BLOCK_FAULTS:
        if fault.search(block):
            return text
    return ""


_BLOCK_FAULTS: Final[tuple[tuple[re.Pattern[bytes], str], ...]] = (
    (re.compile(rb"\x00"), "NUL in a header"),
    (re.compile(rb"\r(?!\n)"), "bare CR in a header"),
    (re.compile(rb"(?<!\r)\n"), "bare LF in a header"),
    (re.compile(rb"(?:\A|\n)[ \t]"), "folded header line"),
    (re.compile(rb"(?:\A|\n)" + TOKEN + rb"++[ \t]"), "space before the colon of a header"),
    (re.compile(rb"(?:\A|\n):"), "header without a name"),
    (re.compile(rb"(?:\A|\n)[^:\r\n]*+\r"), "header line without a colon"),
    (re.compile(rb"(?:\A|\n)(?!" + TOKEN + rb"++:|\Z)"), "malformed header name"),
    (re.compile(rb"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]"), "control character in a header"),
)


def fault_of_request_line(head: bytes) -> str:
    """Name what is wrong with a request line that `REQUEST_LINE` did not match."""
    line, _, _ = head.partition(b"\n")
    line = line.removesuffix(b"\r")
    parts = line.split(b" ")
    if not line:
        return "empty line instead of a request"
    if len(parts) != 3 or not all(parts):
        return "request line is not `method target version`"
    if not re.fullmatch(TOKEN + rb"++", parts[0]):
        return "malformed method"
    if not re.fullmatch(rb"[\x21\x22\x24-\x7e]++", parts[1]):
        return "target with a fragment, a control character or a byte outside ASCII"
    if parts[2] not in (b"HTTP/1.0", b"HTTP/1.1"):
        return "version is neither HTTP/1.0 nor HTTP/1.1"
    return "request line does not end with CRLF"
