"""Streams of one direction that clients open, and what is kept of them."""

import gc

from headgate.gateway.proxy.http3.client_streams import ClientStream, ClientStreams

UNKNOWN = b"\x21"


def kept() -> int:
    return sum(isinstance(each, ClientStream) for each in gc.get_objects())


def test_nothing_is_kept_of_streams_that_mean_nothing() -> None:
    streams, before = ClientStreams(), kept()
    assert not any(streams.take(2 + 4 * number, UNKNOWN, end=bool(number % 2)) for number in range(100))
    assert kept() - before < 10
