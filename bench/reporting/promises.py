"""What the project promises of its speed, beside what a run measured."""

from collections.abc import Iterable, Iterator, Sequence

from bench.parts.propagation import ALONE, PropagationResult
from bench.parts.scale import ScaleResult
from bench.reporting.promise import PartResult, Promise, below, none_of

PROPAGATION_P99_MS = 20.0
ALONE_P99_MS = 10.0
MANY = 10_000
GREAT = 100_000
COLD_START_S, COLD_START_OF_GREAT_S = 15.0, 60.0
"""Of `MANY` to less than `GREAT`, and of as many as that."""
WARM_START_S = 10.0
STALL_MS = 20.0


def promises(
    parts: Iterable[PartResult], propagation: Sequence[PropagationResult], scale: Sequence[ScaleResult]
) -> list[Promise]:
    """Compare what was measured, and nothing that was not."""
    return [
        *(promise for part in parts for promise in part.promises()),
        *(promise for each in propagation for promise in _of_propagation(each)),
        *(promise for each in scale if each.sites >= MANY for promise in _of_scale(each)),
    ]


def _of_propagation(result: PropagationResult) -> Iterator[Promise]:
    what = f"endpoint change to traffic, p99, {result.title}"
    bound_ms = ALONE_P99_MS if result.title == ALONE else PROPAGATION_P99_MS
    yield below(what, bound_ms, result.took.p99, "ms")
    yield none_of(f"failed requests meanwhile, {result.title}", result.failed)


def _of_scale(result: ScaleResult) -> Iterator[Promise]:
    stall = result.traffic.changing.max
    is_great = result.sites >= GREAT
    yield below(
        f"cold start, {result.title}",
        COLD_START_OF_GREAT_S if is_great else COLD_START_S,
        result.cold_start_s,
        "s",
    )
    if is_great:
        yield below(f"warm start, {result.title}", WARM_START_S, result.warm_start_s, "s")
    yield Promise(f"longest stall, {result.title}", f"at most {STALL_MS:g} ms", f"{stall:.1f} ms", stall <= STALL_MS)
