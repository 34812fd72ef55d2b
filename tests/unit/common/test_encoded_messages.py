"""Messages as they go over the wire."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nats.aio.client import Client

from headgate.common.bus.encoded import EncodedMessage, decode_headers, encode_headers, message_size


def test_a_message_is_what_the_protocol_has_for_it() -> None:
    lines = encode_headers({"A": "1", "B": "ü"})
    written = EncodedMessage("s.x", lines, b"body").command()
    headers = "NATS/1.0\r\nA: 1\r\nB: ü\r\n\r\n".encode()
    assert written == b"HPUB s.x %d %d\r\n%bbody\r\n" % (len(headers), len(headers) + 4, headers)
    assert message_size(lines, b"body") == len(headers) + 4


@pytest.mark.parametrize("value", ["1\r\nB: 2", "1\nB: 2", "1\rB: 2", "1\r\n\r\nbody"])
def test_a_value_never_makes_a_header_of_its_own(value: str) -> None:
    lines = encode_headers({"A": value, "C": "3"}).decode().split("\r\n")
    assert lines == [f"A: {value.replace(chr(13), ' ').replace(chr(10), ' ')}", "C: 3", ""]


LINES = st.lists(st.sampled_from(["A: 1", "A:2", "b :\t x", " C: ü", "D:", "no colon", "e: a: b"]), min_size=1)
STATUS = st.sampled_from(["", " 100 Idle Heartbeat", " 409 Consumer Deleted"])


@given(status=STATUS, lines=LINES)
@example(status=" 503", lines=[])
async def test_headers_are_read_as_nats_py_reads_them(status: str, lines: list[str]) -> None:
    block = "".join(f"{line}\r\n" for line in (f"NATS/1.0{status}", *lines, "")).encode()
    theirs = await Client()._process_headers(block)  # noqa: SLF001 - what we stand in for
    assert decode_headers(block) == (theirs or {})


def test_headers_that_are_no_text_are_no_error() -> None:
    assert decode_headers(b"NATS/1.0\r\nA: \xff\r\n\r\n") == {"A": "\ufffd"}


def test_what_was_encoded_is_decoded() -> None:
    headers = {"A": "1", "Nats-Msg-Id": "c/u: 1/apply"}
    assert decode_headers(b"NATS/1.0\r\n" + encode_headers(headers) + b"\r\n") == headers
