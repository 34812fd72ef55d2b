"""How statuses reach the board: many together, the urgent first, and none held back by another."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.errors import NotPermitted, StoreError
from headgate.common.resources import ObjectRef
from headgate.common.status import EncodedStatus, StatusUpdate
from headgate.common.stores.memory.boards import MemoryStatusBoard
from headgate.translator.status import poster
from headgate.translator.status.desired import DesiredStatus, to_update
from headgate.translator.status.poster import StatusPoster

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
Poster = StatusPoster[str]


class Board(MemoryStatusBoard):
    """A board that does not take the statuses of some objects, and notes what came together."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: set[str] = set()
        self.batches: list[list[str]] = []
        self.forgotten: list[list[str]] = []

    async def post(self, *updates: StatusUpdate) -> Sequence[bytes | StoreError]:
        self.batches.append([update.ref.name for update in updates])
        await super().post(*(update for update in updates if update.ref.name not in self.refused))
        return [NotPermitted("no") if each.ref.name in self.refused else each.encode() for each in updates]

    async def forget(self, *updates: StatusUpdate) -> Sequence[bytes | StoreError]:
        self.forgotten.append([update.ref.name for update in updates])
        return await super().forget(*updates)

    @property
    def contents(self) -> dict[str, str]:
        return {update.ref.name: update.content for _, update in self.updates.values()}


def ref(name: str) -> ObjectRef:
    return ObjectRef("c1", "networking.k8s.io", "ingresses", "default", name)


def desired(of: ObjectRef, content: str) -> DesiredStatus:
    known: dict[str, Any] = {"api_version": "networking.k8s.io/v1", "kind": "Ingress", "uid": "u", "generation": 1}
    empty: dict[str, Any] = {"addresses": None, "withdrawn": (), "conditions": (), "stand_in": None, "problems": ()}
    return DesiredStatus(ref=of, is_accepted=False, content=content, revision=None, **known, **empty)


def desire(of: ObjectRef, wish: str, _: DesiredStatus | None) -> DesiredStatus | None:
    return desired(of, wish) if wish else None


async def take(_: Iterable[ObjectRef]) -> None:
    return


@asynccontextmanager
async def posting(board: MemoryStatusBoard, **options: Any) -> AsyncIterator[Poster]:
    made = StatusPoster(board, "default", options.pop("desire", desire), take, **options)
    made.watch("c1")
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()


def want(made: Poster, names: Iterable[str], wish: str = "one") -> None:
    for name in names:
        made.want(ref(name), wish)


def many(count: int) -> list[str]:
    return [f"i{number}" for number in range(count)]


@in_virtual_time
async def test_many_statuses_are_posted_together_and_never_more_than_a_batch() -> None:
    board = Board()
    async with posting(board) as made:
        want(made, many(2 * poster.BATCH + 10))
        await until(lambda: not made.pending)
    assert [len(batch) for batch in board.batches] == [poster.BATCH, poster.BATCH, 10]
    assert board.contents == dict.fromkeys(many(2 * poster.BATCH + 10), "one")


@in_virtual_time
async def test_a_refused_status_holds_no_other_back_and_is_tried_again() -> None:
    board = Board()
    board.refused = {"i0", "i7"}
    async with posting(board) as made:
        want(made, many(3 * poster.BATCH))
        await until(lambda: made.pending == 2)
        await asyncio.sleep(60)
        assert {*board.batches[-1]} == board.refused
        assert len(board.batches) > 10
        assert board.contents.keys() == {*many(3 * poster.BATCH)} - board.refused
        board.refused.clear()
        await until(lambda: not made.pending)
    assert board.contents.keys() == {*many(3 * poster.BATCH)}


@in_virtual_time
async def test_a_board_that_takes_nothing_is_asked_for_one_batch_at_a_time(caplog: pytest.LogCaptureFixture) -> None:
    board = Board()
    board.refused = {*many(4 * poster.BATCH)}
    async with posting(board) as made:
        want(made, board.refused)
        await until(lambda: len(board.batches) == 3)
        assert caplog.text.count("statuses wait") == 3
        assert len({name for batch in board.batches for name in batch}) == 3 * poster.BATCH
        board.refused.clear()
        await until(lambda: not made.pending)


@in_virtual_time
async def test_a_new_wish_for_a_refused_object_is_tried_at_once() -> None:
    board = Board()
    board.refused = {"a"}
    async with posting(board) as made:
        want(made, ["a", "b"])
        await until(lambda: made.pending == 1)
        board.refused.clear()
        want(made, ["a"], "two")
        await until(lambda: not made.pending)
    assert board.contents == {"a": "two", "b": "one"}


@in_virtual_time
async def test_an_object_that_changes_while_its_status_is_on_its_way_is_posted_again() -> None:
    slowly = asyncio.Event()

    class Slow(Board):
        async def post(self, *updates: StatusUpdate) -> Sequence[bytes | StoreError]:
            answers = await super().post(*updates)
            await slowly.wait()
            return answers

    board = Slow()
    async with posting(board) as made:
        want(made, ["a", "b"])
        await until(lambda: board.batches)
        want(made, ["a"], "two")
        slowly.set()
        await until(lambda: not made.pending)
    assert board.contents == {"a": "two", "b": "one"}
    assert board.batches == [["a", "b"], ["a"]]


@in_virtual_time
async def test_objects_that_are_gone_are_forgotten_together() -> None:
    board = Board()
    async with posting(board) as made:
        want(made, many(20))
        await until(lambda: not made.pending)
        want(made, many(20), "")
        await until(lambda: not made.pending)
    assert board.contents == dict.fromkeys(many(20), "")
    assert board.forgotten == [many(20)]


async def test_statuses_are_judged_in_slices_and_wait_for_calm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poster, "QUIET_S", 0.01)
    monkeypatch.setattr(poster, "SLICE_S", 0.0)
    board, calm, judged = Board(), asyncio.Event(), 0
    calm.set()

    def judge(of: ObjectRef, wish: str, before: DesiredStatus | None) -> DesiredStatus | None:
        nonlocal judged
        judged += 1
        if judged == 10:
            calm.clear()  # a revision is made now
        return desire(of, wish, before)

    async with posting(board, calm=calm, desire=judge) as made:
        want(made, many(50))
        await until(lambda: judged == 10)
        await asyncio.sleep(0.05)
        assert (judged, board.batches) == (10, [])
        calm.set()
        await until(lambda: not made.pending)
    assert board.contents.keys() == {*many(50)}


@in_virtual_time
async def test_nothing_is_posted_when_the_turn_ends_while_statuses_are_judged() -> None:
    board, leads = Board(), True

    def judge(of: ObjectRef, wish: str, before: DesiredStatus | None) -> DesiredStatus | None:
        nonlocal leads
        leads = of.name != "i5"
        return desire(of, wish, before)

    async with posting(board, may_post=lambda: leads, desire=judge) as made:
        want(made, many(6))
        await until(lambda: not leads)
        await asyncio.sleep(1)
        assert made.pending == 6
    assert not board.batches


def counting(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return what says how many statuses were decoded."""
    count, decode = 0, StatusUpdate.decode

    def note(*args: Any) -> StatusUpdate:
        nonlocal count
        count += 1
        return decode(*args)

    monkeypatch.setattr(StatusUpdate, "decode", note)
    return lambda: count


@in_virtual_time
async def test_what_comes_back_from_the_board_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = counting(monkeypatch)
    async with posting(Board()) as made:
        want(made, many(300))
        await until(lambda: not made.pending)
        await asyncio.sleep(1)
    assert decoded() == 0


@in_virtual_time
async def test_what_another_one_posted_later_counts_and_what_comes_late_does_not() -> None:
    board = Board()
    async with posting(board) as made:
        want(made, ["a"])
        await until(lambda: not made.pending)
        for content, later in (("theirs", timedelta(hours=1)), ("late", -timedelta(hours=1))):
            await board.post(to_update(desired(ref("a"), content), None, datetime.now(UTC) + later, None))
            await asyncio.sleep(1)
        posted = made.posted(ref("a"))
    assert posted is not None
    assert posted.content == "theirs"


@in_virtual_time
async def test_a_status_that_cannot_be_read_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    class Damaged(Board):
        async def follow_encoded(self, cluster: str, table: str) -> AsyncIterator[Sequence[EncodedStatus]]:
            yield [EncodedStatus(ref("a"), b"{"), EncodedStatus(ref("b"), b"{")]
            await asyncio.Event().wait()

    board = Damaged()
    async with posting(board) as made:
        await until(lambda: len(made.known) == 2)
        want(made, ["a"])
        want(made, ["b"], "")
        await until(lambda: not made.pending)
        assert [*made.known] == [ref("a")]
    assert board.contents == {"a": "one"}
    assert "a status is not heeded" in caplog.text
