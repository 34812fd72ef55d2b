"""`DirectParser`: messages of some subscriptions are given to functions, all others are nats-py's."""

from typing import Any

import pytest
from nats.errors import ProtocolError

from headgate.common.bus.direct import DirectParser

HEADERS = b"NATS/1.0\r\nA: 1\r\n\r\n"
OURS, THEIRS = 7, 8
Arrival = tuple[str, str, bytes, bytes]


class Recorder:
    """A client that notes what nats-py's parser has it do."""

    def __init__(self) -> None:
        self.stats = {"in_msgs": 0, "in_bytes": 0}
        self.done: list[Any] = []
        self.errors: list[Exception] = []
        self.parser = DirectParser(self)
        self.parser.receivers[OURS] = self.receive

    def receive(self, subject: str, reply: str, headers: bytes, payload: bytes) -> None:
        self.done.append((subject, reply, headers, payload))
        if payload == b"bad":
            raise ValueError(payload)

    async def _error_cb(self, error: Exception) -> None:
        self.errors.append(error)

    async def _process_ping(self) -> None:
        self.done.append("PING")

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        if receive := self.parser.receivers.get(sid):  # as `PatientClient` does
            await self.parser.give(receive, subject, reply, headers or b"", data)
        else:
            self.done.append((sid, subject, data))


def with_headers(subject: bytes, sid: int, reply: bytes, payload: bytes) -> bytes:
    size = len(HEADERS)
    return b"HMSG %s %d %s%d %d\r\n%s%s\r\n" % (subject, sid, reply, size, size + len(payload), HEADERS, payload)


CONVERSATION = b"".join(
    (
        with_headers(b"a", OURS, b"r ", b"one"),
        with_headers(b"b", OURS, b"", b""),
        b"MSG c 7 r.2 4\r\n\r\n\r\n\r\n",
        b"MSG d 7 2\r\nxy\r\n",
        b"PING\r\n",
        with_headers(b"e", THEIRS, b"", b"other"),
        b"+OK\r\n",
        with_headers(b"f", OURS, b"r ", b"z" * 5000),
        b"MSG g 8 1\r\nq\r\n",
        with_headers(b"h", OURS, b"r ", b"last"),
    )
)
HEARD: list[Any] = [
    ("a", "r", HEADERS, b"one"),
    ("b", "", HEADERS, b""),
    ("c", "r.2", b"", b"\r\n\r\n"),
    ("d", "", b"", b"xy"),
    "PING",
    (THEIRS, b"e", b"other"),
    ("f", "r", HEADERS, b"z" * 5000),
    (THEIRS, b"g", b"q"),
    ("h", "r", HEADERS, b"last"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 51, 52, 1000, 100_000])
async def test_a_conversation_is_the_same_in_pieces_of_any_size(size: int) -> None:
    client = Recorder()
    for at in range(0, len(CONVERSATION), size):
        await client.parser.parse(CONVERSATION[at : at + size])
    assert client.done == HEARD
    assert client.stats == {"in_msgs": 6, "in_bytes": 3 + 4 + 2 + 5000 + 4}


@pytest.mark.parametrize("cut", range(1, 120))
async def test_a_conversation_is_the_same_wherever_it_is_cut(cut: int) -> None:
    client = Recorder()
    await client.parser.parse(CONVERSATION[:cut])
    await client.parser.parse(CONVERSATION[cut:])
    assert client.done == HEARD


async def test_without_such_subscriptions_all_is_left_to_nats_py() -> None:
    client = Recorder()
    client.parser.receivers.clear()
    await client.parser.parse(CONVERSATION)
    assert [each for each in client.done if each == "PING" or each[0] == THEIRS] == [HEARD[4], HEARD[5], HEARD[7]]
    assert len(client.done) == len(HEARD)


async def test_an_error_of_a_function_is_told_and_ends_nothing() -> None:
    client = Recorder()
    await client.parser.parse(b"MSG a 7 3\r\nbad\r\nMSG \xff 7 1\r\nx\r\nMSG b 7 1\r\ny\r\n")
    assert client.done == [("a", "", b"", b"bad"), ("b", "", b"", b"y")]
    assert [type(error) for error in client.errors] == [ValueError, UnicodeDecodeError]


@pytest.mark.parametrize("line", [b"\r\n", b"MSG\r\n", b"MSG a x 1\r\n", b"HMSG a 7 1\r\n", b"NONE\r\n"])
async def test_what_is_no_protocol_is_refused(line: bytes) -> None:
    client = Recorder()
    with pytest.raises(ProtocolError):
        await client.parser.parse(b"MSG b 7 1\r\ny\r\n" + line)
    assert client.done == [("b", "", b"", b"y")]


async def test_a_connection_that_is_made_again_begins_with_nothing() -> None:
    client = Recorder()
    await client.parser.parse(CONVERSATION[:60])
    client.parser.reset()
    await client.parser.parse(CONVERSATION)
    assert client.done[-len(HEARD) :] == HEARD
