"""Where the time of a change goes, by what was said on the bus between the file and the traffic."""

import bisect
from collections.abc import Sequence

from bench.recording.tap import POINTERS, Heard
from bench.reporting.figures import Distribution
from bench.setup.changes import Change
from headgate.common.deltas import DELTA_PREFIX

STAGES = ("file to delta", "delta to revision", "revision to traffic")


def stages_of(changes: Sequence[Change], heard: Sequence[Heard]) -> dict[str, Distribution]:
    """Split each change by what was said on the bus between file and traffic; changes that cannot be are left out."""
    deltas = [each.at for each in heard if each.subject.startswith(DELTA_PREFIX)]
    revisions = [each.at for each in heard if each.subject.startswith(POINTERS)]
    splits: list[tuple[float, float, float]] = []
    for change in changes:
        delta = _first_after(deltas, change.written)
        revision = _first_after(revisions, delta) if delta is not None else None
        if delta is not None and revision is not None and revision <= change.served:
            splits.append((delta - change.written, revision - delta, change.served - revision))
    if not splits:
        return {}
    return {stage: Distribution.of([split[number] * 1e3 for split in splits]) for number, stage in enumerate(STAGES)}


def _first_after(times: Sequence[float], moment: float) -> float | None:
    position = bisect.bisect_left(times, moment)
    return times[position] if position < len(times) else None
