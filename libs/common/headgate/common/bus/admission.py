"""Questions of admission and their answers, on their way over the bus.

Every translator of a table answers, and the first answer counts: no question waits for one that has stopped. Rejected:
a queue group, in which one of them is asked and the question may be lost.
"""

import asyncio
import logging
from collections.abc import Callable

import nats.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from headgate.common.admission import (
    ADMISSION_PREFIX,
    Opinion,
    Outcome,
    Proposal,
    admission_subject,
    decode_opinion,
    decode_proposal,
)
from headgate.common.bus.asking import ask_translator
from headgate.common.bus.connection import Bus
from headgate.common.bus.inboxes import is_inbox
from headgate.common.deltas import escape_token
from headgate.common.errors import DecodeError

COURTESY_S = 0.2
"""A translator that cannot judge yet leaves another one so much time to answer first."""
_WAITING, _WAITING_BYTES = 4096, 256 * 1024 * 1024
"""Generous: watchers bound what they ask at once, and a question that is dropped disturbs all who read the log."""
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.1, 2.0

Judge = Callable[[Proposal], Opinion]

_log = logging.getLogger(__name__)


async def ask(bus: Bus, table: str, proposal: Proposal, timeout_s: float) -> Opinion:
    """Ask a table's translators for an opinion.

    Raises:
        NoAnswer: there was none in time; says why.
    """
    subject = admission_subject(proposal.ref.cluster, table)
    return await ask_translator(bus, subject, _encode(proposal), decode_opinion, timeout_s)


def _encode(proposal: Proposal) -> bytes:
    """Encode a question. Translators of an earlier release know no `named`: it is left out where it is empty."""
    return proposal.model_dump_json(exclude=None if proposal.named else {"named"}).encode()


class Answering:
    """Answers what watchers ask about a table, for as long as `run` runs."""

    def __init__(self, bus: Bus, table: str, judge: Judge) -> None:
        """Prepare.

        Args:
            bus: where the questions come from.
            table: whose translator this is.
            judge: answers one; takes some milliseconds and does not raise.
        """
        self._bus, self._table, self._judge = bus, table, judge
        self._late: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Answer until cancelled, over reconnections too."""
        renewed = asyncio.Event()
        forget = self._bus.on_reconnect(renewed.set)
        try:
            while True:
                client, subscription = self._bus.nc, await self._subscribe()
                while self._bus.nc is client:  # which subscribes again by itself when it reconnects
                    renewed.clear()
                    await renewed.wait()
                await _end(subscription)
        finally:
            forget()
            for task in self._late:
                task.cancel()

    async def _subscribe(self) -> Subscription:
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                subject = f"{ADMISSION_PREFIX}.*.{escape_token(self._table)}"
                return await self._bus.subscribe(subject, self._receive, messages=_WAITING, size=_WAITING_BYTES)
            except nats.errors.Error as error:
                _log.debug("no questions can be heard now", extra={"reason": str(error)})
            await asyncio.sleep(pause_s)
            pause_s = min(_LAST_PAUSE_S, pause_s * 2)

    async def _receive(self, message: Msg) -> None:
        if not is_inbox(message.reply):
            return
        opinion = self._answer(message)
        if opinion.outcome is Outcome.NOT_SYNCED:
            task = asyncio.create_task(self._respond(message.reply, opinion, COURTESY_S))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
        else:
            await self._respond(message.reply, opinion)
        await asyncio.sleep(0)  # many questions may wait, and their turn is not the only one

    def _answer(self, message: Msg) -> Opinion:
        try:
            proposal = decode_proposal(message.data)
        except DecodeError as error:
            return Opinion(outcome=Outcome.FAILED, detail=str(error))
        if admission_subject(proposal.ref.cluster, self._table) != message.subject:
            return Opinion(outcome=Outcome.FAILED, detail="asked about another cluster than that of the subject")
        return self._judge(proposal)

    async def _respond(self, reply: str, opinion: Opinion, delay_s: float = 0.0) -> None:
        if delay_s:
            await asyncio.sleep(delay_s)
        try:
            await self._bus.publish(reply, opinion.model_dump_json().encode())
        except nats.errors.Error as error:
            _log.debug("an opinion was not sent", extra={"reason": str(error)})


async def _end(subscription: Subscription) -> None:
    try:
        await subscription.unsubscribe()
    except nats.errors.Error as error:
        _log.debug("the subscription ended with its client", extra={"reason": str(error)})
