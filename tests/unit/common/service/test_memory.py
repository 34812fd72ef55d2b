"""When cycles are looked for, and what is passed over."""

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from headgate.common.service import memory
from headgate.common.service.uncollected import uncollected


async def _come_true(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


class _Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    before = gc.get_threshold()
    gc.collect()
    gc.unfreeze()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_only_young_collections_come_while_much_comes_in() -> None:
    collected: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        collected.append(info["generation"])

    memory.expect_growth()
    gc.callbacks.append(note)
    try:
        kept = [[number] for number in range(300_000)]
    finally:
        gc.callbacks.remove(note)
    assert len(kept) == 300_000
    assert collected
    assert set(collected) == {0}


def test_what_is_alive_is_passed_over_from_then_on() -> None:
    kept = [[number] for number in range(1000)]
    memory.freeze_heap()
    assert gc.get_freeze_count() >= 1000
    assert gc.get_threshold() == memory.STEADY
    assert len(kept) == 1000


def test_cycles_that_come_later_are_still_collected() -> None:
    memory.freeze_heap(collects=False)
    cycle = _Cycle()
    seen = weakref.ref(cycle)
    del cycle
    assert seen() is not None
    gc.collect()
    assert seen() is None


def test_what_is_frozen_is_freed_with_its_last_reference() -> None:
    kept = _Cycle()
    del kept.itself
    seen = weakref.ref(kept)
    memory.freeze_heap(collects=False)
    del kept
    assert seen() is None


async def test_the_heap_is_frozen_at_each_moment_and_not_before() -> None:
    first, second = asyncio.Event(), asyncio.Event()
    memory.expect_growth()
    task = asyncio.create_task(memory.freeze_after(first.is_set, second.is_set))
    try:
        await asyncio.sleep(0.3)
        assert gc.get_freeze_count() == 0
        assert not gc.isenabled()
        first.set()
        await _come_true(lambda: gc.get_freeze_count() > 0)
        assert gc.isenabled()
        before = gc.get_freeze_count()
        between = [[number] for number in range(1000)]
        await _come_true(lambda: gc.get_freeze_count() >= before + 1000)
        before = gc.get_freeze_count()
        kept = [[number] for number in range(1000)]
        second.set()
        await _come_true(lambda: gc.get_freeze_count() >= before + 1000)
        assert len(between) == 1000
        assert len(kept) == 1000
        assert not task.done()
    finally:
        task.cancel()


async def test_where_the_first_moment_does_not_come_collections_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "GROWS_S", 0.1)
    first = asyncio.Event()
    task = asyncio.create_task(memory.freeze_after(first.is_set))
    try:
        await asyncio.sleep(0)
        assert not gc.isenabled()
        await _come_true(gc.isenabled)
        assert gc.get_threshold() != memory.STEADY
        first.set()
        await _come_true(lambda: gc.get_threshold() == memory.STEADY)
    finally:
        task.cancel()


def test_nothing_is_collected_within_and_what_was_made_is_passed_over_afterwards() -> None:
    gc.set_threshold(10)
    with uncollected():
        made = _Cycle()
        within = weakref.ref(made)
        del made
        kept = [[number] for number in range(1000)]
        assert within() is not None
    assert gc.get_freeze_count() >= 1000
    later = _Cycle()
    afterwards = weakref.ref(later)
    del later
    kept += [[number] for number in range(1000)]
    assert afterwards() is None


def test_collections_go_on_after_a_failure() -> None:
    with pytest.raises(ValueError, match="bad"), uncollected():
        raise ValueError("bad")
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
