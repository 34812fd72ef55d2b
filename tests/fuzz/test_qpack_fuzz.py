"""Blocks of QPACK and one-way streams, random and mutated: all of it is read, or is a fault by its name."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.gateway.proxy.http2.decompression import CompressionFault, HeaderListTooLong
from headgate.gateway.proxy.http3.client_streams import ClientStreams
from headgate.gateway.proxy.http3.numbers import LARGEST, ConnectionFault, frame, integer, read_integer
from headgate.gateway.proxy.http3.qpack import PREFIX, compress_field, decode

MOST = 4096
_NAMES = st.sampled_from([b":method", b":path", b"cookie", b"x-own", b"authorization", b"accept"]) | st.binary(
    max_size=40
)
_FIELDS = st.lists(st.tuples(_NAMES, st.sampled_from([b"GET", b"/", b"*/*"]) | st.binary(max_size=400)), max_size=8)


def mutated(block: bytes, changes: list[tuple[int, int, int]]) -> bytes:
    """Replace, put in, or cut out bytes."""
    for where, kind, byte in changes:
        at = where % (len(block) + 1)
        block = block[:at] + (b"" if kind == 2 else bytes((byte,))) + block[at + (kind != 1) :]
    return block


_CHANGES = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 2), st.integers(0, 255)), max_size=6)


@settings(max_examples=400)
@given(_FIELDS)
def test_what_is_written_is_read(fields: list[tuple[bytes, bytes]]) -> None:
    block = PREFIX + b"".join(compress_field(name, value) for name, value in fields)
    assert decode(block, 1 << 20) == fields


@settings(max_examples=800)
@given(_FIELDS, _CHANGES)
def test_a_changed_block_is_read_or_is_a_fault(
    fields: list[tuple[bytes, bytes]], changes: list[tuple[int, int, int]]
) -> None:
    block = mutated(PREFIX + b"".join(compress_field(name, value) for name, value in fields), changes)
    try:
        read = decode(block, MOST)
    except (CompressionFault, HeaderListTooLong):
        return
    assert sum(32 + len(name) + len(value) for name, value in read) <= MOST


@settings(max_examples=800)
@given(st.binary(max_size=200))
def test_random_bytes_are_a_block_or_a_fault(block: bytes) -> None:
    try:
        decode(PREFIX + block, MOST)
    except (CompressionFault, HeaderListTooLong):
        return


@given(st.integers(0, LARGEST), st.binary(max_size=8))
def test_integers_are_read_as_they_were_written_and_not_from_a_part(value: int, behind: bytes) -> None:
    written = integer(value)
    assert read_integer(written + behind, 0) == (value, len(written))
    assert all(read_integer(written[:size], 0) == (-1, -1) for size in range(len(written)))


_CONTROL = st.lists(
    st.builds(frame, st.sampled_from([0, 1, 3, 4, 5, 7, 13, 0x21]), st.binary(max_size=12)), max_size=5
).map(lambda frames: b"\0" + frame(4, b"\x06\x01") + b"".join(frames))
_OF_ONE_DIRECTION = (
    _CONTROL
    | st.binary(max_size=40).map(lambda data: b"\2" + data)
    | st.lists(st.sampled_from([b"\x44", b"\x7f\x01", b"\x7f\xff\xff\x01", b"\x20", b"\x80"]), max_size=6).map(
        lambda read: b"\3" + b"".join(read)
    )
    | st.binary(max_size=60)
)


def outcome(pieces: list[bytes]) -> tuple[int, int, bool]:
    """The code of the fault, what was passed over, and whether the client leaves."""
    streams = ClientStreams()
    try:
        for piece in pieces:
            if not streams.take(2, piece, end=False):
                break
    except ConnectionFault as fault:
        return fault.code, 0, False
    return 0, streams.passed_over, streams.leaves


@settings(max_examples=600)
@given(_OF_ONE_DIRECTION, _CHANGES, st.lists(st.integers(1, 9), min_size=1, max_size=40))
def test_pieces_of_a_stream_of_one_direction_mean_what_the_whole_does(
    data: bytes, changes: list[tuple[int, int, int]], sizes: list[int]
) -> None:
    data = mutated(data, changes)
    pieces, at = [], 0
    for size in (*sizes, len(data)):
        pieces.append(data[at : at + size])
        at += size
    assert outcome(pieces) == outcome([data])


@pytest.mark.parametrize(
    "data", [b"\3" + b"\x7f" + b"\xff" * 11, b"\2\x3f\xe1\x1f", b"\0" + frame(4, b"") + b"\x21\xff"]
)
def test_pieces_that_were_read_otherwise_once_or_might_be(data: bytes) -> None:
    assert outcome([data[at : at + 1] for at in range(len(data))]) == outcome([data])
