"""Header blocks without a table of their own are read by hpack as they were meant."""

import hpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.gateway.proxy.http2.compression import StaticEncoder

_TEXT = st.binary(max_size=400)
_KNOWN = st.sampled_from([b":status", b":path", b"content-type", b"set-cookie", b"www-authenticate"])
_FIELDS = st.lists(st.tuples(_KNOWN | _TEXT, st.sampled_from([b"200", b"/", b""]) | _TEXT))


@given(st.lists(_FIELDS, min_size=1, max_size=3))
def test_what_is_written_is_read_again(blocks: list[list[tuple[bytes, bytes]]]) -> None:
    encoder, decoder = StaticEncoder(), hpack.Decoder(max_header_list_size=1 << 30)
    for fields in blocks:
        assert list(decoder.decode(encoder.encode(fields), raw=True)) == fields
    assert decoder.header_table_size == 0


@pytest.mark.parametrize("size", [14, 15, 126, 127, 128, 254, 255, 256, 16_511, 16_512, 100_000])
def test_lengths_of_any_size(size: int) -> None:
    fields = [(b"x" * size, b"y" * size), (b"cookie", b"z" * size)]
    decoder = hpack.Decoder(max_header_list_size=1 << 30)
    assert list(decoder.decode(StaticEncoder().encode(fields), raw=True)) == fields


def test_frequent_fields_are_one_byte() -> None:
    encoder = StaticEncoder()
    encoder.encode([])
    assert encoder.encode([(b":status", b"200"), (b":method", b"GET")]) == b"\x88\x82"


def test_secrets_are_marked() -> None:
    secrets = [hpack.NeverIndexedHeaderTuple(name, b"s") for name in (b"cookie", b"x-token")]
    plain = [(b"accept", b"a")]
    read = hpack.Decoder().decode(StaticEncoder().encode([*secrets, *plain]), raw=True)
    assert [field.indexable for field in read] == [False, False, True]
