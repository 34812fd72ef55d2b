"""Records of FastCGI, fed at once and byte by byte; what is one byte off is refused."""

import struct

import pytest

from fakes.peers.fastcgi import STDERR, STDOUT, end, record
from headgate.gateway.proxy.errors import FramingError
from headgate.gateway.proxy.fcgi.records import (
    MAX_CONTENT,
    STDIN,
    RecordReader,
    begin_request,
    end_stream,
    write_param,
    write_stream,
)

ANSWER = record(STDOUT, b"a" * 300, padding=5) + record(STDERR, b"oops") + record(STDOUT) + end()


def streams(pieces: list[tuple[int, bytes]]) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for kind, content in pieces:
        found[kind] = found.get(kind, b"") + content
    return found


@pytest.mark.parametrize("step", [1, 2, 7, 8, 9, 1000])
def test_records_are_read_however_they_come(step: int) -> None:
    reader = RecordReader()
    pieces = [piece for at in range(0, len(ANSWER), step) for piece in reader.feed(ANSWER[at : at + step])]
    assert streams(pieces) == {STDOUT: b"a" * 300, STDERR: b"oops"}
    assert pieces[-1] == (STDOUT, b"")
    assert reader.status == 0


def test_content_is_given_before_its_record_is_whole() -> None:
    reader = RecordReader()
    assert reader.feed(record(STDOUT, b"abcdef")[:10]) == [(STDOUT, b"ab")]
    assert reader.status < 0


@pytest.mark.parametrize("status", [0, 1, 2, 3])
def test_the_status_of_the_protocol_is_read(status: int) -> None:
    reader = RecordReader()
    reader.feed(end(status, application=7))
    assert reader.status == status


@pytest.mark.parametrize(
    "data",
    [
        record(STDOUT, b"a", version=0),
        record(STDOUT, b"a", version=2),
        record(STDOUT, b"a", request=0),
        record(STDOUT, b"a", request=2),
        record(STDIN, b"a"),
        record(0),
        record(8, b"a"),
        record(11),
        record(3, b"1234567"),
        record(3, b"123456789"),
        record(3),
        end() + b"\x01",
        end() + record(STDOUT),
        b"HTTP/1.1 200 OK\r\n\r\n",
    ],
)
@pytest.mark.parametrize("step", [1, 1000])
def test_what_no_application_sends_is_refused(data: bytes, step: int) -> None:
    reader = RecordReader()
    with pytest.raises(FramingError):
        _ = [reader.feed(data[at : at + step]) for at in range(0, len(data), step)]


def test_a_request_begins_with_its_role_and_all_parameters() -> None:
    params = write_param(b"A", b"b")
    assert params == b"\x01\x01Ab"
    assert begin_request(params) == (
        b"\x01\x01\x00\x01\x00\x08\x00\x00" + b"\x00\x01\x00\x00\x00\x00\x00\x00"
        b"\x01\x04\x00\x01\x00\x04\x00\x00" + params + b"\x01\x04\x00\x01\x00\x00\x00\x00"
    )


@pytest.mark.parametrize(
    ("size", "written"), [(0, b"\0"), (127, b"\x7f"), (128, b"\x80\0\0\x80"), (70_000, b"\x80\1\x11\x70")]
)
def test_lengths_take_one_byte_or_four(size: int, written: bytes) -> None:
    assert write_param(b"n", b"v" * size) == b"\x01" + written + b"n" + b"v" * size
    assert write_param(b"n" * size, b"v") == written + b"\x01" + b"n" * size + b"v"


@pytest.mark.parametrize("size", [1, MAX_CONTENT, MAX_CONTENT + 1, 3 * MAX_CONTENT])
def test_a_long_stream_is_cut_into_records(size: int) -> None:
    data, found = write_stream(STDIN, b"x" * size), b""
    while data:
        version, kind, request, length, padding = struct.unpack_from(">BBHHBx", data)
        assert (version, kind, request, padding) == (1, STDIN, 1, 0)
        assert length
        found += data[8 : 8 + length]
        data = data[8 + length :]
    assert found == b"x" * size


def test_a_stream_ends_with_an_empty_record_only() -> None:
    assert write_stream(STDIN, b"") == b""
    assert end_stream(STDIN) == b"\x01\x05\x00\x01\x00\x00\x00\x00"
