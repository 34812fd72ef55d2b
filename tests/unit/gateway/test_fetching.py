"""Chunks of a revision come while those before are compiled, and nothing is left under way when that ends early."""

import asyncio
import gc
from collections.abc import Sequence
from typing import Any

import pytest

from fakes.gateway.following import Gateway, Shakable
from fakes.gateway.table import host, publish, route
from fakes.stores.chunks import StoredChunks
from headgate.common.errors import DecodeError, StoreUnavailable
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import ChunkName, Manifest, open_chunk
from headgate.common.table_image import TableImage

AT_ONCE = 3


@pytest.fixture(autouse=True)
def _few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.gateway.following.apply.FETCHES_AT_ONCE", AT_ONCE)


class Fetching:
    """A table of some groups of chunks, and what was asked for and opened of them, in order."""

    def __init__(self) -> None:
        image = TableImage(host(f"n{number}.example", route("/", "prefix", "up")) for number in range(600))
        made, chunks = publish(image, (1, 1))
        self.manifest: Manifest = made
        self._stored = StoredChunks(chunks)
        self.events: list[tuple[str, int]] = []
        self.asked = self.opened = self.left = 0
        self.fails: dict[int, Exception] = {}
        """By number of the request."""
        self.hangs_at = -1

    async def fetch(self, names: Sequence[ChunkName]) -> Sequence[bytes]:
        assert len(names) <= AT_ONCE
        number = self.asked
        self.asked += 1
        self.events.append(("ask", number))
        try:
            await asyncio.sleep(0)
            if number in self.fails:
                raise self.fails[number]
            if number == self.hangs_at:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.left += 1
            await asyncio.sleep(0)  # as a request does that gives up
            self.left -= 1
            self.events.append(("give up", number))
            raise
        return await self._stored.get_chunks(names)

    def open(self, name: ChunkName, stored: bytes) -> bytes:
        self.events.append(("open", self.opened))
        self.opened += 1
        return open_chunk(name, stored)


@pytest.fixture
def fetching() -> Fetching:
    return Fetching()


async def test_the_next_chunks_are_asked_for_before_those_at_hand_are_compiled(fetching: Fetching) -> None:
    gateway = Gateway(Shakable())
    await gateway.applier.apply(fetching.manifest, fetching.fetch, fetching.open)
    assert gateway.served() == "1.1"
    count = len(fetching.manifest.chunks)
    assert fetching.opened == count
    assert fetching.asked == -(-count // AT_ONCE) > 3
    for number in range(1, fetching.asked):
        asked = fetching.events.index(("ask", number))
        opened = sum(kind == "open" for kind, _ in fetching.events[:asked])
        assert (number - 1) * AT_ONCE <= opened < number * AT_ONCE  # one request ahead, and no more


async def test_the_first_error_is_raised_and_the_next_request_is_given_up(
    fetching: Fetching, caplog: pytest.LogCaptureFixture
) -> None:
    gateway, before = Gateway(Shakable()), asyncio.all_tasks()
    fetching.hangs_at = 2

    def damaged(name: ChunkName, stored: bytes) -> bytes:
        if fetching.opened == AT_ONCE + 1:
            raise DecodeError("damaged")
        return fetching.open(name, stored)

    with pytest.raises(DecodeError, match="damaged"):
        await gateway.applier.apply(fetching.manifest, fetching.fetch, damaged)
    assert fetching.events[-1] == ("give up", 2)
    assert asyncio.all_tasks() == before
    assert gateway.served() is None
    await gateway.applier.apply(fetching.manifest, fetching.fetch)
    assert gateway.served() == "1.1"


async def test_an_error_of_a_request_comes_in_its_turn(fetching: Fetching) -> None:
    gateway = Gateway(Shakable())
    fetching.fails = {1: StoreUnavailable("the second"), 2: StoreUnavailable("the third")}
    with pytest.raises(StoreUnavailable, match="the second"):
        await gateway.applier.apply(fetching.manifest, fetching.fetch, fetching.open)
    assert (fetching.asked, fetching.opened) == (2, AT_ONCE)


async def test_no_complaint_is_made_of_a_request_that_failed_behind_another_error(fetching: Fetching) -> None:
    gateway, complaints = Gateway(Shakable()), list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    fetching.fails = {1: StoreUnavailable("away")}

    def damaged(name: ChunkName, stored: bytes) -> bytes:
        return fetching.open(name, stored) if fetching.opened < AT_ONCE - 1 else b"no entries"

    with pytest.raises(DecodeError, match="not a JSON array"):
        await gateway.applier.apply(fetching.manifest, fetching.fetch, damaged)
    assert fetching.asked == 2
    gc.collect()
    assert complaints == []


@pytest.mark.parametrize("turns", [1, 2, 3, 5, 8, 13, 21, 34])
async def test_a_cancelled_update_leaves_no_request_under_way(fetching: Fetching, turns: int) -> None:
    gateway, before = Gateway(Shakable()), asyncio.all_tasks()
    fetching.hangs_at = 3
    applying = asyncio.create_task(gateway.applier.apply(fetching.manifest, fetching.fetch, fetching.open))
    for _ in range(turns):
        await asyncio.sleep(0)
    await cancel(applying)
    assert applying.cancelled()
    assert asyncio.all_tasks() == before
    assert fetching.left == 0
    assert gateway.served() is None
