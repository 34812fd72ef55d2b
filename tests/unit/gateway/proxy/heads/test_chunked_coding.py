"""The readers of bodies, by themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.gateway.proxy.errors import BadMessage, LimitExceeded
from headgate.gateway.proxy.http1.framing import ChunkedReader, LengthReader, encode_chunk, last_chunk
from headgate.gateway.proxy.http1.parser import RequestParser


def chunked(max_size: int | None = None) -> ChunkedReader:
    parser = RequestParser()
    parser.head(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
    return ChunkedReader(parser, max_size)


def read(reader: ChunkedReader | LengthReader, pieces: list[bytes]) -> bytes:
    return b"".join(reader.feed(piece) for piece in pieces)


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.binary(max_size=9), st.data())
def test_what_was_coded_is_read_whatever_the_pieces(payloads: list[bytes], behind: bytes, data: st.DataObject) -> None:
    coded = b"".join(map(encode_chunk, payloads)) + last_chunk(b"") + behind
    cuts = sorted(data.draw(st.lists(st.integers(0, len(coded)), max_size=8)))
    pieces = [coded[a:b] for a, b in zip([0, *cuts], [*cuts, len(coded)], strict=True)]
    reader, rest = chunked(), b""
    payload = b""
    for piece in pieces:
        if reader.done:
            rest += piece
        else:
            payload += reader.feed(piece)
    assert reader.done
    assert payload == b"".join(payloads)
    assert reader.rest + rest == behind


@pytest.mark.parametrize("size", [b"0" * 15 + b"5", b"5", b"05"])
def test_chunk_size_has_up_to_16_digits(size: bytes) -> None:
    assert read(chunked(), [size + b"\r\nhello\r\n0\r\n\r\n"]) == b"hello"


@pytest.mark.parametrize("line", [b"0" * 17, b"g", b"5 ", b" 5", b"-5", b"5\t", b"5\x00", b"5;\x7f", b"\r"])
def test_wrong_start_of_a_chunk_line_is_refused_without_waiting_for_its_end(line: bytes) -> None:
    with pytest.raises(BadMessage):
        read(chunked(), [line + (b"x" if line.endswith((b" ", b"\t")) else b"")])


def test_limit_counts_payload_of_all_chunks() -> None:
    with pytest.raises(LimitExceeded) as raised:
        read(chunked(5), [b"3\r\nabc\r\n", b"3\r\n"])
    assert raised.value.status == 413


def test_chunk_line_is_bounded() -> None:
    with pytest.raises(BadMessage):
        read(chunked(), [b"1;" + b"a" * 5000])


def test_extensions_of_all_chunks_together_are_bounded() -> None:
    with pytest.raises(BadMessage, match="extensions"):
        read(chunked(), [b"1;" + b"a" * 1000 + b"\r\na\r\n"] * 100)


def test_trailers_are_bounded() -> None:
    with pytest.raises(BadMessage, match="trailers too long"):
        read(chunked(), [b"0\r\n"] + [b"X: " + b"a" * 1000 + b"\r\n"] * 10)


def test_length_reader_gives_back_what_is_not_its_own() -> None:
    parser = RequestParser()
    parser.head(b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n")
    reader = LengthReader(parser, 3)
    assert read(reader, [b"ab", b"cde"]) == b"abc"
    assert reader.done
    assert reader.rest == b"de"


def test_empty_payload_is_not_coded_as_it_would_end_the_body() -> None:
    assert encode_chunk(b"") == b""


def test_two_opinions_about_the_end_of_a_body_are_a_refusal() -> None:
    parser = RequestParser()
    parser.head(b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n")
    with pytest.raises(BadMessage, match="unclear where the body ends"):
        LengthReader(parser, 3).feed(b"abc")
