"""What the command line costs at scale: `check` of many manifests; `plan`, `explain` and `status` of what is served.

Processor time, not seconds on the clock, as a user's machine has other work. Each command runs three times; the
report has the median.
"""

import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from bench.errors import BenchError
from bench.reporting.promise import Promise, below
from bench.reporting.tables import table
from bench.servers.origin import start_origin
from bench.setup.manifests import (
    LOOPBACK,
    SEPARATOR,
    endpoint_slice,
    ingress,
    replace_file,
    service,
    site_host,
    site_name,
    write_class,
    write_sites,
)
from bench.setup.processes import free_ports
from bench.setup.stack import HEADGATE, Stack

RUNS = 3
DOCUMENTS_PER_FILE = 100
PROMISED = 10_000
"""Ingresses that are checked, and planned against, within `PROCESSOR_S`."""
PROCESSOR_S = 5.0
_READY_S = 180.0
_SETTLE_S = 10.0
_COMMAND_S = 180.0


@dataclass(frozen=True)
class CommandsPlan:
    """What to measure."""

    ingresses: int
    services: int
    """That the Ingresses lead to in the one case; in the other each has one of its own."""


@dataclass(frozen=True)
class Cost:
    """What a command took, at the median of its runs."""

    command: str
    of: str
    ingresses: int
    clock_s: float
    processor_s: float


@dataclass
class CommandsResult:
    """Each command, measured."""

    costs: list[Cost]
    failures: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)

    def promises(self) -> Iterator[Promise]:
        """What must hold of large tables."""
        for cost in self.costs:
            if cost.ingresses >= PROMISED:
                yield below(f"`{cost.command}`, {cost.of}", PROCESSOR_S, cost.processor_s, "s of processor time")

    def markdown(self) -> str:
        """The part of the report."""
        rows = [[f"`{one.command}`", one.of, f"{one.processor_s:.1f}", f"{one.clock_s:.1f}"] for one in self.costs]
        return "\n\n".join(["## Commands", table(("command", "of", "processor s", "clock s"), rows)])


def measure_commands(plan: CommandsPlan, folder: Path) -> CommandsResult:
    """Write manifests, check them, serve them, ask about them.

    Raises:
        BenchError: Headgate does not start, or a command fails.
    """
    shutil.rmtree(folder, ignore_errors=True)
    own, shared, planned = folder / "own", folder / "shared", folder / "planned.yaml"
    port, *_ = free_ports(1)
    write_sites(own, plan.ingresses, [port], DOCUMENTS_PER_FILE)
    write_class(own)
    _write_shared(shared, plan, port)
    replace_file(planned, SEPARATOR.join(_site("planned", port)))
    of_own = f"{plan.ingresses:,} Ingresses with a Service and an EndpointSlice each"
    of_shared = f"{plan.ingresses:,} Ingresses that share {plan.services:,} Services"
    asked = {
        "headgate plan": ["plan", str(planned)],
        "headgate explain": ["explain", "GET", f"http://{site_host(0)}/"],
        "headgate status": ["status"],
    }
    costs = [
        _cost("headgate check", of_shared, plan, ["check", str(shared)]),
        _cost("headgate check", of_own, plan, ["check", str(own)]),
    ]
    with start_origin(folder / "origin", [], named_ports=[port]):
        costs += _costs_beside(shared, of_shared, plan, str(port), {"headgate plan": asked["headgate plan"]})
        costs += _costs_beside(own, of_own, plan, str(port), asked)
    return CommandsResult(costs)


def _costs_beside(
    served: Path, of: str, plan: CommandsPlan, port: str, asked: Mapping[str, Sequence[str]]
) -> Iterator[Cost]:
    """Serve manifests, and run commands that ask about them."""
    with Stack(served, served.with_name(f"{served.name}-stack")) as stack:
        stack.wait_until_serving(site_host(plan.ingresses - 1), port, _READY_S)
        time.sleep(_SETTLE_S)
        for name, words in asked.items():
            flags = [f"--data-dir={stack.data_dir}"]
            yield _cost(name, f"a running Headgate, {of}", plan, [words[0], *flags, *words[1:]], codes=(0, 1))


def _write_shared(folder: Path, plan: CommandsPlan, port: int) -> None:
    write_class(folder)
    backends = chain.from_iterable(
        (service(site_name(index)), endpoint_slice(site_name(index), port, LOOPBACK)) for index in range(plan.services)
    )
    replace_file(folder / "services.yaml", SEPARATOR.join(backends))
    for begin in range(0, plan.ingresses, DOCUMENTS_PER_FILE):
        sites = range(begin, min(begin + DOCUMENTS_PER_FILE, plan.ingresses))
        written = [ingress(site_name(one), site_host(one), site_name(one % plan.services)) for one in sites]
        replace_file(folder / f"ingresses-{begin:06d}.yaml", SEPARATOR.join(written))


def _site(name: str, port: int) -> tuple[str, str, str]:
    return service(name), endpoint_slice(name, port), ingress(name, f"{name}.bench.example", name)


def _cost(name: str, of: str, plan: CommandsPlan, words: Sequence[str], codes: Sequence[int] = (0,)) -> Cost:
    runs = [_run(words, codes) for _ in range(RUNS)]
    clock_s, processor_s = (statistics.median(run[at] for run in runs) for at in (0, 1))
    return Cost(name, of, plan.ingresses, clock_s, processor_s)


def _run(words: Sequence[str], codes: Sequence[int]) -> tuple[float, float]:
    """Run a command; return its seconds on the clock and of processor time."""
    began, before = time.monotonic(), _children_s()
    done = subprocess.run([*HEADGATE, *words], capture_output=True, text=True, timeout=_COMMAND_S, check=False)
    if done.returncode not in codes:
        raise BenchError(
            f"headgate {' '.join(words)} ended with {done.returncode}: {(done.stderr or done.stdout)[-300:]}"
        )
    return time.monotonic() - began, _children_s() - before


def _children_s() -> float:
    used = os.times()
    return used.children_user + used.children_system
