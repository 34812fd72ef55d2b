"""What came of a request's body and is at hand."""

from headgate.gateway.proxy.exchange.buffers import body_budget
from headgate.gateway.proxy.exchange.request_body import RequestBody


def test_pieces_are_at_hand_in_their_order_for_as_long_as_they_are_kept() -> None:
    body = RequestBody(body_budget(1000))
    body.start(b"a", b"")
    for piece in (b"b", b"", b"cd"):
        body.keep(piece)
    assert (body.at_hand(), body.size) == (b"abcd", 4)
    body.keep(b"e")
    assert (body.at_hand(), body.at_hand(), body.size) == (b"abcde", b"abcde", 5)
    body.drop()
    assert (body.at_hand(), body.size) == (b"", 0)


def test_what_replaces_a_body_is_all_that_is_at_hand() -> None:
    body = RequestBody(body_budget(1000))
    body.start(b"a", b"")
    body.keep(b"b")
    body.replace(b"xyz")
    assert (body.at_hand(), body.size) == (b"xyz", 3)


def test_the_next_request_begins_without_what_held_for_the_last() -> None:
    body = RequestBody(body_budget(1000))
    body.start(b"a", b"X: 1\r\n")
    body.hold(10, passes_on=True)
    body.is_kept, body.is_replaced, body.limit = False, True, 5
    body.begin()
    assert (body.is_held, body.is_kept, body.is_replaced, body.limit, body.received) == (False, True, False, -1, 0)
    assert not body.passes_on
