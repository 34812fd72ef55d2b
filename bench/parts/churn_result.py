"""What churn found, at each size, beside what is promised of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.parts.scale import COLD_STEPS
from bench.recording.stages import STAGES
from bench.reporting.figures import Distribution
from bench.reporting.promise import Promise, below, none_of
from bench.reporting.tables import table

ENDPOINT, NEW_INGRESS = "endpoint", "new Ingress"


@dataclass(frozen=True)
class Promised:
    """Bounds at one size."""

    idle_ms: float
    """A change of endpoints in a quiet world."""
    busy_ms: float
    """The same among other changes, and right after a start."""
    new_ingress_ms: float
    cold_start_s: float
    gateway_mb: float
    translator_mb: float

    def change_ms(self, phase: str) -> float:
        """Return the bound of a change of endpoints."""
        return self.idle_ms if phase == "idle" else self.busy_ms


PROMISED = {
    10_000: Promised(20.0, 50.0, 50.0, 15.0, 300.0, 1500.0),
    100_000: Promised(50.0, 50.0, 100.0, 60.0, 700.0, 2000.0),
}
"""By number of Ingresses."""


@dataclass(frozen=True)
class Measured:
    """Changes of one kind in one phase, in milliseconds."""

    took: Distribution
    """From the publication to the answer."""
    stored: Distribution
    """From the publication to the log's confirmation: the disk is in it, and not in the way of the change."""
    stalled: int
    """Changes during which a write to the log took longer than `STALL_MS`."""
    calm_p99: float
    """The 99th percentile of all others."""
    stages: dict[str, Distribution] = field(default_factory=dict)


@dataclass(frozen=True)
class Churning:
    """What went on meanwhile."""

    published: int
    lost: int
    """Changes that the log did not confirm."""
    took_s: float
    revisions: int
    cpu: dict[str, float]
    """Service to the share of a core that it used."""


@dataclass(frozen=True)
class ChurnResult:
    """One plan, measured."""

    title: str
    ingresses: int
    rate: int
    cold_start_s: float
    cold_steps_s: dict[str, float]
    measured: dict[str, dict[str, Measured]]
    """Phase to kind of change."""
    churning: Churning
    memory_mb: dict[str, dict[str, float]]
    """By moment and service."""
    peak_mb: dict[str, float]
    requests: int
    failed: int
    failures: list[str]

    def promises(self) -> Iterator[Promise]:
        """Compare what was measured with what is promised at this size."""
        yield none_of(f"failed requests, {self.title}", self.failed)
        if (promised := PROMISED.get(self.ingresses)) is None:
            return
        size, idle = f"{self.ingresses:,} Ingresses", self.measured["idle"]
        for phase, words in (("idle", "alone"), ("just started", "from the first second after a start on")):
            yield below(
                f"endpoint change to traffic, p99, {size}, {words}", promised.change_ms(phase), self.p99(phase), "ms"
            )
        words = f"endpoint change to traffic, p99, {size}, during {self.rate} others a second"
        yield below(words, promised.busy_ms, self.p99("churn"), "ms")
        yield below(f"new Ingress to traffic, p99, {size}", promised.new_ingress_ms, idle[NEW_INGRESS].took.p99, "ms")
        yield below(f"cold start, {size}", promised.cold_start_s, self.cold_start_s, "s")
        for service, bound in (("gateway", promised.gateway_mb), ("translator", promised.translator_mb)):
            yield below(f"{service}, most memory, {size}", bound, self.peak_mb[service], "MB")

    def p99(self, phase: str) -> float:
        """Of changes of endpoints in a phase, in milliseconds."""
        return self.measured[phase][ENDPOINT].took.p99


@dataclass(frozen=True)
class ChurnPart:
    """All sizes that were measured."""

    results: Sequence[ChurnResult]
    failed_sizes: Sequence[str] = ()
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def failures(self) -> list[str]:
        """What went wrong."""
        return [*(failure for each in self.results for failure in each.failures), *self.failed_sizes]

    def promises(self) -> Iterable[Promise]:
        """Compare what was measured, and nothing that was not."""
        return [promise for each in self.results for promise in each.promises()]

    def markdown(self) -> str:
        """The part of the report."""
        parts = ["## Churn", _changes(self.results), _stages(self.results), _churning(self.results)]
        if len(self.results) > 1:
            parts.append(_by_size(self.results))
        return "\n\n".join([*parts, _starts(self.results)])


def _changes(results: Sequence[ChurnResult]) -> str:
    heads = (
        "publication to traffic, ms",
        "changes",
        "p50",
        "p99",
        "max",
        "stored p50",
        "max",
        "stalled",
        "p99 without",
    )
    rows = [
        [
            *(f"{each.title}, {phase}, {kind}", str(one.took.count)),
            *(f"{value:.1f}" for value in (one.took.p50, one.took.p99, one.took.max, one.stored.p50, one.stored.max)),
            *(str(one.stalled), f"{one.calm_p99:.1f}"),
        ]
        for each in results
        for phase, kinds in each.measured.items()
        for kind, one in kinds.items()
    ]
    return table(heads, rows)


def _stages(results: Sequence[ChurnResult]) -> str:
    heads = ("p50 / p99, ms", *STAGES[1:])
    rows = [
        [
            f"{each.title}, {phase}, {kind}",
            *(f"{one.stages[stage].p50:.1f} / {one.stages[stage].p99:.1f}" for stage in STAGES[1:]),
        ]
        for each in results
        for phase, kinds in each.measured.items()
        for kind, one in kinds.items()
        if one.stages
    ]
    return table(heads, rows)


def _churning(results: Sequence[ChurnResult]) -> str:
    services = list(dict.fromkeys(name for each in results for name in each.churning.cpu))
    heads = ("churn", "changes/s", "seconds", "revisions", "requests", "failed", *(f"{name} core" for name in services))
    rows = [
        [
            *(each.title, f"{each.churning.published / each.churning.took_s:.0f}", f"{each.churning.took_s:.0f}"),
            *(f"{each.churning.revisions:,}", f"{each.requests:,}", str(each.failed)),
            *(f"{each.churning.cpu.get(name, 0):.2f}" for name in services),
        ]
        for each in results
    ]
    return table(heads, rows)


def _starts(results: Sequence[ChurnResult]) -> str:
    services = list(dict.fromkeys(name for each in results for name in each.memory_mb["settled"]))
    heads = ("cold start, s; memory, MB: settled, after churn (most)", "cold start", *COLD_STEPS, *services)
    rows = [
        [
            *(each.title, f"{each.cold_start_s:.1f}"),
            *(f"{each.cold_steps_s[step]:.1f}" if step in each.cold_steps_s else "" for step in COLD_STEPS),
            *(
                f"{each.memory_mb['settled'].get(name, 0):.0f}, {each.memory_mb['after'].get(name, 0):.0f}"
                f" ({each.peak_mb.get(name, 0):.0f})"
                for name in services
            ),
        ]
        for each in results
    ]
    return table(heads, rows)


def _by_size(results: Sequence[ChurnResult]) -> str:
    """Cost against size: what grows faster than the number of Ingresses is seen at once."""
    heads = ("cost against size", "cold start, ms", "translator, KB", "gateway, KB", "change p50, ms", "p99, ms")
    rows = [
        [
            f"{each.ingresses:,} Ingresses, for each of them",
            f"{each.cold_start_s * 1e3 / each.ingresses:.2f}",
            *(f"{each.peak_mb[name] * 1e3 / each.ingresses:.1f}" for name in ("translator", "gateway")),
            *(f"{value:.1f}" for value in (each.measured["idle"][ENDPOINT].took.p50, each.p99("idle"))),
        ]
        for each in results
    ]
    sizes = ", ".join(f'"{each.ingresses:,}"' for each in results)
    starts = ", ".join(f"{each.cold_start_s:.1f}" for each in results)
    changes = ", ".join(f"{each.p99('idle'):.1f}" for each in results)
    charts = [
        _chart("Cold start by number of Ingresses, seconds", sizes, starts),
        _chart("Change of an endpoint to traffic, p99, by number of Ingresses, milliseconds", sizes, changes),
    ]
    return "\n\n".join([table(heads, rows), *charts])


def _chart(title: str, sizes: str, values: str) -> str:
    return f'```mermaid\nxychart-beta\n    title "{title}"\n    x-axis [{sizes}]\n    line [{values}]\n```'
