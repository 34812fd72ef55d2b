"""Questions of admission over a real NATS server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from fakes.stores.nats import real_bus, real_nats
from fakes.translator.deltas import ingress, ref_of
from fakes.waiting import until
from headgate.common.admission import Opinion, Outcome, Proposal, admission_subject
from headgate.common.bus.admission import Answering, ask
from headgate.common.bus.connection import Bus
from headgate.common.errors import NoAnswer

WEB = ingress("web", host="a.example")
PROPOSAL = Proposal(ref=ref_of(WEB), object=WEB)
JUDGED = Opinion(outcome=Outcome.JUDGED)


@asynccontextmanager
async def answering(bus: Bus, judge: Callable[[Proposal], Opinion], table: str = "default") -> AsyncIterator[None]:
    task = asyncio.create_task(Answering(bus, table, judge).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def patiently(bus: Bus, proposal: Proposal = PROPOSAL, table: str = "default") -> Opinion:
    """Ask until somebody listens."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await ask(bus, table, proposal, 2.0)
            except NoAnswer:
                await asyncio.sleep(0.02)


async def _until_answered(bus: Bus, opinion: Opinion) -> None:
    async with asyncio.timeout(30):
        while await patiently(bus) != opinion:
            pass


async def test_a_question_is_answered_with_what_was_asked() -> None:
    heard: list[Proposal] = []

    def judge(proposal: Proposal) -> Opinion:
        heard.append(proposal)
        return JUDGED

    async with real_bus() as (_, bus), answering(bus, judge):
        assert await patiently(bus) == JUDGED
    assert heard == [PROPOSAL]


async def test_nobody_to_ask_is_told_at_once() -> None:
    async with real_bus() as (_, bus):
        started = asyncio.get_running_loop().time()
        with pytest.raises(NoAnswer, match="no translator listens"):
            await ask(bus, "default", PROPOSAL, 10.0)
        assert asyncio.get_running_loop().time() - started < 5


async def test_a_table_is_asked_for_itself_and_one_that_nobody_translates_is_known_at_once() -> None:
    theirs = Opinion(outcome=Outcome.FOREIGN)
    async with real_bus() as (_, bus), answering(bus, lambda _: JUDGED), answering(bus, lambda _: theirs, "tenant"):
        assert await patiently(bus) == JUDGED
        assert await patiently(bus, table="tenant") == theirs
        with pytest.raises(NoAnswer, match="no translator listens"):
            await ask(bus, "dead", PROPOSAL, 30.0)


async def test_an_answer_that_does_not_come_in_time_is_none() -> None:
    async def say_nothing(message: object) -> None:
        pass

    async with real_bus() as (_, bus):
        await bus.subscribe(admission_subject("a", "default"), say_nothing, messages=10, size=10**6)
        with pytest.raises(NoAnswer, match="no translator answered within"):
            await ask(bus, "default", PROPOSAL, 0.2)


async def test_a_translator_that_knows_answers_before_one_that_does_not() -> None:
    waiting = Opinion(outcome=Outcome.NOT_SYNCED, detail="not yet")
    async with real_bus() as (_, bus), answering(bus, lambda _: waiting):
        assert await patiently(bus) == waiting
        async with answering(bus, lambda _: JUDGED):
            await _until_answered(bus, JUDGED)
            assert [await ask(bus, "default", PROPOSAL, 2.0) for _ in range(5)] == [JUDGED] * 5


async def test_questions_are_answered_after_nats_was_restarted() -> None:
    async with real_bus() as (server, bus), answering(bus, lambda _: JUDGED):
        assert await patiently(bus) == JUDGED
        await server.kill()
        await server.start()
        assert await patiently(bus) == JUDGED


async def test_questions_are_answered_by_a_client_that_was_made_anew() -> None:
    async with real_bus() as (_, bus), answering(bus, lambda _: JUDGED):
        assert await patiently(bus) == JUDGED
        lost = bus.nc
        await lost.close()
        await until(lambda: bus.nc is not lost and bus.is_connected)
        assert await patiently(bus) == JUDGED


async def test_a_watcher_cannot_ask_about_another_cluster() -> None:
    async with real_bus() as (_, bus), answering(bus, lambda _: JUDGED):
        await patiently(bus)
        payload = PROPOSAL.model_dump_json().encode()
        answer = await bus.request(admission_subject("b", "default"), payload, timeout_s=5)
        assert Opinion.model_validate_json(answer.data).outcome is Outcome.FAILED


async def test_what_is_no_question_is_answered_with_a_failure() -> None:
    async with real_bus() as (_, bus), answering(bus, lambda _: JUDGED):
        await patiently(bus)
        answer = await bus.request(admission_subject("a", "default"), b"{", timeout_s=5)
        assert Opinion.model_validate_json(answer.data).outcome is Outcome.FAILED


async def test_without_nats_there_is_no_answer() -> None:
    async with real_nats() as (server, url):
        bus = await Bus.connect(url, name="test")
        try:
            await server.kill()
            await until(lambda: not bus.is_connected)
            with pytest.raises(NoAnswer, match="not connected"):
                await ask(bus, "default", PROPOSAL, 1.0)
        finally:
            await bus.close()


async def test_no_opinion_is_written_to_a_table_for_one_who_may_not_write_it() -> None:
    subject, heard = "$KV.HEADGATE_TABLES.pointer.default", list[Proposal]()

    def judge(proposal: Proposal) -> Opinion:
        heard.append(proposal)
        return JUDGED

    async with real_bus() as (_, bus), answering(bus, judge):
        await patiently(bus)
        written = await bus.nc.subscribe(subject)
        await bus.nc.publish(
            admission_subject(PROPOSAL.ref.cluster, "default"), PROPOSAL.model_dump_json().encode(), subject
        )
        await patiently(bus)
        assert len(heard) == 2
        assert written.pending_msgs == 0
