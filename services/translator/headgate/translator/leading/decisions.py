"""What people decided of clusters, kept beside the log, so that a log that is lost or went back gets it again.

A decision (drain, weight, ...) is an object of the log and of no API server, so no watcher lists it again after a loss.
Every manifest therefore carries all of them, and a running translator remembers them; the newest one about a cluster
counts, wherever it is. What the log lacks is written back into it before the next table is made, so that no cluster
gets back in between what was taken from it.
"""

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from headgate.common.clusters import Decision
from headgate.common.deltas import Delta
from headgate.common.errors import Conflict, NotPermitted, TooLarge
from headgate.common.stores import DeltaLogWriter

logger = logging.getLogger(__name__)


class _Attempt(NamedTuple):
    log: str
    cluster: str
    at: datetime


class Decisions:
    """The newest decision about each cluster."""

    def __init__(self, log: DeltaLogWriter | None) -> None:
        """Begin with none; without a log to write to nothing is ever written back."""
        self._log = log
        self._known: dict[str, Decision] = {}
        self._attempts: set[_Attempt] = set()

    @property
    def known(self) -> dict[str, Decision]:
        """Decisions by cluster, in order of the clusters' names."""
        return {cluster: self._known[cluster] for cluster in sorted(self._known)}

    def learn(self, logged: Mapping[str, Delta], published: Mapping[str, Decision]) -> None:
        """Take what the log says last of each cluster, and what a published revision says."""
        told = [(cluster, Decision.of(delta)) for cluster, delta in logged.items()]
        for cluster, decision in (*told, *published.items()):
            known = self._known.get(cluster)
            if known is None or known.at < decision.at:
                self._known[cluster] = decision

    async def write_back(self, incarnation: str, logged: Mapping[str, Delta]) -> bool:
        """Write into the log what is newer than what it has; return whether that is to be heard from it in a moment.

        Each decision is tried once with each log: one that is refused is gone on without.

        Raises:
            StoreUnavailable: not now.
        """
        is_awaited = False
        for cluster, decision in self.known.items():
            there, attempt = logged.get(cluster), _Attempt(incarnation, cluster, decision.at)
            if self._log is None or attempt in self._attempts or _is_there(decision, there):
                continue
            try:
                await self._log.append(decision.as_delta(cluster), there.sequence if there else 0)
                logger.warning("a decision that the log had lost is in it again", extra=_described(cluster, decision))
                is_awaited = True
            except Conflict:
                is_awaited = True  # somebody else did so, or decided again
            except (NotPermitted, TooLarge) as error:
                described = _described(cluster, decision) | {"reason": str(error)}
                logger.warning("a decision that the log had lost is not written into it", extra=described)
            self._attempts.add(attempt)
        return is_awaited


def _is_there(decision: Decision, logged: Delta | None) -> bool:
    return logged is not None and Decision.of(logged).at >= decision.at


def _described(cluster: str, decision: Decision) -> dict[str, str]:
    return {"cluster": cluster, "by": decision.by, "decided": decision.at.isoformat()}
