"""What must hold for any bytes that a client sends on an HTTP/2 connection; raises what is wrong."""

import asyncio
from collections.abc import Collection
from typing import Any

import hyperframe.frame

from fakes.gateway.proxied import AnyRouter, RecordedLog, Target
from headgate.gateway.proxy.clock import Clock
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.proxy.http2.server import Http2Connection
from headgate.gateway.proxy.outbox import Outbox
from headgate.gateway.proxy.peer import Peer
from headgate.gateway.proxy.policies import RoutePolicies
from headgate.gateway.proxy.request_source import RequestSource
from headgate.gateway.proxy.seam import RouterHolder
from headgate.gateway.proxy.stats import ProxyStats

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
CONFIG = ProxyConfig(max_head=4096, max_target=1024, max_body=10_000, max_streams=8)
MOST_WRITTEN = 1 << 20


class Sink(asyncio.Transport):
    """A transport that takes everything and keeps it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_closed = False

    def write(self, data: Any) -> None:
        assert not self.is_closed
        self.written += data

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def can_write_eof(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Nowhere(Target):
    """A route whose requests are held back as a whole, and then have no endpoint."""

    def choose(self, tried: Collection[EndpointPool], source: RequestSource) -> EndpointPool | None:
        return None


def check_http2(data: bytes) -> None:
    """Frames in any state end in answers and frames that are whole, and leave nothing behind."""
    asyncio.run(_check(data))


async def _check(data: bytes) -> None:
    target = Nowhere([])
    target.policies = RoutePolicies()
    target.policies.buffer_request = True
    outbox, log = Outbox(), RecordedLog()
    context = ProxyContext(RouterHolder(AnyRouter(target)), CONFIG, ProxyStats(), log, Clock(1.0), outbox)
    connection, sink = Http2Connection(context, Peer(b"127.0.0.1", b"http", b"80")), Sink()
    connection.connection_made(sink)
    half = len(data) // 2
    for piece in (PREFACE, data[:half], data[half:]):
        if not sink.is_closed:
            connection.data_received(piece)
            await asyncio.sleep(0)
    begun = len(log.records) + len(connection.flows)
    connection.timed_out()
    connection.connection_lost(None)
    assert not connection.flows
    assert not context.connections
    assert len(log.records) <= begun
    assert len(sink.written) < MOST_WRITTEN
    _read_frames(memoryview(bytes(sink.written)))


def _read_frames(written: memoryview) -> None:
    while written:
        frame, size = hyperframe.frame.Frame.parse_frame_header(written[:9], strict=True)
        assert size <= 16_384
        frame.parse_body(written[9 : 9 + size])
        assert len(written) >= 9 + size
        written = written[9 + size :]


CHECKS = {"http2": check_http2}
