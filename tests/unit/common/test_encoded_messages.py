"""Messages as they go over the wire."""

import pytest

from headgate.common.bus.encoded import EncodedMessage, encode_headers, message_size


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
