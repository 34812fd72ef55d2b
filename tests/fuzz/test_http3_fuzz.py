"""Sequences of frames, right and wrong, in pieces and on any streams of a connection of HTTP/3."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.http3_targets import Came, check_http3
from headgate.gateway.proxy.http3.numbers import frame, integer
from headgate.gateway.proxy.http3.qpack import PREFIX, compress_field

_REQUESTS = st.sampled_from([0, 4, 8, 12])
_ONE_WAY = st.sampled_from([2, 6, 10])
_NAMES = [b":method", b":scheme", b":authority", b":path", b":protocol", b"content-length", b"cookie", b"te", b"X", b""]
_VALUES = [b"GET", b"POST", b"CONNECT", b"https", b"a", b"unknown", b"elsewhere", b"/", b"5", b"websocket", b"trailers"]
_WHOLE = [(b":method", b"POST"), (b":scheme", b"https"), (b":authority", b"a"), (b":path", b"/")]
_FIELDS = st.lists(st.tuples(st.sampled_from(_NAMES), st.sampled_from(_VALUES)), max_size=6)


def _head(fields: list[tuple[bytes, bytes]], whole: bool) -> bytes:
    sent = [*(_WHOLE if whole else []), *fields]
    return frame(1, PREFIX + b"".join(compress_field(name, value) for name, value in sent))


def _any(kind: int, body: bytes) -> bytes:
    return integer(kind) + integer(len(body)) + body


_KINDS = st.integers(0, 14) | st.sampled_from([0x21, 0xF0700, 2**62 - 1])
_FRAMES = (
    st.builds(_head, _FIELDS, st.booleans())
    | st.builds(_any, st.just(0), st.binary(max_size=20) | st.just(b"x" * 9000))
    | st.builds(_any, _KINDS, st.binary(max_size=24))
    | st.binary(max_size=12)
)
_ON_REQUESTS = st.builds(Came, _REQUESTS, _FRAMES, st.booleans())
_ON_OTHERS = st.builds(Came, _ONE_WAY, st.builds(bytes.__add__, st.sampled_from([b"", b"\0", b"\2", b"\3"]), _FRAMES))
_ENDS = st.builds(
    Came, _REQUESTS | _ONE_WAY | st.just(3), st.just(b""), st.just(False), st.sampled_from(["reset", "stop"])
)


@settings(max_examples=400)
@given(st.lists(_ON_REQUESTS | _ON_OTHERS | _ENDS, max_size=14))
def test_frames_in_any_order(came: list[Came]) -> None:
    check_http3(came)


@settings(max_examples=100)
@given(st.lists(_ON_REQUESTS, max_size=4))
def test_frames_that_come_byte_by_byte(came: list[Came]) -> None:
    pieces = []
    for each in came:
        data = each.data[:200]
        pieces += [Came(each.stream_id, data[at : at + 1]) for at in range(len(data))]
        pieces.append(Came(each.stream_id, end=each.end))
    check_http3(pieces)


@pytest.mark.parametrize("kind", ["stop", "reset"])
def test_a_request_may_come_behind_its_cancellation(kind: str) -> None:
    check_http3([Came(0, kind=kind), Came(0, _head([], True), True)])


@pytest.mark.parametrize("end", [False, True])
def test_a_request_is_answered(end: bool) -> None:
    check_http3([Came(0, _head([], True), end)])
