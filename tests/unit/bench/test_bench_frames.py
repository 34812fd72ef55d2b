"""The frames that the gRPC origin writes and reads."""

import pytest
from bench.servers.frames import DATA, END_HEADERS, HEADERS, PREFACE, SETTINGS, frame, header_block, split_frames
from bench.setup.workload import grpc_message
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived


def test_what_is_written_is_http2():
    client = H2Connection(H2Configuration(client_side=True, header_encoding=None))
    client.initiate_connection()
    client.send_headers(1, [(":method", "GET"), (":path", "/"), (":scheme", "http"), (":authority", "a")])
    block = b"\x88" + header_block((b"content-type", b"application/grpc"))
    head = frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1, block)
    answer, data = client.receive_data(head + frame(DATA, 0, 1, grpc_message()))[-2:]
    assert isinstance(answer, ResponseReceived)
    assert list(answer.headers) == [(b":status", b"200"), (b"content-type", b"application/grpc")]
    assert isinstance(data, DataReceived)
    assert data.data == grpc_message()


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_frame_waits_for_its_end(cut: int):
    whole = frame(DATA, 1, 5, b"abc")
    buffer = bytearray(whole[:cut])
    assert not list(split_frames(buffer))
    buffer += whole[cut:]
    assert list(split_frames(buffer)) == [(DATA, 1, 5, b"abc")]
    assert not buffer


def test_the_preface_is_that_of_the_standard():
    assert len(PREFACE) == 24
