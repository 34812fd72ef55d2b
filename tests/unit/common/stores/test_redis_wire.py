"""One connection for many callers: whose answer is whose, and what happens when it breaks."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.errors import NotPermitted, StoreError, StoreUnavailable
from headgate.common.service.tasks import cancel
from headgate.common.stores.redis import wire
from headgate.common.stores.redis.wire import Pipe, Word, refusal


class ScriptedWire:
    """Keeps what is sent, answers when it is told to."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.is_closed = False
        self._answers: asyncio.Queue[Any] = asyncio.Queue()

    def answer(self, *answers: Any) -> None:
        for each in answers:
            self._answers.put_nowait(each)

    def pack_command(self, *args: Word) -> list[bytes]:
        return [" ".join(map(str, args)).encode()]

    async def connect(self) -> None:
        raise AssertionError("a pipe gets a connection that is open")

    async def send_packed_command(self, command: Iterable[bytes], check_health: bool = True) -> None:
        assert not check_health
        self.sent += [each.decode() for each in command]

    async def read_response(self, disable_decoding: bool = False) -> Any:
        assert disable_decoding
        answer = await self._answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def disconnect(self, nowait: bool = False) -> None:
        self.is_closed = True


@asynccontextmanager
async def piped() -> AsyncIterator[tuple[ScriptedWire, Pipe, "asyncio.Task[None]"]]:
    scripted = ScriptedWire()
    pipe = Pipe(scripted)
    running = asyncio.create_task(pipe.run())
    try:
        yield scripted, pipe, running
    finally:
        await cancel(running)
        assert scripted.is_closed


async def ask_all(pipe: Pipe, scripted: ScriptedWire, *commands: str) -> "list[asyncio.Task[Any]]":
    """Ask at once, and return when everything is sent."""
    asked = [asyncio.create_task(pipe.ask(command)) for command in commands]
    await until(lambda: len(scripted.sent) >= len(commands))
    return asked


async def test_each_caller_gets_the_answer_to_its_own_command() -> None:
    async with piped() as (scripted, pipe, _):
        asked = await ask_all(pipe, scripted, "A", "B", "C")
        scripted.answer(b"a", b"b", b"c")
        assert await asyncio.gather(*asked) == [b"a", b"b", b"c"]
        assert scripted.sent == ["A", "B", "C"]


async def test_a_caller_that_leaves_leaves_its_answer_to_nobody() -> None:
    async with piped() as (scripted, pipe, _):
        first, second = await ask_all(pipe, scripted, "A", "B")
        first.cancel()
        await asyncio.wait([first])
        [third] = await ask_all(pipe, scripted, "C")
        scripted.answer(b"a", b"b", b"c")
        assert (await second, await third) == (b"b", b"c")
        assert first.cancelled()


async def test_a_refusal_reaches_the_one_who_asked_and_the_connection_goes_on() -> None:
    async with piped() as (scripted, pipe, _):
        first, second, third = await ask_all(pipe, scripted, "A", "B", "C")
        second.cancel()
        await asyncio.wait([second])
        scripted.answer(ResponseError("no"), ResponseError("not heard"), b"c")
        with pytest.raises(ResponseError, match="no"):
            await first
        assert await third == b"c"


async def test_when_the_connection_breaks_everybody_who_waits_is_told() -> None:
    async with piped() as (scripted, pipe, running):
        asked = await ask_all(pipe, scripted, "A", "B")
        scripted.answer(b"a", RedisConnectionError("gone"))
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        assert outcomes[0] == b"a"
        assert isinstance(outcomes[1], StoreUnavailable)
        with pytest.raises(StoreUnavailable, match="gone"):
            await running
        with pytest.raises(StoreUnavailable, match="gone"):
            await pipe.ask("C")


async def test_an_answer_to_nothing_ends_the_connection() -> None:
    async with piped() as (scripted, _, running):
        scripted.answer(b"surprise")
        with pytest.raises(StoreUnavailable, match="an answer to nothing"):
            await running


@in_virtual_time
async def test_silence_ends_a_connection_that_owes_an_answer_and_no_other() -> None:
    async with piped() as (scripted, pipe, running):
        await asyncio.sleep(3 * wire.SILENCE_S)
        assert not running.done()
        [asked] = await ask_all(pipe, scripted, "A")
        with pytest.raises(StoreUnavailable, match="no answer"):
            await asked


async def test_giving_the_connection_up_tells_those_who_wait() -> None:
    async with piped() as (scripted, pipe, running):
        [asked] = await ask_all(pipe, scripted, "A")
        await cancel(running)
        with pytest.raises(StoreUnavailable, match="given up"):
            await asked


@pytest.mark.parametrize("code", ["READONLY", "OOM", "MISCONF", "NOREPLICAS", "MASTERDOWN"])
def test_what_is_about_the_servers_state_passes(code: str) -> None:
    assert isinstance(refusal(ResponseError(f"{code} for now")), StoreUnavailable)
    assert isinstance(refusal(ResponseError("for now", status_code=code)), StoreUnavailable)


def test_what_is_about_the_command_does_not_pass() -> None:
    found = refusal(ResponseError("this user has no permissions", status_code="NOPERM"))
    assert isinstance(found, NotPermitted)
    assert "NOPERM this user" in str(found)
    assert type(refusal(ResponseError("WRONGTYPE of key"))) is StoreError
