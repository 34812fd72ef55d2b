"""How this worker fares with its table while it is rolled out: what the translator compares replicas by.

Nothing is counted for it: the proxy counts each request by route and status anyway. What comes since a step began is
what there is now less what there was then.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from headgate.common.heartbeats import RolloutReport, TrafficCounts
from headgate.common.snapshot import Manifest, RolloutPhase, Version
from headgate.gateway.proxy.stats import ProxyStats, Tally
from headgate.gateway.proxy.traffic import LATENCY_BOUNDS_S

if TYPE_CHECKING:
    from headgate.gateway.table.compiled_table import CompiledTable


class _Step(NamedTuple):
    """A step of a rollout, as this worker has taken it."""

    begun: Version
    is_next: bool
    hosts: frozenset[str]
    upstreams: frozenset[str]
    changed: Tally
    all: Tally


class RolloutWatch:
    """Sums up the requests of one worker since a rollout took a step.

    Args:
        stats: the proxy's counters.
        replica: name of this one.
    """

    def __init__(self, stats: ProxyStats, replica: str) -> None:
        self._stats = stats
        self._replica = replica
        self._started = datetime.now(UTC)
        self._step: _Step | None = None

    @property
    def is_counting(self) -> bool:
        """Whether requests are summed up for a rollout."""
        return self._step is not None

    @property
    def is_next(self) -> bool:
        """Whether this replica serves the next table before the others."""
        return self._step is not None and self._step.is_next

    def note_applied(self, manifest: Manifest, table: "CompiledTable") -> None:
        """Take the manifest that is served now, and its table."""
        rollout = manifest.rollout
        if rollout is None or rollout.phase is not RolloutPhase.STEPPING:
            if self._step is not None:
                self._stats.watch(())
                self._step = None
            return
        if self._step is not None and self._step.begun == rollout.begun:
            return
        names = {kind: frozenset(changed.names) for kind, changed in rollout.changed.items()}
        changed_hosts = names.get("hosts", frozenset())
        self._stats.watch(changed_hosts)
        for name in changed_hosts:
            table.recount(name)
        upstreams = names.get("upstreams", frozenset())
        tallies = self._stats.tally(changed_hosts, upstreams)
        is_next = self._replica in rollout.replicas
        self._step = _Step(rollout.begun, is_next, changed_hosts, upstreams, *tallies)

    def report(self) -> RolloutReport | None:
        """Return what came since the step began; None while no table is rolled out."""
        step = self._step
        if step is None:
            return None
        changed, everything = self._stats.tally(step.hosts, step.upstreams)
        return RolloutReport(
            step=step.begun,
            is_next=step.is_next,
            started=self._started,
            changed=_since(step.changed, changed),
            all=_since(step.all, everything),
        )


def _since(before: Tally, now: Tally) -> TrafficCounts:
    return TrafficCounts(
        errors=now.errors - before.errors,
        bounds_s=LATENCY_BOUNDS_S,
        buckets=tuple(late - early for early, late in zip(before.buckets, now.buckets, strict=True)),
    )
