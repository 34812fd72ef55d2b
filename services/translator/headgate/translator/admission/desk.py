"""Where watchers' questions arrive: answers them from the translation as it is now."""

import logging
import time
from typing import Protocol

from headgate.common.admission import Opinion, Outcome, Proposal
from headgate.translator import metrics
from headgate.translator.admission.examine import examine
from headgate.translator.translation import Translation

logger = logging.getLogger(__name__)


class Source(Protocol):
    """Who has the translation."""

    @property
    def translation(self) -> Translation:
        """The translation of now."""
        ...

    def knows(self, cluster: str) -> bool:
        """Whether everything of a cluster has been translated once."""
        ...


class AdmissionDesk:
    """Judges proposals."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def judge(self, proposal: Proposal) -> Opinion:
        """Return what is wrong with a proposed object, or why that cannot be told; never raises."""
        started = time.perf_counter()
        opinion = self._judge(proposal)
        metrics.ADMISSION_SECONDS.labels(opinion.outcome).observe(time.perf_counter() - started)
        return opinion

    def _judge(self, proposal: Proposal) -> Opinion:
        cluster = proposal.ref.cluster
        if not self._source.translation.selection.has_cluster(cluster):
            return Opinion(outcome=Outcome.FOREIGN)
        if not self._source.knows(cluster):
            return Opinion(outcome=Outcome.NOT_SYNCED, detail=f"cluster {cluster} is not completely known yet")
        try:
            return examine(self._source.translation, proposal)
        except Exception as error:
            logger.exception("an object was not judged", extra={"object": str(proposal.ref)})
            return Opinion(outcome=Outcome.FAILED, detail=f"the translator failed ({type(error).__name__})")
