"""Frames that break RFC 9113 end what they have to, with the code that the RFC names.

The sources of the session and of its base are tested, compiled or not: a class of a test cannot inherit from a compiled
one.
"""

from collections.abc import Callable

import hpack
import pytest

from fakes.translator.source import from_source
from headgate.gateway.proxy.http2 import frames as http2
from headgate.gateway.proxy.http2.decompression import HeaderList
from headgate.gateway.proxy.http2.flow import Flow

_source = from_source("headgate.gateway.proxy.http2.frame_writer", "headgate.gateway.proxy.http2.session")
ConnectionFault, Session = _source.ConnectionFault, _source.Session


class Recorded(Session):
    """Notes what it is told."""

    def __init__(self, *, is_client: bool = False) -> None:
        super().__init__(1000, is_client=is_client)
        self.told: list[tuple[object, ...]] = []

    def is_closed(self) -> bool:
        return False

    def take_request(self, stream_id: int, headers: HeaderList, *, done: bool) -> None:
        self.open(stream_id).peer_done = done
        self.told.append(("request", stream_id, headers, done))

    def take_answer(self, stream_id: int, flow: Flow, headers: HeaderList, *, done: bool) -> None:
        flow.has_head = True
        self.told.append(("answer", stream_id, headers, done))

    def take_trailers(self, stream_id: int, headers: HeaderList) -> None:
        self.told.append(("trailers", stream_id, headers))

    def take_data(self, stream_id: int, flow: Flow, payload: bytes, size: int, *, done: bool) -> None:
        self.told.append(("data", stream_id, payload, size, done))

    def take_reset(self, stream_id: int, code: int) -> None:
        self.told.append(("reset", stream_id, code))

    def take_window(self, stream_id: int) -> None:
        self.told.append(("window", stream_id))

    def take_settings(self) -> None:
        self.told.append(("settings",))

    def take_goaway(self, last_stream_id: int, code: int) -> None:
        self.told.append(("goaway", last_stream_id, code))

    def take_control(self, count: int = 1) -> None:
        self.told.append(("control", count) if count > 1 else ("control",))


def read(session: Session, data: bytes) -> None:
    """Have a session read all frames, in as many turns as it takes."""
    session.receive(data)
    while session.yields:
        session.begin_turn()
        session.receive(b"")


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream_id.to_bytes(4, "big") + payload


def settings(number: int, value: int) -> bytes:
    return frame(http2.SETTINGS, 0, 0, number.to_bytes(2, "big") + value.to_bytes(4, "big"))


def window(stream_id: int, size: int) -> bytes:
    return frame(http2.WINDOW_UPDATE, 0, stream_id, size.to_bytes(4, "big"))


GREETING = http2.PREFACE + frame(http2.SETTINGS, 0, 0)
BLOCK = hpack.Encoder().encode([(b":method", b"GET"), (b":path", b"/")])
GET = frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, 1, BLOCK)
POST = frame(http2.HEADERS, http2.END_HEADERS, 1, BLOCK)
TRAILERS = frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, 1, b"\x40\x01a\x01b")
BODY = frame(http2.DATA, 0, 1, b"body")
END = frame(http2.DATA, http2.END_STREAM, 1, b"end")
RESET = frame(http2.RST_STREAM, 0, 1, bytes(4))
SELF = (1).to_bytes(4, "big") + b"\x10"

CONNECTION_FAULTS: dict[str, tuple[bytes, int]] = {
    "another preface": (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", http2.PROTOCOL_ERROR),
    "no settings first": (http2.PREFACE + GET, http2.PROTOCOL_ERROR),
    "an acknowledgement first": (http2.PREFACE + frame(http2.SETTINGS, http2.ACK, 0), http2.PROTOCOL_ERROR),
    "a long frame": (GREETING + frame(http2.DATA, 0, 1, bytes(16_385)), http2.FRAME_SIZE_ERROR),
    "data on no stream": (GREETING + frame(http2.DATA, 0, 0, b"x"), http2.PROTOCOL_ERROR),
    "data on an idle stream": (GREETING + BODY, http2.PROTOCOL_ERROR),
    "data behind the end of both sides": (GREETING + GET + b"over" + BODY, http2.STREAM_CLOSED),
    "padding without its length": (GREETING + POST + frame(http2.DATA, http2.PADDED, 1), http2.PROTOCOL_ERROR),
    "padding of all": (GREETING + POST + frame(http2.DATA, http2.PADDED, 1, b"\1"), http2.PROTOCOL_ERROR),
    "a head on no stream": (GREETING + frame(http2.HEADERS, http2.END_HEADERS, 0, BLOCK), http2.PROTOCOL_ERROR),
    "a head on an even stream": (GREETING + frame(http2.HEADERS, http2.END_HEADERS, 2, BLOCK), http2.PROTOCOL_ERROR),
    "a head on an older stream": (
        GREETING
        + frame(http2.HEADERS, http2.END_HEADERS, 5, BLOCK)
        + frame(http2.HEADERS, http2.END_HEADERS, 3, BLOCK),
        http2.STREAM_CLOSED,
    ),
    "a head shorter than its priority": (
        GREETING + frame(http2.HEADERS, http2.HAS_PRIORITY | http2.END_HEADERS, 1, b"abc"),
        http2.FRAME_SIZE_ERROR,
    ),
    "a head that cannot be read": (
        GREETING + frame(http2.HEADERS, http2.END_HEADERS, 1, b"\x80"),
        http2.COMPRESSION_ERROR,
    ),
    "a head that is too long": (
        GREETING + frame(http2.HEADERS, http2.END_HEADERS, 1, b"\x82" * 100),
        http2.ENHANCE_YOUR_CALM,
    ),
    "a frame within a head": (GREETING + frame(http2.HEADERS, 0, 1, BLOCK) + BODY, http2.PROTOCOL_ERROR),
    "an unknown frame within a head": (
        GREETING + frame(http2.HEADERS, 0, 1, BLOCK) + frame(0xEE, 0, 1),
        http2.PROTOCOL_ERROR,
    ),
    "another stream's head within a head": (
        GREETING + frame(http2.HEADERS, 0, 1, BLOCK) + frame(http2.CONTINUATION, http2.END_HEADERS, 3),
        http2.PROTOCOL_ERROR,
    ),
    "a continuation of nothing": (GREETING + frame(http2.CONTINUATION, http2.END_HEADERS, 1), http2.PROTOCOL_ERROR),
    "a continuation behind a head": (
        GREETING + GET + frame(http2.CONTINUATION, http2.END_HEADERS, 1),
        http2.PROTOCOL_ERROR,
    ),
    "empty continuations without end": (
        GREETING + frame(http2.HEADERS, 0, 1, BLOCK) + frame(http2.CONTINUATION, 0, 1) * 65,
        http2.ENHANCE_YOUR_CALM,
    ),
    "long continuations without end": (
        GREETING + frame(http2.HEADERS, 0, 1, BLOCK) + frame(http2.CONTINUATION, 0, 1, bytes(999)),
        http2.ENHANCE_YOUR_CALM,
    ),
    "a priority on no stream": (GREETING + frame(http2.PRIORITY, 0, 0, bytes(5)), http2.PROTOCOL_ERROR),
    "a priority of another size": (GREETING + frame(http2.PRIORITY, 0, 1, bytes(4)), http2.FRAME_SIZE_ERROR),
    "an idle stream that depends on itself": (GREETING + frame(http2.PRIORITY, 0, 1, SELF), http2.PROTOCOL_ERROR),
    "a reset of no stream": (GREETING + frame(http2.RST_STREAM, 0, 0, bytes(4)), http2.PROTOCOL_ERROR),
    "a reset of an idle stream": (GREETING + RESET, http2.PROTOCOL_ERROR),
    "a reset of another size": (GREETING + GET + frame(http2.RST_STREAM, 0, 1, bytes(3)), http2.FRAME_SIZE_ERROR),
    "settings on a stream": (GREETING + frame(http2.SETTINGS, 0, 1), http2.PROTOCOL_ERROR),
    "settings of another size": (GREETING + frame(http2.SETTINGS, 0, 0, bytes(5)), http2.FRAME_SIZE_ERROR),
    "an acknowledgement with something": (
        GREETING + frame(http2.SETTINGS, http2.ACK, 0, bytes(6)),
        http2.FRAME_SIZE_ERROR,
    ),
    "a push setting out of range": (GREETING + settings(http2.ENABLE_PUSH, 2), http2.PROTOCOL_ERROR),
    "a window setting out of range": (
        GREETING + settings(http2.INITIAL_WINDOW_SIZE, 2**31),
        http2.FLOW_CONTROL_ERROR,
    ),
    "a window setting that is too much for a stream": (
        GREETING + GET + window(1, 2**31 - 1 - 65_535) + settings(http2.INITIAL_WINDOW_SIZE, 65_536),
        http2.FLOW_CONTROL_ERROR,
    ),
    "a frame setting below range": (GREETING + settings(http2.MAX_FRAME_SIZE, 16_383), http2.PROTOCOL_ERROR),
    "a frame setting above range": (GREETING + settings(http2.MAX_FRAME_SIZE, 2**24), http2.PROTOCOL_ERROR),
    "a connect setting out of range": (GREETING + settings(http2.ENABLE_CONNECT_PROTOCOL, 2), http2.PROTOCOL_ERROR),
    "a connect setting taken back": (
        GREETING + settings(http2.ENABLE_CONNECT_PROTOCOL, 1) + settings(http2.ENABLE_CONNECT_PROTOCOL, 0),
        http2.PROTOCOL_ERROR,
    ),
    "a promise": (GREETING + GET + frame(http2.PUSH_PROMISE, 4, 1, bytes(4)), http2.PROTOCOL_ERROR),
    "a ping on a stream": (GREETING + frame(http2.PING, 0, 1, bytes(8)), http2.PROTOCOL_ERROR),
    "a ping of another size": (GREETING + frame(http2.PING, 0, 0, bytes(7)), http2.FRAME_SIZE_ERROR),
    "a goaway on a stream": (GREETING + frame(http2.GOAWAY, 0, 1, bytes(8)), http2.PROTOCOL_ERROR),
    "a goaway that is too short": (GREETING + frame(http2.GOAWAY, 0, 0, bytes(7)), http2.FRAME_SIZE_ERROR),
    "a window of nothing": (GREETING + window(0, 0), http2.PROTOCOL_ERROR),
    "a window of another size": (GREETING + frame(http2.WINDOW_UPDATE, 0, 0, bytes(3)), http2.FRAME_SIZE_ERROR),
    "a window that is too much": (GREETING + window(0, 2**31 - 1), http2.FLOW_CONTROL_ERROR),
    "a window for an idle stream": (GREETING + window(1, 1), http2.PROTOCOL_ERROR),
}


def feed(session: Session, data: bytes) -> None:
    """Feed; `over` between frames stands for the end of our answer on stream 1."""
    before, _, behind = data.partition(b"over")
    read(session, before)
    if behind:
        del session.flows[1]
        read(session, behind)


@pytest.mark.parametrize(("data", "code"), CONNECTION_FAULTS.values(), ids=CONNECTION_FAULTS)
def test_what_breaks_a_connection(data: bytes, code: int) -> None:
    with pytest.raises(ConnectionFault) as raised:
        feed(Recorded(), data)
    assert raised.value.code == code


STREAM_FAULTS: dict[str, tuple[bytes, int]] = {
    "data behind the end": (GET + BODY, http2.STREAM_CLOSED),
    "a head behind the end": (GET + TRAILERS, http2.STREAM_CLOSED),
    "trailers that are not the end": (POST + frame(http2.HEADERS, http2.END_HEADERS, 1), http2.PROTOCOL_ERROR),
    "a head that depends on itself": (
        frame(http2.HEADERS, http2.END_HEADERS | http2.HAS_PRIORITY, 1, SELF + BLOCK),
        http2.PROTOCOL_ERROR,
    ),
    "a priority of an open stream on itself": (GET + frame(http2.PRIORITY, 0, 1, SELF), http2.PROTOCOL_ERROR),
    "a window of nothing": (GET + window(1, 0), http2.PROTOCOL_ERROR),
    "a window that is too much": (GET + window(1, 2**31 - 1), http2.FLOW_CONTROL_ERROR),
    "more data than its window": (POST + frame(http2.DATA, 0, 1, bytes(16_384)) * 17, http2.FLOW_CONTROL_ERROR),
}


@pytest.mark.parametrize(("data", "code"), STREAM_FAULTS.values(), ids=STREAM_FAULTS)
def test_what_breaks_a_stream_alone(data: bytes, code: int) -> None:
    session = Recorded()
    session.receive(GREETING)
    session.take_written()
    session.receive(data)
    assert session.told[-1] == ("reset", 1, code)
    assert session.take_written().endswith(frame(http2.RST_STREAM, 0, 1, code.to_bytes(4, "big")))
    assert session.flows == {}
    session.receive(frame(http2.HEADERS, http2.END_HEADERS, 3, BLOCK))
    assert session.told[-1][:2] == ("request", 3)


def test_frames_cut_anywhere_mean_the_same() -> None:
    head = frame(http2.HEADERS, 0, 1, BLOCK[:1]) + frame(http2.CONTINUATION, http2.END_HEADERS, 1, BLOCK[1:])
    padded = frame(http2.DATA, http2.PADDED, 1, b"\2body\0\0")
    data = GREETING + head + padded + TRAILERS + window(0, 7) + frame(http2.GOAWAY, 0, 0, bytes(7) + b"\2debug")
    whole, pieces = Recorded(), Recorded()
    whole.receive(data)
    for at in range(len(data)):
        pieces.receive(data[at : at + 1])
    assert whole.told == pieces.told
    assert whole.take_written() == pieces.take_written()
    assert whole.told[2:] == [
        ("request", 1, [(b":method", b"GET"), (b":path", b"/")], False),
        ("data", 1, b"body", 7, False),
        ("trailers", 1, [(b"a", b"b")]),
        ("window", 0),
        ("goaway", 0, 2),
    ]


@pytest.mark.parametrize("end", [lambda session: session.receive(RESET), lambda session: session.write_reset(1, 0)])
def test_frames_on_their_way_to_a_stream_that_was_reset_end_nothing_else(end: Callable[[Session], None]) -> None:
    session = Recorded()
    session.receive(GREETING + POST)
    end(session)
    told = len(session.told)
    session.receive(BODY + window(1, 1) + RESET + TRAILERS)
    assert session.told[told:] == [("control",)] * 4
    # The table of the compression has learned from the trailers.
    session.receive(frame(http2.HEADERS, http2.END_HEADERS, 3, b"\xbe"))
    assert session.told[-1] == ("request", 3, [(b"a", b"b")], False)


def test_data_that_nobody_wants_uses_no_window_up() -> None:
    session = Recorded()
    session.receive(GREETING + POST)
    session.write_reset(1, 0)
    for _ in range(1000):
        session.receive(frame(http2.DATA, 0, 1, bytes(16_384)))
        session.return_connection_window()


def test_more_than_the_window_of_the_connection_ends_it() -> None:
    session = Recorded()
    session.receive(GREETING + POST)
    session.write_reset(1, 0)
    with pytest.raises(ConnectionFault) as raised:
        read(session, frame(http2.DATA, 0, 1, bytes(16_384)) * 257)
    assert raised.value.code == http2.FLOW_CONTROL_ERROR


def test_a_smaller_window_holds_even_for_what_is_open() -> None:
    session = Recorded()
    session.receive(GREETING + GET + window(1, 10) + settings(http2.INITIAL_WINDOW_SIZE, 5))
    assert session.flows[1].window == 15
    session.write_data(1, session.flows[1], bytes(15), end=False)
    session.receive(settings(http2.INITIAL_WINDOW_SIZE, 0))
    assert session.flows[1].window == -5
    assert session.open(3).window == 0


def answered() -> Recorded:
    """A client that has asked on stream 1."""
    session = Recorded(is_client=True)
    session.receive(frame(http2.SETTINGS, 0, 0))
    session.next_id = 3
    session.open(1)
    return session


ANSWER_FAULTS: dict[str, tuple[bytes, int]] = {
    "a head of its own": (frame(http2.HEADERS, http2.END_HEADERS, 2, BLOCK), http2.PROTOCOL_ERROR),
    "a head on an idle stream": (frame(http2.HEADERS, http2.END_HEADERS, 3, BLOCK), http2.PROTOCOL_ERROR),
    "data on an idle stream": (frame(http2.DATA, 0, 3, b"x"), http2.PROTOCOL_ERROR),
    "a push setting": (settings(http2.ENABLE_PUSH, 1), http2.PROTOCOL_ERROR),
    "a promise": (frame(http2.PUSH_PROMISE, 4, 1, bytes(4)), http2.PROTOCOL_ERROR),
}


@pytest.mark.parametrize(("data", "code"), ANSWER_FAULTS.values(), ids=ANSWER_FAULTS)
def test_what_breaks_a_connection_to_an_endpoint(data: bytes, code: int) -> None:
    with pytest.raises(ConnectionFault) as raised:
        answered().receive(data)
    assert raised.value.code == code


def test_an_answer_begins_with_its_head() -> None:
    session = answered()
    session.receive(BODY)
    assert session.told[-1] == ("reset", 1, http2.PROTOCOL_ERROR)


def test_a_head_of_any_length_is_sent_in_frames_that_are_allowed() -> None:
    session = Recorded()
    for size in (0, 16_384, 16_385, 40_000):
        block = bytes(size)
        session.write_headers(1, block, end=True)
        written, found, kinds = session.take_written(), b"", []
        while written:
            length = int.from_bytes(written[:3], "big")
            kinds.append((written[3], written[4]))
            found += written[9 : 9 + length]
            written = written[9 + length :]
        assert found == block
        assert kinds[0][0] == http2.HEADERS
        assert all(kind == http2.CONTINUATION for kind, _ in kinds[1:])
        assert [bool(flags & http2.END_HEADERS) for _, flags in kinds] == [False] * (len(kinds) - 1) + [True]
        assert kinds[0][1] & http2.END_STREAM


def test_more_settings_than_32_in_a_frame_are_too_many() -> None:
    """CVE-2020-11080: each could move the windows of all streams."""
    session = Recorded()
    pair = http2.INITIAL_WINDOW_SIZE.to_bytes(2, "big") + bytes(4)
    session.receive(GREETING + frame(http2.SETTINGS, 0, 0, pair * 32))
    with pytest.raises(ConnectionFault) as fault:
        session.receive(frame(http2.SETTINGS, 0, 0, pair * 33))
    assert fault.value.code == http2.ENHANCE_YOUR_CALM


def test_settings_are_counted_by_entry() -> None:
    session = Recorded()
    pair = http2.INITIAL_WINDOW_SIZE.to_bytes(2, "big") + bytes(4)
    session.receive(GREETING + frame(http2.SETTINGS, 0, 0, pair * 32))
    assert session.told[-2:] == [("control", 32), ("settings",)]


def test_windows_move_once_by_what_a_frame_says_last() -> None:
    session = Recorded()
    session.receive(GREETING + POST)
    session.flows[1].window -= 1000
    largest, last = 2**31 - 1, 5000
    pairs = [http2.INITIAL_WINDOW_SIZE.to_bytes(2, "big") + size.to_bytes(4, "big") for size in (0, largest, last)]
    session.receive(frame(http2.SETTINGS, 0, 0, b"".join(pairs)))
    assert (session.peer_window, session.flows[1].window) == (last, last - 1000)


def test_frames_beyond_those_of_a_turn_wait() -> None:
    session = Recorded()
    many = _source.FRAMES_AT_ONCE
    session.receive(GREETING)
    session.told.clear()
    session.receive(window(0, 1) * (many + 10))
    assert session.yields
    assert len(session.told) == many - 1, "and one of the greeting"
    session.receive(window(0, 1))
    assert len(session.told) == many - 1
    session.begin_turn()
    session.receive(b"")
    assert not session.yields
    assert len(session.told) == many + 11
