"""Proxies beside each other under the same load, in interleaved rounds.

The proxy has one core, the origin and the load share the other. In every round each proxy has its turn, in an order
that rotates, so that a drift of the machine meets all alike; ratios are taken within a round and then their median. A
proxy that leaves part of its core idle is bounded by the load, not by itself: `busy` shows it, and `per core` divides
by it.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.clients.load import LoadResult
from bench.errors import BenchError
from bench.peers import Peer, Running
from bench.reporting.figures import Spread
from bench.reporting.promise import MEASURED, Promise, at_least
from bench.reporting.tables import table
from bench.setup.correctness import check_answers
from bench.setup.processes import need_program
from bench.setup.workload import Workload

PROXY_CORE = 0
LOAD_CORE = 1
DIRECT = "origin, no proxy"

Targets = Mapping[str, float]
"""Proxy to the least share of its throughput that is promised."""
Round = Callable[[Running], LoadResult]
"""Put load on a proxy once."""


@dataclass(frozen=True)
class Row:
    """One proxy in one scenario."""

    proxy: str
    requests_per_s: Spread
    per_core: float
    """Requests per second of processor time, median."""
    busy: float
    """Share of its core that the proxy used, median."""
    p50_ms: float
    p99_ms: Spread
    megabytes_per_s: float
    of_nginx: float | None
    """Median over rounds of the throughput, or that per busy core, divided by nginx' in the same round."""
    of_envoy: float | None
    errors: int
    others: float = 0.0
    """Share of the proxy's core that other work used in the worst round."""
    of_haproxy: float | None = None


@dataclass
class ComparisonResult:
    """All rows, by scenario."""

    heading: str = ""
    counted: str = "requests/s"
    """Head of the first column of figures."""
    by_core: bool = False
    """Ratios compare figures per busy core, for loads that cost the client more than the proxy."""
    rows: dict[str, list[Row]] = field(default_factory=dict)
    targets: dict[str, Targets] = field(default_factory=dict)
    """By scenario; scenarios without are not promised."""
    commands: dict[str, str] = field(default_factory=dict)
    """By scenario, the command of the load."""
    versions: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    """Proxy, or proxy and scenario, to the reason."""
    failures: list[str] = field(default_factory=list)

    def promises(self) -> Iterator[Promise]:
        """Compare the rows of Headgate with the targets."""
        for title, rows in self.rows.items():
            targets = self.targets.get(title, {})
            for row in rows:
                if row.proxy != MEASURED:
                    continue
                for peer, ratio in (("nginx", row.of_nginx), ("HAProxy", row.of_haproxy), ("Envoy", row.of_envoy)):
                    if ratio is not None and peer in targets:
                        yield at_least(f"{self.counted} of {peer}, {title}", targets[peer], ratio)

    def markdown(self) -> str:
        """The part of the report."""
        return "\n\n".join([f"## {self.heading}", *self.tables(), self.ceiling(), *self.omissions()])

    def tables(self) -> list[str]:
        """A table for each scenario."""
        return [self._table(title, rows) for title, rows in self.rows.items()]

    def _table(self, title: str, rows: Sequence[Row]) -> str:
        heads = ("", self.counted, *_HEADS)
        command = f"\n\n`{self.commands[title]}`" if title in self.commands else ""
        return f"### {title}\n\n" + table(heads, [_cells(row) for row in rows]) + command

    def ceiling(self) -> str:
        """Whether the figures are the proxies': origin and load were fast enough, and the machine was quiet."""
        rows = [(title, row) for title, rows in self.rows.items() for row in rows if row.proxy != DIRECT]
        bounded = [f"{row.proxy} ({title}: {row.busy:.0%} busy)" for title, row in rows if row.busy < _WHOLE]
        disturbed = max((row.others for _, row in rows), default=0.0)
        parts = ["Every proxy used its whole core: the origin and the load were not the bottleneck."]
        if bounded:
            named = "; ".join(bounded)
            parts = [f"Not the proxy was the bottleneck of: {named}. That is a lower bound; compare `per busy core`."]
        if disturbed > _QUIET:
            parts.append(f"**The machine was not quiet: other work used up to {disturbed:.0%} of the proxies' core.**")
        return " ".join(parts)

    def omissions(self) -> list[str]:
        """What was left out, a line each."""
        return [f"{name} was left out: {reason}." for name, reason in self.left_out.items()]


_HEADS = ("spread", "of nginx", "of HAProxy", "of Envoy", "p50 ms", "p99 ms", "MB/s", "busy", "per busy core", "errors")
_WHOLE = 0.95
_QUIET = 0.03


def _cells(row: Row) -> list[str]:
    spread = row.requests_per_s
    is_proxy = row.proxy != DIRECT
    return [
        row.proxy,
        f"{spread.median:,.0f}",
        f"{spread.low:,.0f} to {spread.high:,.0f}" if is_proxy else "",
        f"{row.of_nginx:.2f}" if row.of_nginx is not None else "",
        f"{row.of_haproxy:.2f}" if row.of_haproxy is not None else "",
        f"{row.of_envoy:.2f}" if row.of_envoy is not None else "",
        f"{row.p50_ms:.2f}",
        f"{row.p99_ms.median:.2f}",
        f"{row.megabytes_per_s:,.0f}",
        f"{row.busy:.0%}" if is_proxy else "",
        f"{row.per_core:,.0f}" if is_proxy else "",
        str(row.errors),
    ]


def need_programs(*pairs: tuple[str, str]) -> None:
    """Raise BenchError unless programs, given with their packages, are there."""
    for program, package in pairs:
        if reason := need_program(program, package):
            raise BenchError(reason)


@contextlib.contextmanager
def running(
    peers: Sequence[Peer], workload: Workload, folder: Path, result: ComparisonResult
) -> Iterator[list[Running]]:
    """Start the proxies and check what they answer. One that cannot be started is left out and said so."""
    with contextlib.ExitStack() as stack:
        proxies = []
        for peer in peers:
            if reason := peer.missing():
                result.left_out[peer.name] = reason
                continue
            try:
                proxy = peer.start(workload, folder / peer.name.lower(), core=PROXY_CORE, side_core=LOAD_CORE)
                stack.callback(proxy.stop)
                check_answers(proxy, workload)
            except (BenchError, OSError) as error:
                result.failures.append(f"{peer.name}: {error}")
                continue
            result.versions[peer.name] = proxy.version
            proxies.append(proxy)
        yield proxies


def in_turns(proxies: Sequence[Running], rounds: int) -> Iterator[tuple[int, Running]]:
    """Give the number of the round, from 1, and a proxy whose turn it is."""
    for number in range(rounds):
        first = number % len(proxies) if proxies else 0
        for proxy in (*proxies[first:], *proxies[:first]):
            proxy.ensure_running()
            yield number + 1, proxy


def compare(title: str, proxies: Sequence[Running], rounds: int, load: Round, result: ComparisonResult) -> None:
    """Run the rounds of a scenario and add its rows; errors under load are failures."""
    found: dict[str, list[LoadResult]] = {proxy.name: [] for proxy in proxies}
    for number, proxy in in_turns(proxies, rounds):
        done = load(proxy)
        found[proxy.name].append(done)
        if done.errors:
            result.failures.append(f"{proxy.name}, {title}, round {number}: {done.errors}")
    result.rows[title] = [make_row(name, found, by_core=result.by_core) for name in found]


def make_row(name: str, rounds: Mapping[str, Sequence[LoadResult]], *, by_core: bool = False) -> Row:
    """Summarise the rounds of one proxy beside those of the others."""
    own = rounds[name]
    worth = _per_core if by_core else _per_second
    return Row(
        proxy=name,
        requests_per_s=Spread.of([each.requests_per_s for each in own]),
        per_core=median([_per_core(each) for each in own]),
        busy=median([each.busy for each in own]),
        p50_ms=median([each.p50_ms for each in own]),
        p99_ms=Spread.of([each.p99_ms for each in own]),
        megabytes_per_s=median([each.megabytes_per_s for each in own]),
        of_nginx=_ratio(worth, own, rounds.get("nginx")),
        of_haproxy=_ratio(worth, own, rounds.get("HAProxy")),
        of_envoy=_ratio(worth, own, rounds.get("Envoy")),
        errors=sum(sum(each.errors.values()) for each in own),
        others=max(each.others for each in own),
    )


def _per_second(done: LoadResult) -> float:
    return done.requests_per_s


def _per_core(done: LoadResult) -> float:
    return done.requests_per_s / done.busy if done.busy else 0.0


def _ratio(
    worth: Callable[[LoadResult], float], own: Sequence[LoadResult], other: Sequence[LoadResult] | None
) -> float | None:
    pairs = [(worth(mine), worth(theirs)) for mine, theirs in zip(own, other or (), strict=bool(other))]
    if not pairs or not all(theirs for _, theirs in pairs):
        return None
    return median([mine / theirs for mine, theirs in pairs])
