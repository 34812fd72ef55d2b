"""What one translator sees of a rollout from look to look: times, and replicas that end.

Nothing of it is written down. Another translator that takes over begins its window again.
"""

from collections.abc import Sequence
from typing import NamedTuple

from headgate.common.heartbeats import TTL_S, Heartbeat, RolloutReport
from headgate.common.snapshot import Rollout, RolloutPhase, Version
from headgate.operations.rollouts.figures import compare, describe, judge_rollout
from headgate.translator.serving.fleet import Fleet
from headgate.translator.serving.rollout.decision import Observation, RolloutPolicy

SILENT_S = TTL_S / 2
"""A replica that leaves says so; one that is gone after a longer silence has ended without a word."""


class _Worker(NamedTuple):
    """A worker of a chosen replica, as it was last heard of."""

    started: object
    said_at: object
    heard_s: float
    ends: int = 0
    """How often it ended."""


class Observer:
    """Watches the replicas that a rollout has chosen."""

    def __init__(self) -> None:
        self._begun: Version | None = None
        self._seen_s = 0.0
        self._served_s: float | None = None
        self._alone_s: float | None = None
        self._workers: dict[tuple[str, int], _Worker] = {}

    def look(
        self, rollout: Rollout | None, beats: Sequence[Heartbeat], policy: RolloutPolicy, now_s: float
    ) -> Observation:
        """Say what there is to see at a time, in seconds of a clock that never goes back.

        Args:
            rollout: of the current revision.
            beats: of all live workers of the table.
            policy: for its thresholds.
            now_s: the time.
        """
        live = tuple(replica.name for replica in Fleet.of(beats, beats[0].table).replicas) if beats else ()
        if rollout is None or rollout.phase is not RolloutPhase.STEPPING:
            self._begun = None
            return Observation(live)
        if self._begun != rollout.begun:
            self._begun, self._seen_s, self._served_s, self._alone_s = rollout.begun, now_s, None, None
            self._workers.clear()
        chosen = [beat for beat in beats if beat.replica in rollout.replicas]
        if self._served_s is None and _is_taken(rollout, chosen, live):
            self._served_s = now_s
        if len(live) != 1:
            self._alone_s = None
        elif self._alone_s is None:
            self._alone_s = now_s
        found = compare(rollout, beats)
        verdict = judge_rollout(rollout, found, policy.thresholds)
        return Observation(
            live,
            ended=self._find_ended(rollout, chosen, now_s),
            refusal=_refusal(rollout, chosen),
            waited_s=now_s - self._seen_s,
            served_s=0.0 if self._served_s is None else now_s - self._served_s,
            alone_s=0.0 if self._alone_s is None else now_s - self._alone_s,
            verdict=verdict,
            figures=describe(rollout, found, verdict),
        )

    def _find_ended(self, rollout: Rollout, chosen: Sequence[Heartbeat], now_s: float) -> tuple[str, ...]:
        before = {name: self._ends_of(name) for name in rollout.replicas}
        for beat in chosen:
            if beat.rollout is not None and beat.rollout.step == rollout.begun:
                self._note(beat, beat.rollout, now_s)
        ended = [name for name in rollout.replicas if self._ends_of(name) > before[name]]
        present = {beat.replica for beat in chosen}
        gone = {key: known for key, known in self._workers.items() if key[0] not in present}
        for key in gone:
            del self._workers[key]
        silent = {name for (name, _), known in gone.items() if now_s - known.heard_s > SILENT_S}
        return (*ended, *sorted(silent))

    def _note(self, beat: Heartbeat, report: RolloutReport, now_s: float) -> None:
        key = (beat.replica, beat.worker)
        known = self._workers.get(key)
        if known is None:
            self._workers[key] = _Worker(report.started, beat.at, now_s)
            return
        heard_s = now_s if known.said_at != beat.at else known.heard_s
        ends = known.ends + (known.started != report.started)
        self._workers[key] = _Worker(report.started, beat.at, heard_s, ends)

    def _ends_of(self, replica: str) -> int:
        """A replica that is started again has all of its workers end at once: that is one end."""
        return max((known.ends for (name, _), known in self._workers.items() if name == replica), default=0)


def _is_taken(rollout: Rollout, chosen: Sequence[Heartbeat], live: Sequence[str]) -> bool:
    serving = [beat for beat in chosen if beat.rollout and beat.rollout.step == rollout.begun and beat.rollout.is_next]
    there = [name for name in rollout.replicas if name in live]
    return len(serving) == len(chosen) and len(there) == len(rollout.replicas)


def _refusal(rollout: Rollout, chosen: Sequence[Heartbeat]) -> str:
    for beat in chosen:
        if beat.refusal is not None and beat.refusal.version >= rollout.begun:
            return f"{beat.replica} cannot apply it: {beat.refusal.reason}"
    return ""
