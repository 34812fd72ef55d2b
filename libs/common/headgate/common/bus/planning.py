"""Questions about plans and their answers, on their way over the bus.

One translator of a table is asked, whichever it is: a plan is work, and the command makes it by itself if no answer
comes. Rejected: that all answer, as with admission. Both of a pair would do the work.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

import nats.errors
from nats.aio.msg import Msg

from headgate.common.bus.asking import ask_translator
from headgate.common.bus.connection import Bus
from headgate.common.bus.inboxes import is_inbox
from headgate.common.errors import DecodeError
from headgate.common.planning import (
    PlanAnswer,
    PlanBasis,
    PlanOutcome,
    decode_answer,
    encode,
    plan_subject,
    read_basis,
)

ANSWER_S = 3.0
"""An answer takes a tenth of a second; a translator that has stopped takes this long from who asks."""
_QUEUE = "plan"
_MAX_WAITING = 4
_PENDING, _PENDING_BYTES = 4096, 256 * 1024 * 1024
"""Generous: a question that is dropped disturbs all who read the log."""

Planner = Callable[[PlanBasis, bytes], Awaitable[bytes]]

_log = logging.getLogger(__name__)


async def ask_for_plan(bus: Bus, table: str, basis: PlanBasis, question: bytes) -> PlanAnswer:
    """Ask a translator of a table what would change.

    Args:
        bus: over which it is asked.
        table: name of the table.
        basis: what the question is about.
        question: the objects, encoded.

    Raises:
        NoAnswer: there was none in time; says why.
    """
    headers = basis.as_headers()
    return await ask_translator(bus, plan_subject(table), question, decode_answer, ANSWER_S, headers)


class PlanAnswering:
    """Answers questions about a table one after the other, for as long as `run` runs."""

    def __init__(self, bus: Bus, table: str, plan: Planner, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare.

        Args:
            bus: where the questions come from.
            table: whose translator this is.
            plan: returns an encoded answer; does not raise.
            clock: gives seconds.
        """
        self._bus, self._table, self._plan, self._clock = bus, table, plan, clock
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Answer until cancelled, over reconnections too."""
        try:
            subject = plan_subject(self._table)
            await self._bus.listen(subject, self._receive, messages=_PENDING, size=_PENDING_BYTES, queue=_QUEUE)
        finally:
            for task in self._tasks:
                task.cancel()

    async def _receive(self, message: Msg) -> None:
        if not is_inbox(message.reply):
            return
        if len(self._tasks) >= _MAX_WAITING:
            await self._respond(message, encode(PlanAnswer(outcome=PlanOutcome.BUSY, detail="others are asking")))
            return
        task = asyncio.create_task(self._answer(message, self._clock()))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, message: Msg, asked_at_s: float) -> None:
        async with self._turn:
            if self._clock() - asked_at_s > ANSWER_S:
                return  # the command has given up
            try:
                basis = read_basis(message.headers or {})
            except DecodeError as error:
                answer = encode(PlanAnswer(outcome=PlanOutcome.FAILED, detail=str(error)))
            else:
                answer = await self._plan(basis, message.data)
            await self._respond(message, answer)

    async def _respond(self, message: Msg, answer: bytes) -> None:
        try:
            await self._bus.publish(message.reply, answer)
        except nats.errors.Error as error:
            _log.debug("a plan was not sent", extra={"reason": str(error)})
