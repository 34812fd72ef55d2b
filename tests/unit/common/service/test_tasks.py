"""Tasks that stand and fall together."""

import asyncio
from contextlib import suppress

import pytest

from headgate.common.service.tasks import cancel, heed_cancellation, run_together


async def forever(seen: list[str], name: str = "forever") -> None:
    try:
        await asyncio.Event().wait()
    finally:
        seen.append(name)


async def end() -> None:
    await asyncio.sleep(0)


async def fail(message: str = "boom") -> None:
    raise ValueError(message)


async def test_when_one_ends_the_others_are_cancelled_and_waited_for() -> None:
    seen: list[str] = []
    await run_together(forever(seen, "a"), end(), forever(seen, "b"))
    assert sorted(seen) == ["a", "b"]


async def test_an_error_is_raised_after_the_others_ended() -> None:
    seen: list[str] = []
    with pytest.raises(ValueError, match="boom"):
        await run_together(forever(seen), fail())
    assert seen == ["forever"]


async def test_of_two_errors_the_first_is_raised() -> None:
    with pytest.raises(ValueError, match="one"):
        await run_together(fail("one"), fail("two"))


async def test_cancelling_the_caller_cancels_all() -> None:
    seen: list[str] = []
    task = asyncio.create_task(run_together(forever(seen, "a"), forever(seen, "b")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(seen) == ["a", "b"]


async def test_an_error_while_being_cancelled_is_not_lost() -> None:
    async def breaks() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("while cleaning up")

    with pytest.raises(ValueError, match="cleaning up"):
        await run_together(breaks(), end())


async def test_tasks_have_the_names_of_their_coroutines() -> None:
    names: list[str] = []

    async def tell() -> None:
        task = asyncio.current_task()
        assert task is not None
        names.append(task.get_name())

    await run_together(tell())
    assert names[0].endswith("tell")


async def test_cancelling_waits_and_takes_nothing_as_well() -> None:
    seen: list[str] = []
    task = asyncio.create_task(forever(seen))
    await asyncio.sleep(0)
    await cancel(task)
    await cancel()
    assert task.cancelled()
    assert seen == ["forever"]


async def test_a_task_that_swallows_a_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.common.service.tasks.ASK_AGAIN_S", 0.01)

    async def swallow() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    task = asyncio.create_task(swallow())
    await asyncio.sleep(0)
    await cancel(task)
    assert task.cancelled()


async def swallow(result: object) -> object:
    """What nats-py does while it flushes."""
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    if isinstance(result, Exception):
        raise result
    return result


@pytest.mark.parametrize("result", ["done", ValueError("boom")])
async def test_a_swallowed_cancellation_is_raised_whatever_came_of_it(result: object) -> None:
    task = asyncio.create_task(heed_cancellation(swallow(result)))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_a_swallowed_timeout_is_a_timeout() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await heed_cancellation(swallow("done"))


async def test_what_was_cancelled_before_may_still_clean_up() -> None:
    cleaned: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await heed_cancellation(asyncio.sleep(0))
            cleaned.append("up")

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    await cancel(task)
    assert cleaned == ["up"]
