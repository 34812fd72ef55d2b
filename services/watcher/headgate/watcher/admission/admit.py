"""One admission request from question to verdict, with its deadline.

Every table is asked at once. An object is refused if any table refuses it; a table that does not select it has nothing
to say; one that does not answer is dealt with as the settings say, whatever the others answer.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime

from headgate.common.admission import Opinion, Outcome, Proposal
from headgate.common.errors import NoAnswer, SealingError
from headgate.common.resources import JsonObject, ResourceKind
from headgate.common.status import in_table
from headgate.common.table import DEFAULT_TABLE
from headgate.watcher.admission.metrics import REVIEWS
from headgate.watcher.admission.question import Question, Scope, pose, with_named
from headgate.watcher.admission.review import AdmissionRequest
from headgate.watcher.admission.verdict import (
    LET_PASS,
    MAX_WARNINGS,
    AdmissionPolicy,
    AdmissionVerdict,
    TableOpinion,
    give_up,
    give_verdict,
    join,
)

_log = logging.getLogger(__name__)

Ask = Callable[[Proposal, float], Awaitable[Opinion]]
"""Asks a table's translator within so many seconds; raises NoAnswer."""
FindUnreported = Callable[[ResourceKind, JsonObject], Awaitable[Sequence[tuple[ResourceKind, JsonObject]]]]
"""Finds Secrets and ConfigMaps that an object would be the first to name; the log does not have them."""


async def find_nothing(kind: ResourceKind, manifest: JsonObject) -> Sequence[tuple[ResourceKind, JsonObject]]:
    """Find nothing, where no cluster can be asked."""
    return ()


class Admission:
    """Decides about requests. Has no side effects, so that a dry run is answered like any other."""

    def __init__(
        self,
        scope: Scope,
        policy: AdmissionPolicy,
        asks: Mapping[str, Ask],
        find_unreported: FindUnreported = find_nothing,
    ) -> None:
        """Prepare.

        Args:
            scope: what of the cluster is watched.
            policy: of the settings.
            asks: by table.
            find_unreported: finds what an object would be the first to name.
        """
        self._scope, self._policy, self._asks = scope, policy, asks
        self._find_unreported = find_unreported

    async def decide(self, request: AdmissionRequest, within_s: float) -> AdmissionVerdict:
        """Return what the API server is told, in about `within_s` seconds at the latest."""
        try:
            question = await self._pose(request)
        except SealingError as error:
            _log.error("a Secret was not checked", extra={"reason": str(error)})
            question = None
        if question is None:
            REVIEWS.labels("unasked").inc()
            return LET_PASS
        if question.answer is not None:
            answers: Sequence[TableOpinion] = [TableOpinion(DEFAULT_TABLE, question.answer)]
        else:
            tables = (self._hear(table, question.proposal, within_s) for table in self._asks)
            answers = await asyncio.gather(*tables)
        return self._conclude(question, answers, request)

    async def _pose(self, request: AdmissionRequest) -> Question | None:
        question = pose(request, self._scope, datetime.now(UTC))
        if question is None or question.answer is not None:
            return question
        ref = question.proposal.ref
        kind = self._scope.kinds.find(ref.group, ref.resource)
        if kind is None or not kind.references:
            return question
        return with_named(question, await self._find_unreported(kind, question.proposal.object), self._scope)

    async def _hear(self, table: str, proposal: Proposal, within_s: float) -> TableOpinion:
        try:
            return TableOpinion(table, await self._asks[table](proposal, within_s))
        except NoAnswer as none:
            return TableOpinion(table, Opinion(outcome=Outcome.FAILED, detail=str(none)))

    def _conclude(
        self, question: Question, answers: Sequence[TableOpinion], request: AdmissionRequest
    ) -> AdmissionVerdict:
        verdict = give_verdict(str(question), join(answers), self._policy)
        if verdict.refusal:
            REVIEWS.labels("denied").inc()
            extra = {"object": str(question), "by": request.user_info.username, "reason": verdict.refusal.message}
            _log.info("an object was refused", extra=extra)
            return verdict
        reasons = [in_table(table, one.detail) for table, one in answers if one.outcome not in _HEARD]
        if not reasons:
            REVIEWS.labels("allowed").inc()
            return verdict
        unheard = self._give_up(question, "; ".join(reasons))
        return unheard._replace(warnings=(*unheard.warnings, *verdict.warnings)[: MAX_WARNINGS + 1])

    def _give_up(self, question: Question, reason: str) -> AdmissionVerdict:
        if not question.speaks_to_us:
            REVIEWS.labels("unchecked").inc()
            return LET_PASS
        verdict = give_up(str(question), reason, self._policy)
        REVIEWS.labels("unchecked-denied" if verdict.refusal else "unchecked").inc()
        _log.warning("an object was not checked", extra={"object": str(question), "reason": reason})
        return verdict


_HEARD = (Outcome.JUDGED, Outcome.FOREIGN)
