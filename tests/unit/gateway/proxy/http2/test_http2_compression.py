"""Header blocks are written so that hpack reads what was meant, and read as hpack reads them."""

import hpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.gateway.proxy.http2.compression import FORGET, compress_field, compress_lines
from headgate.gateway.proxy.http2.decompression import CompressionFault, Decoder, HeaderListTooLong

_TEXT = st.binary(max_size=400)
_KNOWN = st.sampled_from([b":status", b":path", b"content-type", b"set-cookie", b"www-authenticate"])
_FIELDS = st.lists(st.tuples(_KNOWN | _TEXT, st.sampled_from([b"200", b"/", b""]) | _TEXT))
_LONG = 1 << 30


def read(block: bytes) -> list[tuple[bytes, bytes]]:
    return list(hpack.Decoder(max_header_list_size=_LONG).decode(block, raw=True))


@given(_FIELDS)
def test_what_is_written_is_read_again(fields: list[tuple[bytes, bytes]]) -> None:
    assert read(FORGET + b"".join(compress_field(name, value) for name, value in fields)) == fields


@pytest.mark.parametrize("size", [14, 15, 126, 127, 128, 254, 255, 256, 16_511, 16_512, 100_000])
def test_lengths_of_any_size(size: int) -> None:
    fields = [(b"x" * size, b"y" * size), (b"cookie", b"z" * size)]
    block = b"".join(compress_field(name, value) for name, value in fields)
    assert read(block) == fields
    assert Decoder(_LONG).decode(block) == fields


def test_frequent_fields_are_one_byte() -> None:
    assert compress_field(b":status", b"200") + compress_field(b":method", b"GET") == b"\x88\x82"


def test_lines_are_fields_with_names_in_lower_case() -> None:
    for _ in range(2):
        assert read(compress_lines(b"X-One: a: b\r\nSet-Cookie:\t c \r\n")) == [
            (b"x-one", b"a: b"),
            (b"set-cookie", b"c"),
        ]


def test_more_lines_than_are_remembered_are_written_too() -> None:
    for number in range(10_000):
        assert read(compress_lines(b"x: %d\r\n" % number)) == [(b"x", b"%d" % number)]


@pytest.mark.parametrize("name", [b"authorization", b"cookie", b"set-cookie", b"proxy-authorization"])
def test_secrets_are_marked(name: bytes) -> None:
    found = hpack.Decoder().decode(compress_lines(name.title() + b": s\r\naccept: a\r\n"), raw=True)
    assert [field.indexable for field in found] == [False, True]


_COMMON = st.sampled_from([(b":path", b"/"), (b"user-agent", b"curl"), (b"x", b"y" * 900), (b"cookie", b"")])


@given(
    st.lists(
        st.tuples(
            st.lists(_COMMON | st.tuples(_KNOWN | _TEXT, _TEXT)), st.booleans(), st.sampled_from([None, 0, 60, 4096])
        ),
        max_size=6,
    )
)
def test_blocks_with_a_table_are_read_in_their_order(
    blocks: list[tuple[list[tuple[bytes, bytes]], bool, int | None]],
) -> None:
    encoder, decoder = hpack.Encoder(), Decoder(_LONG)
    for fields, huffman, size in blocks:
        if size is not None:
            encoder.header_table_size = size
        assert decoder.decode(encoder.encode(fields, huffman=huffman)) == fields


@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"\x82\x84", b"\x40\x01a\x01b", b"\x20", b"\x3f\xe1\x1f"])))
@example([b"\x40\x81\x07\x00"])
@example([b"\x3f\xe2\x1f"])
@example([b"\x82\x20"])
@example([b"\x80"])
@example([b"\x00\x82\xff\xff\x00"])
def test_any_bytes_are_read_as_hpack_reads_them_or_not_at_all(blocks: list[bytes]) -> None:
    oracle, decoder = hpack.Decoder(max_header_list_size=_LONG), Decoder(_LONG)
    oracle.max_allowed_table_size = 4096
    for block in blocks:
        try:
            expected = list(oracle.decode(block, raw=True))
        except hpack.HPACKError:
            with pytest.raises(CompressionFault):
                decoder.decode(block)
            return
        assert decoder.decode(block) == expected


def test_a_number_without_end_is_refused() -> None:
    with pytest.raises(CompressionFault, match="too large"):
        Decoder(_LONG).decode(b"\xff" + b"\x80" * 20 + b"\0")


def test_a_list_that_means_too_much_is_refused() -> None:
    decoder = Decoder(1000)
    block = hpack.Encoder().encode([(b"x", b"y" * 300)])
    assert decoder.decode(block)
    with pytest.raises(HeaderListTooLong):
        decoder.decode(b"\xbe" * 4)
