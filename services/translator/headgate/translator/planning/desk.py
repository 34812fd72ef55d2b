"""Where questions about plans arrive: answers them from the translation as it is now, in a child of this process."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final, Protocol

from headgate.common.errors import DecodeError, TooLarge
from headgate.common.planning import (
    MAX_MESSAGE_BYTES,
    MAX_OBJECTS,
    PlanAnswer,
    PlanBasis,
    PlannedObject,
    PlanOutcome,
    decode_question,
    encode,
)
from headgate.common.release import release
from headgate.translator import metrics
from headgate.translator.planning.child import Bounds, run_apart
from headgate.translator.planning.errors import ChildFailed
from headgate.translator.planning.rehearsal import rehearse
from headgate.translator.translation import Translation

logger = logging.getLogger(__name__)

BOUNDS: Final = Bounds(seconds=2.5, memory_bytes=128 * 1024 * 1024, answer_bytes=MAX_MESSAGE_BYTES)
MAX_PENDING: Final = 1000
"""Nodes of the translation that may wait: the child runs them first."""
_READ_S, _QUIET_S = 0.5, 0.1
"""Seconds to wait for what was written to the log just now, and for a moment without a change under way."""
_REST_S = 0.25
"""Between two children: each fork is a pause, and has pages copied that the next change touches."""
_LOOK_S = 0.005


class Source(Protocol):
    """Who has the translation."""

    @property
    def translation(self) -> Translation:
        """The translation of now."""
        ...

    def knows(self, cluster: str) -> bool:
        """Whether everything of a cluster has been translated once."""
        ...

    def has_read(self, incarnation: str, sequence: int) -> bool:
        """Whether everything of a log was read, up to a sequence."""
        ...

    @property
    def is_quiet(self) -> bool:
        """Whether no revision is due."""
        ...


class PlanningDesk:
    """Says what objects would change."""

    def __init__(self, source: Source, bounds: Bounds = BOUNDS) -> None:
        self._source, self._bounds = source, bounds
        self._rested_at_s = 0.0

    async def plan(self, basis: PlanBasis, question: bytes) -> bytes:
        """Return the encoded answer to an encoded question; does not raise."""
        started = time.perf_counter()
        answer = await self._plan(basis, question)
        outcome = answer.outcome if isinstance(answer, PlanAnswer) else PlanOutcome.PLANNED
        metrics.PLAN_SECONDS.labels(outcome).observe(time.perf_counter() - started)
        return encode(answer) if isinstance(answer, PlanAnswer) else answer

    async def _plan(self, basis: PlanBasis, question: bytes) -> PlanAnswer | bytes:
        if basis.release != release():
            detail = f"the translator is of release {release()}"
            return PlanAnswer(outcome=PlanOutcome.OTHER_RELEASE, detail=detail)
        await self._wait(lambda: self._source.has_read(basis.incarnation, basis.sequence), _READ_S)
        await self._wait(lambda: self._source.is_quiet, _QUIET_S)
        await asyncio.sleep(self._rested_at_s - time.monotonic())
        if (obstacle := self._obstacle(basis)) is not None:
            return PlanAnswer(outcome=PlanOutcome.NOT_READY, detail=obstacle)
        translation = self._source.translation
        try:
            return await run_apart(lambda: _answer(translation, question), self._bounds)
        except ChildFailed as error:
            logger.info("a plan was not made", extra={"reason": str(error)})
            return PlanAnswer(outcome=PlanOutcome.FAILED, detail=f"the translator gave the plan up: {error}")
        except OSError as error:
            logger.warning("a plan was not made", extra={"reason": str(error)})
            return PlanAnswer(outcome=PlanOutcome.FAILED, detail=f"the translator has no process for it: {error}")
        finally:
            self._rested_at_s = time.monotonic() + _REST_S

    def _obstacle(self, basis: PlanBasis) -> str | None:
        """Say why what a plan would say now need not be what the log says."""
        translation = self._source.translation
        if not self._source.knows(basis.cluster):
            return f"the translator does not know all of cluster {basis.cluster} yet"
        if not self._source.has_read(basis.incarnation, basis.sequence):
            return "the translator has not read all of the log yet"
        if translation.world.tracker.unsure:
            return "the translator does not know all last good versions yet"
        if translation.pending > MAX_PENDING:
            return "the translator is translating"
        return None

    async def _wait(self, is_reached: Callable[[], bool], bound_s: float) -> None:
        end = time.monotonic() + bound_s
        while not is_reached() and time.monotonic() < end:  # noqa: ASYNC110 - neither has an event
            await asyncio.sleep(_LOOK_S)


def _answer(translation: Translation, question: bytes) -> bytes:
    """Return the encoded answer; runs in the child, and changes the translation."""
    try:
        deltas = decode_question(question).deltas
        if len(deltas) > MAX_OBJECTS:
            raise DecodeError(f"{len(deltas):,} objects are more than {MAX_OBJECTS:,}")
        found = rehearse(translation, deltas)
        objects = [
            PlannedObject(ref=ref, problems=found.problems.get(ref, ()), foreign=found.foreign.get(ref, ""))
            for ref in dict.fromkeys(delta.ref for delta in deltas)
        ]
        told = tuple(one for one in objects if one.problems or one.foreign)
        answer = PlanAnswer(outcome=PlanOutcome.PLANNED, diff=found.diff, objects=told, consequences=found.consequences)
        return encode(answer)
    except TooLarge as error:
        return encode(PlanAnswer(outcome=PlanOutcome.TOO_LARGE, detail=str(error)))
    except DecodeError as error:
        return encode(PlanAnswer(outcome=PlanOutcome.FAILED, detail=str(error)))
    except Exception as error:  # the command makes the plan by itself, and meets it there
        return encode(PlanAnswer(outcome=PlanOutcome.FAILED, detail=f"the translator failed ({type(error).__name__})"))
