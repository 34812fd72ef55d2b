"""Questions about plans on a real NATS server: who answers them, how many at once, and what becomes of late ones."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from fakes.stores.nats import real_bus
from headgate.common.bus import planning as bus_planning
from headgate.common.bus.connection import Bus
from headgate.common.bus.planning import PlanAnswering, Planner, ask_for_plan
from headgate.common.errors import NoAnswer
from headgate.common.planning import PlanAnswer, PlanBasis, PlanOutcome, encode, plan_subject
from headgate.common.service.tasks import cancel

BASIS = PlanBasis("1.0", "eu west", "log.1", 7)
PLANNED = encode(PlanAnswer(outcome=PlanOutcome.PLANNED, detail="made"))


@asynccontextmanager
async def answering(*planners: Planner, clock: Callable[[], float] = time.monotonic) -> AsyncIterator[Bus]:
    """Answer by several translators of one table."""
    async with real_bus() as (_, bus):
        running = [asyncio.create_task(PlanAnswering(bus, "t", plan, clock).run()) for plan in planners]
        await asyncio.sleep(0)
        await bus.nc.flush()
        try:
            yield bus
        finally:
            await cancel(*running)


class Planning:
    """Takes its time, and counts."""

    def __init__(self) -> None:
        self.asked: list[tuple[PlanBasis, bytes]] = []
        self.goes_on = asyncio.Event()

    async def plan(self, basis: PlanBasis, question: bytes) -> bytes:
        self.asked.append((basis, question))
        await self.goes_on.wait()
        return PLANNED


async def test_one_translator_of_a_table_hears_the_whole_question_and_answers() -> None:
    one, other = Planning(), Planning()
    one.goes_on.set()
    other.goes_on.set()
    async with answering(one.plan, other.plan) as bus:
        assert (await ask_for_plan(bus, "t", BASIS, b"what")).detail == "made"
        assert [*one.asked, *other.asked] == [(BASIS, b"what")]


async def test_without_a_translator_it_is_said_at_once() -> None:
    async with answering() as bus:
        with pytest.raises(NoAnswer, match="no translator listens"):
            await ask_for_plan(bus, "t", BASIS, b"")


async def test_questions_are_answered_one_after_the_other_and_too_many_are_told_so() -> None:
    slow = Planning()
    async with answering(slow.plan) as bus:
        asking = [asyncio.create_task(ask_for_plan(bus, "t", BASIS, b"")) for _ in range(6)]
        done, _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        assert {task.result().outcome for task in done} == {PlanOutcome.BUSY}
        assert len(slow.asked) == 1
        slow.goes_on.set()
        outcomes = [answer.outcome for answer in await asyncio.gather(*asking)]
        assert outcomes.count(PlanOutcome.PLANNED) == 4


class Clock:
    """Stands still, and says when it was looked at so often."""

    def __init__(self, looks: int) -> None:
        self.now = 0.0
        self.was_asked = asyncio.Event()
        self._looks = looks

    def __call__(self) -> float:
        self._looks -= 1
        if self._looks == 0:
            self.was_asked.set()
        return self.now


async def test_a_question_that_waited_for_too_long_is_not_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, clock = Planning(), Clock(looks=4)  # when each came, and when the first had its turn
    async with answering(slow.plan, clock=clock) as bus:
        with monkeypatch.context() as impatient:
            impatient.setattr(bus_planning, "ANSWER_S", 0.2)
            asking = [asyncio.create_task(ask_for_plan(bus, "t", BASIS, b"")) for _ in range(3)]
            for found in await asyncio.gather(*asking, return_exceptions=True):
                assert isinstance(found, NoAnswer)
        await asyncio.wait_for(clock.was_asked.wait(), 30)
        clock.now += 2 * bus_planning.ANSWER_S
        slow.goes_on.set()
        assert (await ask_for_plan(bus, "t", BASIS, b"later")).outcome is PlanOutcome.PLANNED
        assert [question for _, question in slow.asked] == [b"", b"later"]


async def test_a_question_without_headers_is_refused() -> None:
    slow = Planning()
    async with answering(slow.plan) as bus:
        answer = await bus.request(plan_subject("t"), b"")
        assert bus_planning.decode_answer(answer.data).outcome is PlanOutcome.FAILED
        assert slow.asked == []


@pytest.mark.parametrize("subject", ["$KV.HEADGATE_TABLES.pointer.t", "headgate.resync"])
async def test_no_answer_is_written_to_a_table_for_one_who_may_not_write_it(subject: str) -> None:
    planning = Planning()
    planning.goes_on.set()
    async with answering(planning.plan) as bus:
        heard = await bus.nc.subscribe(subject)
        await bus.nc.publish(plan_subject("t"), b"what", reply=subject, headers=BASIS.as_headers())
        assert (await ask_for_plan(bus, "t", BASIS, b"next")).detail == "made"
        assert [question for _, question in planning.asked] == [b"next"]
        assert heard.pending_msgs == 0
