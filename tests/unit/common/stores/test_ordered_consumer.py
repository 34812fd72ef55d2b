"""`OrderedConsumer`: what counts as everything."""

import asyncio
from collections.abc import Callable

import pytest

from headgate.common.bus.direct import Receive
from headgate.common.stores.nats.following import Interrupted, OrderedConsumer

SPOKEN: dict[str, str] = {
    "idle": "100 Idle Heartbeat\r\n",
    "held back": "100 Idle Heartbeat\r\nNats-Consumer-Stalled: inbox.more\r\n",
}


class ScriptedStream:
    """A stream whose server says what a test wants: subjects with what is pending behind them, or control messages."""

    def __init__(self, waiting: int, *script: tuple[str, int] | str) -> None:
        self.bus = self.nc = self
        self.is_connected = True
        self._waiting, self._script = waiting, script
        self.answered: list[str] = []
        self._receive: Receive

    def on_disturbance(self, _act: object) -> Callable[[], None]:
        return lambda: None

    def new_inbox(self) -> str:
        return "inbox.1"

    async def subscribe_directly(self, _inbox: str, receive: Receive) -> None:
        self._receive = receive

    async def publish(self, subject: str) -> None:
        self.answered.append(subject)

    async def create_consumer(self, *_about: object) -> dict[str, int]:
        self._speaking = asyncio.create_task(self._speak())
        return {"num_pending": self._waiting}

    async def _speak(self) -> None:
        delivered = 0
        for said in self._script:
            await asyncio.sleep(0.01)
            if isinstance(said, str):
                headers = f"NATS/1.0 {SPOKEN[said]}Nats-Last-Consumer: {delivered}\r\n\r\n"
                self._receive("inbox.1", "", headers.encode(), b"")
                continue
            delivered += 1
            reply = f"$JS.ACK.S.C.1.{delivered}.{delivered}.1000.{said[1]}"
            self._receive(said[0], reply, b"", b"")


async def subjects(stream: ScriptedStream) -> list[str]:
    consumer = OrderedConsumer(stream, [">"])  # type: ignore[arg-type]
    async with asyncio.timeout(2):
        return [message.subject async for batch in consumer.read(None) for message in batch]


async def test_what_was_replaced_meanwhile_is_waited_for() -> None:
    """Of three, `a` was published again before its turn came, and `b` as well: three messages are not all subjects."""
    stream = ScriptedStream(3, ("b", 3), ("c", 2), ("b", 1), ("a", 0))
    assert await subjects(stream) == ["b", "c", "b", "a"]


async def test_what_expired_meanwhile_is_not_waited_for() -> None:
    assert await subjects(ScriptedStream(3, ("b", 2), "idle")) == ["b"]
    assert await subjects(ScriptedStream(3, "idle")) == []


async def test_a_consumer_that_is_held_back_has_more() -> None:
    stream = ScriptedStream(2, ("a", 1), "held back", ("b", 0))
    assert await subjects(stream) == ["a", "b"]
    assert stream.answered == ["inbox.more"]


async def test_an_empty_stream_is_read_at_once() -> None:
    assert await subjects(ScriptedStream(0)) == []


async def test_a_consumer_that_is_gone_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SPOKEN, "idle", "409 Consumer Deleted\r\n")
    with pytest.raises(Interrupted, match="Consumer Deleted"):
        await subjects(ScriptedStream(2, ("a", 1), "idle"))
