"""Many messages published in one piece, on a real server."""

import nats.errors
import pytest

from fakes.stores.nats import real_bus
from fakes.waiting import until
from headgate.common.bus.encoded import EncodedMessage, encode_headers

COUNT = 2000


def message(number: int) -> EncodedMessage:
    return EncodedMessage(f"piece.{number % 3}", encode_headers({"Number": str(number)}), b"x" * number)


async def test_messages_arrive_as_they_were_given() -> None:
    async with real_bus() as (_, bus):
        heard = await bus.nc.subscribe("piece.*")
        before = bus.nc.stats["out_msgs"]
        await bus.publish_encoded([message(number) for number in range(COUNT)])
        assert bus.nc.stats["out_msgs"] == before + COUNT
        for number in range(COUNT):
            found = await heard.next_msg(timeout=10)
            assert (found.subject, found.headers) == (f"piece.{number % 3}", {"Number": str(number)})
            assert found.data == b"x" * number


async def test_what_is_published_while_the_server_is_away_is_sent_later_if_it_is_little() -> None:
    async with real_bus() as (server, bus):
        heard = await bus.nc.subscribe("piece.*")
        await server.kill()
        await until(lambda: not bus.is_connected)
        await bus.publish_encoded([message(1)])
        large = EncodedMessage("piece.0", b"", b"x" * 1024 * 1024)
        with pytest.raises(nats.errors.OutboundBufferLimitError):
            await bus.publish_encoded([large] * 17)
        await server.start()
        assert (await heard.next_msg(timeout=20)).data == b"x"


async def test_a_bus_that_is_closed_takes_nothing() -> None:
    async with real_bus() as (_, bus):
        await bus.close()
        with pytest.raises(nats.errors.ConnectionClosedError):
            await bus.publish_encoded([message(1)])
