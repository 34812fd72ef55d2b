"""Sequences of frames, right and wrong, on a connection of HTTP/2; and all that is in the corpus."""

from pathlib import Path

import hpack
import hyperframe.frame as frames
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.http2_targets import check_http2

CORPUS = sorted((Path(__file__).parent / "corpus" / "http2").iterdir())

_STREAMS = st.sampled_from([0, 1, 3, 5, 7, 2, 2**31 - 1])
_NAMES = [b":method", b":scheme", b":authority", b":path", b":protocol", b"content-length", b"cookie", b"te", b"X", b""]
_VALUES = [b"GET", b"POST", b"CONNECT", b"http", b"a", b"unknown", b"/", b"5", b"websocket", b"trailers", b"a\r\nb: c"]
_WHOLE = [(b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"a"), (b":path", b"/")]
_FIELDS = st.lists(st.tuples(st.sampled_from(_NAMES), st.sampled_from(_VALUES)), max_size=6)


def _head(stream_id: int, fields: list[tuple[bytes, bytes]], whole: bool, flags: list[str]) -> bytes:
    block = hpack.Encoder().encode([*(_WHOLE if whole else []), *fields])
    frame = frames.HeadersFrame(1, data=block, flags=flags)
    frame.stream_id = stream_id
    return frame.serialize()


def _any(kind: int, flags: int, stream_id: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream_id.to_bytes(4, "big") + body


_FLAGS = st.lists(st.sampled_from(["END_STREAM", "END_HEADERS"]), unique=True)
_HEADS = st.builds(_head, _STREAMS, _FIELDS, st.booleans(), _FLAGS | st.just(["END_HEADERS"]))
_DATA = st.builds(_any, st.just(0), st.sampled_from([0, 1]), _STREAMS, st.binary(max_size=20) | st.just(b"x" * 9000))
_OTHER = st.builds(_any, st.integers(0, 12), st.integers(0, 255), _STREAMS, st.binary(max_size=24))


@settings(max_examples=300)
@given(st.lists(_HEADS | _DATA | _OTHER, max_size=12), st.binary(max_size=10))
def test_frames_in_any_order(sent: list[bytes], tail: bytes) -> None:
    check_http2(b"".join(sent) + tail)


@pytest.mark.parametrize("path", CORPUS, ids=[path.name for path in CORPUS])
def test_input_of_the_corpus(path: Path) -> None:
    check_http2(path.read_bytes())
