"""Something in the background of a command."""

import asyncio

import pytest

from headgate.cli.commands.live.hearing import beside


async def test_the_background_ends_with_the_work() -> None:
    ended = asyncio.Event()

    async def background() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    assert await beside(background(), work()) == 7
    assert ended.is_set()


async def test_work_does_not_go_on_without_its_background() -> None:
    async def background() -> None:
        raise ValueError("not permitted")

    with pytest.raises(ValueError, match="not permitted"):
        await beside(background(), asyncio.Event().wait())


async def test_what_fails_in_the_work_is_raised() -> None:
    async def work() -> None:
        raise ValueError("no table")

    with pytest.raises(ValueError, match="no table"):
        await beside(asyncio.sleep(60), work())
