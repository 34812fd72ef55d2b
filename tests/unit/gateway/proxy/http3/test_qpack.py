"""Header blocks of HTTP/3 against qh3's and pylsqpack's codecs, which share no code with ours."""

import pylsqpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.gateway.proxy.http2.decompression import CompressionFault, HeaderListTooLong
from headgate.gateway.proxy.http3.qpack import PREFIX, compress_field, compress_lines, decode
from headgate.gateway.proxy.http3.static_table import STATIC_TABLE

NAMES = st.one_of(
    st.sampled_from([name for name, _ in STATIC_TABLE]),
    st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=40).map(str.encode),
)
VALUES = st.one_of(st.sampled_from([value for _, value in STATIC_TABLE]), st.binary(max_size=400))
FIELDS = st.lists(st.tuples(NAMES, VALUES), min_size=1, max_size=12)


def by_other(block: bytes) -> list[tuple[bytes, bytes]]:
    return list(pylsqpack.Decoder(0, 0).feed_header(0, block)[1])


@given(FIELDS)
def test_what_is_written_means_the_same_to_another(fields: list[tuple[bytes, bytes]]) -> None:
    block = PREFIX + b"".join(compress_field(name, value) for name, value in fields)
    assert by_other(block) == fields == decode(block, 1 << 20)


@given(FIELDS)
def test_what_another_writes_is_read(fields: list[tuple[bytes, bytes]]) -> None:
    encoder = pylsqpack.Encoder()
    _, block = encoder.encode(0, fields)
    assert decode(block, 1 << 20) == fields


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        fields = decode(data, 1 << 16)
    except (CompressionFault, HeaderListTooLong):
        return
    if fields:  # the other takes no block without any
        assert by_other(data) == fields


@pytest.mark.parametrize("entry", range(len(STATIC_TABLE)))
def test_each_entry_of_the_static_table_is_that_of_the_rfc(entry: int) -> None:
    block = PREFIX + (bytes((0xC0 | entry,)) if entry < 63 else bytes((0xFF, entry - 63)))
    assert by_other(block) == decode(block, 1 << 16) == [STATIC_TABLE[entry]]


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"\0",
        b"\1\0\xc1",
        b"\0\0\xff\x24",
        b"\0\0\x80",
        b"\0\0\x40\0",
        b"\0\0\x10",
        b"\0\0\x00\0",
        b"\0\0\x51",
        b"\0\0\x51\x05abc",
        b"\0\0\x23ab",
        b"\0\0\x27\xff\xff\xff\xff\xff",
        b"\0\0\x51\x81\x00",
    ],
    ids=[
        "nothing",
        "half a prefix",
        "entries needed",
        "beyond the static table",
        "dynamic entry",
        "dynamic name",
        "entry behind the base",
        "name behind the base",
        "no value",
        "half a value",
        "half a name",
        "a number without end",
        "Huffman code without end",
    ],
)
def test_malformed_blocks_are_refused(block: bytes) -> None:
    with pytest.raises(CompressionFault):
        decode(block, 1 << 16)


def test_a_list_is_bounded_as_it_grows() -> None:
    block = PREFIX + compress_field(b"x", b"y" * 10) * 5
    assert len(decode(block, 5 * 43)) == 5
    with pytest.raises(HeaderListTooLong):
        decode(block, 5 * 43 - 1)


def test_secrets_are_marked_so_that_no_table_takes_them_further_on() -> None:
    assert compress_field(b"set-cookie", b"a=1")[0] & 0xF0 == 0x70
    assert compress_field(b"proxy-authorization", b"a")[0] & 0xF0 == 0x30
    assert compress_field(b"etag", b"a")[0] & 0xF0 == 0x50


def test_lines_are_written_with_names_in_lower_case() -> None:
    assert decode(PREFIX + compress_lines(b"X-A:  b \r\nETag: c\r\n"), 1 << 16) == [(b"x-a", b"b"), (b"etag", b"c")]
