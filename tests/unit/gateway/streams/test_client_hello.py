"""Server names read from what real clients send, from fragments, and one byte off the grammar."""

import pytest

from fakes.peers.client_hello import alpn, extension, message, real_hello, records, server_name
from headgate.gateway.tls.client_hello import MAX_HELLO, ClientHello, HelloOutcome, read_client_hello


def test_name_and_protocols_of_a_real_client() -> None:
    hello = real_hello("Foo.Example.com", ["h2", "http/1.1"])
    assert read_client_hello(hello) == ClientHello("foo.example.com", (b"h2", b"http/1.1"))


def test_a_client_may_name_nothing() -> None:
    assert read_client_hello(real_hello()) == ClientHello("", ())
    assert read_client_hello(records(message())) == ClientHello("", ())


def test_every_beginning_needs_more_and_what_follows_does_not_matter() -> None:
    hello = real_hello("a.b")
    assert all(read_client_hello(hello[:size]) is HelloOutcome.NEED_MORE for size in range(len(hello)))
    assert read_client_hello(hello + b"\x17\x03") == ClientHello("a.b", ())


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64])
def test_a_hello_may_be_spread_over_records(size: int) -> None:
    hello = records(message(alpn(b"h2"), server_name(b"a.b")), size)
    assert read_client_hello(hello) == ClientHello("a.b", (b"h2",))
    assert all(read_client_hello(hello[:end]) is HelloOutcome.NEED_MORE for end in range(len(hello)))


def test_a_trailing_dot_and_names_of_other_kinds_do_not_count() -> None:
    assert read_client_hello(records(message(server_name(b"A.B.")))) == ClientHello("a.b", ())
    assert read_client_hello(records(message(server_name(b"\xff", kind=7)))) == ClientHello("", ())


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        b"\x15\x03\x01\x00\x02\x02\x28",
        b"\x16\x02",
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\x40\x01",
        records(b"\x02" + message()[1:]),
        records(b"\x01\x00\x40\x01"),
        records(message()[:10] + b"\x01")[:5] + b"\x01\x00\x00\x01\x03" + b"\0" * 9,
        records(message(ciphers=b"")),
        records(message(server_name(b"a"), behind=b"x")),
        records(message(server_name(b"a"), server_name(b"a"))),
        records(message(server_name(b"a", b"b"))),
        records(message(server_name(b""))),
        records(message(server_name(b"a\0b"))),
        records(message(server_name(b"a" * 256))),
        records(message(extension(0, b"\0\0"))),
        records(message(extension(0, b"\0\5\0\0\1ab"))),
        records(message(alpn())),
        records(message(alpn(b""))),
    ],
)
def test_what_breaks_the_grammar_is_no_hello(data: bytes) -> None:
    assert read_client_hello(data) is HelloOutcome.NOT_TLS


def test_a_hello_that_never_ends_is_given_up() -> None:
    endless = records(message(extension(21, bytes(20_000))), 1)
    assert read_client_hello(endless[: MAX_HELLO - 1]) is HelloOutcome.NOT_TLS
    slow = records(message(extension(21, bytes(16_000))), 1)
    assert read_client_hello(slow[: MAX_HELLO - 1]) is HelloOutcome.NEED_MORE
    assert read_client_hello(slow[:MAX_HELLO]) is HelloOutcome.NOT_TLS
