"""Messages given to functions as they are parsed, on a real server."""

import asyncio
from collections.abc import Callable

from fakes.stores.nats import real_bus
from fakes.waiting import until
from headgate.common.bus.connection import Bus
from headgate.common.bus.encoded import EncodedMessage, decode_headers, encode_headers

COUNT = 2000


class Heard:
    """What a function was given."""

    def __init__(self, fails_at: int = -1) -> None:
        self.numbers: list[int] = []
        self._fails_at = fails_at

    def receive(self, subject: str, _reply: str, headers: bytes, payload: bytes) -> None:
        number = int(decode_headers(headers)["Number"])
        assert (subject, payload) == (f"piece.{number % 3}", b"x" * number)
        self.numbers.append(number)
        if number == self._fails_at:
            raise ValueError(number)


async def publish(bus: Bus, count: int = COUNT) -> None:
    await bus.publish_encoded(
        [
            EncodedMessage(f"piece.{number % 3}", encode_headers({"Number": str(number)}), b"x" * number)
            for number in range(count)
        ]
    )


async def test_all_arrive_in_order_beside_an_ordinary_subscription() -> None:
    async with real_bus() as (_, bus):
        direct, ordinary, before = Heard(), await bus.nc.subscribe("piece.1"), bus.nc.stats["in_msgs"]
        await bus.subscribe_directly("piece.*", direct.receive)
        await publish(bus)
        await until(lambda: len(direct.numbers) == COUNT)
        assert direct.numbers == list(range(COUNT))
        for number in range(1, COUNT, 3):
            assert len((await ordinary.next_msg(timeout=10)).data) == number
        assert bus.nc.stats["in_msgs"] == before + COUNT + ordinary.delivered


async def test_an_error_costs_one_message() -> None:
    async with real_bus() as (_, bus):
        heard = Heard(fails_at=5)
        await bus.subscribe_directly("piece.*", heard.receive)
        await publish(bus, 10)
        await until(lambda: heard.numbers == list(range(10)))


async def test_nothing_comes_after_the_end_and_all_after_a_reconnection() -> None:
    async with real_bus() as (server, bus):
        ended, going_on = Heard(), Heard()
        subscription = await bus.subscribe_directly("piece.*", ended.receive)
        await bus.subscribe_directly("piece.*", going_on.receive)
        await subscription.unsubscribe()
        reconnected = asyncio.Event()
        forget: Callable[[], None] = bus.on_reconnect(reconnected.set)
        await server.kill()
        await server.start()
        await asyncio.wait_for(reconnected.wait(), 20)
        forget()
        await publish(bus, 10)
        await until(lambda: going_on.numbers == list(range(10)))
        assert ended.numbers == []
