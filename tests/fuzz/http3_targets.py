"""What must hold for whatever comes on the streams of an HTTP/3 connection; raises what is wrong."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from fakes.gateway.proxied import AnyRouter, RecordedLog
from fuzz.http2_targets import CONFIG, MOST_WRITTEN, Nowhere
from headgate.gateway.proxy.clock import Clock
from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.http3.numbers import read_integer
from headgate.gateway.proxy.http3.server import Http3Connection
from headgate.gateway.proxy.outbox import Outbox
from headgate.gateway.proxy.peer import Peer
from headgate.gateway.proxy.policies import RoutePolicies
from headgate.gateway.proxy.seam import RouterHolder
from headgate.gateway.proxy.stats import ProxyStats

CONTROL = 3


class Came(NamedTuple):
    """What came on a stream: bytes and perhaps its end, or that it was reset, or that nothing more is wanted of it."""

    stream_id: int
    data: bytes = b""
    end: bool = False
    kind: str = "data"


class RecordedLink:
    """A QUIC connection that takes everything, and refuses what QUIC would not send."""

    def __init__(self) -> None:
        self.sent: dict[int, bytearray] = {}
        self.over: set[int] = set()
        self.closed: int | None = None

    def serves(self, host: bytes) -> bool:
        return host != b"elsewhere"

    def open_control(self, data: bytes) -> int:
        self.send(CONTROL, data, end=False)
        return CONTROL

    def send(self, stream_id: int, data: bytes, *, end: bool) -> None:
        assert self.closed is None
        assert stream_id not in self.over, "sent behind the end"
        self.sent.setdefault(stream_id, bytearray()).extend(data)
        if end:
            self.over.add(stream_id)

    def flush(self) -> None:
        pass

    def unsent(self, stream_id: int) -> int:
        return 0

    def reset(self, stream_id: int, code: int) -> None:
        assert self.closed is None
        self.over.add(stream_id)
        self.sent.pop(stream_id, None)

    def stop(self, stream_id: int, code: int) -> None:
        assert self.closed is None

    def resume(self) -> None:
        pass

    def end(self, code: int, reason: str) -> None:
        assert self.closed is None
        self.closed = code


def check_http3(came: Sequence[Came]) -> None:
    """Frames in any state end in answers and frames that are whole, and leave nothing behind."""
    asyncio.run(_check(came))


async def _check(came: Sequence[Came]) -> None:
    target = Nowhere([])
    target.policies = RoutePolicies()
    target.policies.buffer_request = True
    log, link = RecordedLog(), RecordedLink()
    context = ProxyContext(RouterHolder(AnyRouter(target)), CONFIG, ProxyStats(), log, Clock(1.0), Outbox())
    connection = Http3Connection(context, Peer(b"127.0.0.1", b"https", b"443"), link)
    connection.start()
    ended: set[int] = set()
    for each in came:
        if each.stream_id in ended:
            continue  # QUIC would refuse it
        if each.kind == "reset":
            ended.add(each.stream_id)
            connection.stream_reset(each.stream_id)
        elif each.kind == "stop":
            link.over.add(each.stream_id)
            link.sent.pop(each.stream_id, None)
            connection.stop_sending(each.stream_id)
        else:
            if each.end:
                ended.add(each.stream_id)
            connection.stream_data(each.stream_id, each.data, end=each.end)
        await asyncio.sleep(0)
    connection.timed_out()
    connection.lost()
    assert not context.connections
    assert not connection.is_full
    assert len(log.records) <= len({each.stream_id for each in came})
    assert sum(map(len, link.sent.values())) < MOST_WRITTEN
    for stream_id, written in link.sent.items():
        _read_frames(bytes(written[1:] if stream_id == CONTROL else written))


def _read_frames(written: bytes) -> None:
    at = 0
    while at < len(written):
        _, after = read_integer(written, at)
        length, begins = read_integer(written, after)
        assert begins > 0
        at = begins + length
        assert at <= len(written)
