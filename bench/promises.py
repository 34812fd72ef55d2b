"""What the project promises of its speed, beside what a run measured."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.propagation import PropagationResult
from bench.scale import ScaleResult
from bench.throughput import ThroughputResult

OF_NGINX = 0.5
OF_ENVOY = 1.5
PROPAGATION_P99_MS = 100.0
MANY = 10_000
COLD_START_S = 20.0
STALL_MS = 50.0
MEASURED = "Headgate"


@dataclass(frozen=True)
class Promise:
    """One figure."""

    what: str
    promised: str
    measured: str
    is_kept: bool

    def cells(self) -> list[str]:
        """As a row of a table."""
        return [self.what, self.promised, self.measured, "kept" if self.is_kept else "missed"]


def promises(
    throughput: ThroughputResult | None, propagation: Sequence[PropagationResult], scale: Sequence[ScaleResult]
) -> list[Promise]:
    """Compare what was measured, and nothing that was not."""
    return [
        *(_of_throughput(throughput) if throughput else ()),
        *(promise for each in propagation for promise in _of_propagation(each)),
        *(promise for each in scale if each.ingresses >= MANY for promise in _of_scale(each)),
    ]


def _of_throughput(result: ThroughputResult) -> Iterator[Promise]:
    for title, rows in result.rows.items():
        for row in rows:
            if row.proxy != MEASURED:
                continue
            for peer, ratio, least in (("nginx", row.of_nginx, OF_NGINX), ("Envoy", row.of_envoy, OF_ENVOY)):
                if ratio is not None:
                    what = f"throughput of {peer}, {title}"
                    yield Promise(what, f"at least {least:g}", f"{ratio:.3f}", ratio >= least)


def _of_propagation(result: PropagationResult) -> Iterator[Promise]:
    p99 = result.took.p99
    what = f"endpoint change to traffic, p99, {result.title}"
    yield Promise(what, f"under {PROPAGATION_P99_MS:g} ms", f"{p99:.1f} ms", p99 < PROPAGATION_P99_MS)
    yield Promise(f"failed requests meanwhile, {result.title}", "0", str(result.failed), result.failed == 0)


def _of_scale(result: ScaleResult) -> Iterator[Promise]:
    cold, stall = result.cold_start_s, result.traffic.changing.max
    yield Promise(f"cold start, {result.title}", f"under {COLD_START_S:g} s", f"{cold:.1f} s", cold < COLD_START_S)
    yield Promise(f"longest stall, {result.title}", f"at most {STALL_MS:g} ms", f"{stall:.1f} ms", stall <= STALL_MS)
