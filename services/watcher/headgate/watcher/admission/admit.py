"""One admission request from question to verdict, with its deadline."""

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from headgate.common.admission import Opinion, Outcome, Proposal
from headgate.common.errors import NoAnswer, SealingError
from headgate.watcher.admission.metrics import REVIEWS
from headgate.watcher.admission.question import Question, Scope, pose
from headgate.watcher.admission.review import AdmissionRequest
from headgate.watcher.admission.verdict import LET_PASS, Policy, Verdict, give_up, give_verdict

_log = logging.getLogger(__name__)

Ask = Callable[[Proposal, float], Awaitable[Opinion]]
"""Asks a translator within so many seconds; raises NoAnswer."""


class Admission:
    """Decides about requests. Has no side effects, so that a dry run is answered like any other."""

    def __init__(self, scope: Scope, policy: Policy, ask: Ask) -> None:
        self._scope, self._policy, self._ask = scope, policy, ask

    async def decide(self, request: AdmissionRequest, within_s: float) -> Verdict:
        """Return what the API server is told, in about `within_s` seconds at the latest."""
        try:
            question = pose(request, self._scope, datetime.now(UTC))
        except SealingError as error:
            _log.error("a Secret was not checked", extra={"reason": str(error)})
            question = None
        if question is None:
            REVIEWS.labels("unasked").inc()
            return LET_PASS
        try:
            opinion = question.answer or await self._ask(question.proposal, within_s)
        except NoAnswer as none:
            return self._give_up(question, str(none))
        match opinion.outcome:
            case Outcome.JUDGED:
                return self._judged(question, opinion, request)
            case Outcome.FOREIGN:
                REVIEWS.labels("allowed").inc()
                return LET_PASS
            case _:
                return self._give_up(question, opinion.detail)

    def _judged(self, question: Question, opinion: Opinion, request: AdmissionRequest) -> Verdict:
        verdict = give_verdict(str(question), opinion, self._policy)
        REVIEWS.labels("denied" if verdict.refusal else "allowed").inc()
        if verdict.refusal:
            extra = {"object": str(question), "by": request.user_info.username, "reason": verdict.refusal.message}
            _log.info("an object was refused", extra=extra)
        return verdict

    def _give_up(self, question: Question, reason: str) -> Verdict:
        if not question.speaks_to_us:
            REVIEWS.labels("unchecked").inc()
            return LET_PASS
        verdict = give_up(str(question), reason, self._policy)
        REVIEWS.labels("unchecked-denied" if verdict.refusal else "unchecked").inc()
        _log.warning("an object was not checked", extra={"object": str(question), "reason": reason})
        return verdict
