"""Header lines cut into names and values."""

from headgate.gateway.proxy.errors import FramingError

Fields = tuple[tuple[bytes, ...], tuple[bytes, ...]]
"""Names as sent, and values without the white space before them; behind them there may be some."""


def cut_fields(lines: list[bytes]) -> Fields:
    """Cut lines that llhttp has accepted, each without its CRLF, into names and values; raises FramingError."""
    parts = [line.partition(b":") for line in lines]
    if not all(colon for _, colon, _ in parts):
        raise FramingError("malformed head")
    return tuple([name for name, _, _ in parts]), tuple([value.lstrip(b" \t") for _, _, value in parts])
