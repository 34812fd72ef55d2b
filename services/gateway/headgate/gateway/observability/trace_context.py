"""Trace context in header lines: how requests say which trace they are a part of.

The names are those of `OTEL_PROPAGATORS`: `tracecontext` is W3C's (https://www.w3.org/TR/trace-context/), `b3` the one
header of Zipkin and `b3multi` its several ones (https://github.com/openzipkin/b3-propagation).
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from opentelemetry.trace import SpanContext, TraceFlags
from opentelemetry.trace.span import TraceState

_BLANKS: Final = b" \t"
# Blanks are taken off afterwards: a pattern that finds where they end takes the square of their number.
_PARENTS: Final = re.compile(rb"(?im)^traceparent:([^\r\n]*)\r\n")
_STATES: Final = re.compile(rb"(?im)^tracestate:([^\r\n]*)\r\n")
_PARENT: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_MEMBER: Final = re.compile(
    rb"(?:[a-z][_0-9a-z*/-]{0,255}|[a-z0-9][_0-9a-z*/-]{0,240}@[a-z][_0-9a-z*/-]{0,13})"
    rb"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
_MAX_MEMBERS: Final = 32
"""Of `tracestate` (section 3.3.1.1)."""
_B3: Final = re.compile(rb"(?im)^b3:([^\r\n]*)\r\n")
_B3_VALUE: Final = re.compile(rb"((?:[0-9a-f]{16}){1,2})-([0-9a-f]{16})(?:-([01d])(?:-[0-9a-f]{16})?)?", re.IGNORECASE)
_B3_MULTI: Final = re.compile(rb"(?im)^x-b3-(traceid|spanid|parentspanid|sampled|flags):([^\r\n]*)\r\n")
_TRACE_ID: Final = re.compile(rb"(?:[0-9a-f]{16}){1,2}", re.IGNORECASE)
_SPAN_ID: Final = re.compile(rb"[0-9a-f]{16}", re.IGNORECASE)
_YES: Final = frozenset((b"1", b"d", b"true"))
NOT_SAMPLED: Final = SpanContext(1, 1, True, TraceFlags(TraceFlags.DEFAULT))
"""Of requests that say that they are not sampled, and nothing else; its ids are of no trace."""


def _values(line: re.Pattern[bytes], lines: bytes) -> list[bytes]:
    return [value.strip(_BLANKS) for value in line.findall(lines)]


def _read_w3c(lines: bytes) -> SpanContext | None:
    values = _values(_PARENTS, lines)
    found = _PARENT.fullmatch(values[0]) if len(values) == 1 else None
    if found is None:
        return None
    version, trace_id, span_id, flags, rest = found.groups()
    if version == b"ff" or (version == b"00" and rest):
        return None
    flag = TraceFlags(int(flags, 16) & 3)
    context = SpanContext(int(trace_id, 16), int(span_id, 16), True, flag, _read_state(lines))
    return context if context.is_valid else None


def _read_state(lines: bytes) -> TraceState:
    """Read `tracestate`; empty if anything of it is not as it should be. OpenTelemetry would write that to the log, as
    long as a client makes it, for each request.
    """
    members = [part.strip(_BLANKS) for value in _values(_STATES, lines) for part in value.split(b",")]
    pairs = [member.decode("latin-1").partition("=") for member in members if member]
    entries = {key: value for key, _, value in pairs}
    is_right = len(entries) == len(pairs) <= _MAX_MEMBERS and all(map(_MEMBER.fullmatch, filter(None, members)))
    return TraceState(list(entries.items()) if is_right else None)


def _write_w3c(lines: bytes, context: SpanContext, keeps_state: bool) -> bytes:
    lines = _PARENTS.sub(b"", lines)
    if not keeps_state:
        lines = _STATES.sub(b"", lines)
    return lines + b"traceparent: 00-%032x-%016x-%02x\r\n" % (
        context.trace_id,
        context.span_id,
        context.trace_flags,
    )


def _read_b3(lines: bytes) -> SpanContext | None:
    values = _values(_B3, lines)
    if values == [b"0"]:
        return NOT_SAMPLED
    found = _B3_VALUE.fullmatch(values[0]) if len(values) == 1 else None
    if found is None:
        return None
    trace_id, span_id, sampled = found.groups()
    return _context(trace_id, span_id, sampled or b"")


def _write_b3(lines: bytes, context: SpanContext, keeps_state: bool) -> bytes:
    value = (context.trace_id, context.span_id, context.trace_flags & TraceFlags.SAMPLED)
    return _B3.sub(b"", lines) + b"b3: %032x-%016x-%d\r\n" % value


def _read_b3_multi(lines: bytes) -> SpanContext | None:
    found = {name.lower(): value.strip(_BLANKS) for name, value in _B3_MULTI.findall(lines)}
    trace_id, span_id = found.get(b"traceid", b""), found.get(b"spanid", b"")
    if found.get(b"sampled") in (b"0", b"false") and not trace_id:
        return NOT_SAMPLED
    if not _TRACE_ID.fullmatch(trace_id) or not _SPAN_ID.fullmatch(span_id):
        return None
    return _context(trace_id, span_id, b"d" if found.get(b"flags") == b"1" else found.get(b"sampled", b""))


def _write_b3_multi(lines: bytes, context: SpanContext, keeps_state: bool) -> bytes:
    value = (context.trace_id, context.span_id, context.trace_flags & TraceFlags.SAMPLED)
    return _B3_MULTI.sub(b"", lines) + b"x-b3-traceid: %032x\r\nx-b3-spanid: %016x\r\nx-b3-sampled: %d\r\n" % value


def _context(trace_id: bytes, span_id: bytes, sampled: bytes) -> SpanContext | None:
    """Return the context of B3, whose trace ids may have 64 bits. Where it says nothing of sampling it is left to the
    endpoint, which gets it as it is.
    """
    flags = TraceFlags(TraceFlags.SAMPLED if sampled.lower() in _YES else TraceFlags.DEFAULT)
    context = SpanContext(int(trace_id, 16), int(span_id, 16), True, flags)
    return context if context.is_valid else None


class _Format(NamedTuple):
    read: Callable[[bytes], SpanContext | None]
    write: Callable[[bytes, SpanContext, bool], bytes]


FORMATS: Final = {
    "tracecontext": _Format(_read_w3c, _write_w3c),
    "b3": _Format(_read_b3, _write_b3),
    "b3multi": _Format(_read_b3_multi, _write_b3_multi),
}


class Propagation:
    """The formats that requests may have, and that endpoints get.

    Args:
        names: of `FORMATS`, at least one.
    """

    def __init__(self, names: Sequence[str] = ("tracecontext",)) -> None:
        self._formats = tuple(FORMATS[name] for name in names)

    def read(self, lines: bytes) -> SpanContext | None:
        """Return the first context that is there and valid; None: there is none."""
        for each in self._formats:
            if (found := each.read(lines)) is not None:
                return found
        return None

    def write(self, lines: bytes, context: SpanContext, *, keeps_state: bool) -> bytes:
        """Return header lines with a context in each format, in the place of what the request has of them."""
        for each in self._formats:
            lines = each.write(lines, context, keeps_state)
        return lines
