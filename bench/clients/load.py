"""Closed-loop load by wrk: one thread, so many connections, each sending its next request when the answer is in.

`status` counts answers of 400 and above; together with the check before the rounds, that every host answers 200 with
the right body, a round without errors is a round of right answers.
"""

import json
import shlex
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BenchError
from bench.setup.processes import core_seconds, cpu_seconds
from bench.setup.workload import DOMAIN

_SCRIPT = Path(__file__).with_name("load.lua")
_ERRORS = ("connect", "read", "write", "status", "timeout")


@dataclass(frozen=True)
class Load:
    """One round of load."""

    url: str
    path: str
    hosts: int
    connections: int
    seconds: float
    name: str = "route-%04d"
    """Of a host, by its number."""

    def argv(self, core: int) -> list[str]:
        """The command, pinned to a core."""
        argv = ["taskset", "--cpu-list", str(core), "wrk", "--threads", "1", "--connections", str(self.connections)]
        argv += ["--duration", f"{max(1, round(self.seconds))}s", "--timeout", "10s", "--script", str(_SCRIPT)]
        return [*argv, self.url, "--", self.path, str(self.hosts), DOMAIN, self.name]

    def command(self, core: int) -> str:
        """The command as one reads it, with the script's path from the checkout."""
        return shlex.join(self.argv(core)).replace(str(_SCRIPT), "bench/load.lua")


@dataclass(frozen=True)
class LoadResult:
    """What a round measured."""

    requests_per_s: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float
    megabytes_per_s: float
    """Of 10^6 bytes, response heads included."""
    errors: dict[str, int]
    """By kind; only kinds that occurred."""
    busy: float
    """Share of one core that the measured processes used, 0 to 1."""
    others: float
    """Share of the measured core that other processes used: the machine was not quiet."""
    requests: int = 0
    """Answered ones."""


@dataclass(frozen=True)
class Observed:
    """What a load command printed, and the processor time that others used while it ran."""

    output: str
    busy: float
    others: float


def observe(argv: Sequence[str], *, measured: Sequence[int], measured_core: int) -> Observed:
    """Run a load command to its end; measure the processor time of the processes `measured` meanwhile, and of others on
    their `measured_core`.

    Raises:
        BenchError: it failed.
    """
    cpu, all_cpu, clock = cpu_seconds(measured), core_seconds(measured_core), time.monotonic()
    ran = subprocess.run(argv, capture_output=True, text=True)
    lasted = time.monotonic() - clock
    busy = (cpu_seconds(measured) - cpu) / lasted
    others = max(0.0, (core_seconds(measured_core) - all_cpu) / lasted - busy)
    if ran.returncode != 0:
        raise BenchError(f"`{shlex.join(argv)}` ended with code {ran.returncode}: {(ran.stderr or ran.stdout)[-500:]}")
    return Observed(ran.stdout, busy, others)


def run_load(load: Load, *, core: int, measured: Sequence[int] = (), measured_core: int = 0) -> LoadResult:
    """Run one round with wrk on `core`.

    Raises:
        BenchError: wrk failed.
    """
    found = observe(load.argv(core), measured=measured, measured_core=measured_core)
    return parse_result(found.output, busy=found.busy, others=found.others)


def parse_result(output: str, *, busy: float, others: float) -> LoadResult:
    """Read the JSON line that the script writes last.

    Raises:
        BenchError: there is none, or no request was answered.
    """
    line = output.strip().rpartition("\n")[2]
    try:
        found = json.loads(line)
    except ValueError as error:
        raise BenchError(f"wrk said no figures: {output[-300:]}") from error
    if found["requests"] == 0:
        raise BenchError(f"no request was answered: {line}")
    seconds = found["duration_us"] / 1e6
    return LoadResult(
        requests_per_s=found["requests"] / seconds,
        p50_ms=found["p50_us"] / 1e3,
        p90_ms=found["p90_us"] / 1e3,
        p99_ms=found["p99_us"] / 1e3,
        p999_ms=found["p999_us"] / 1e3,
        max_ms=found["max_us"] / 1e3,
        megabytes_per_s=found["bytes"] / seconds / 1e6,
        errors={kind: found[kind] for kind in _ERRORS if found[kind]},
        busy=busy,
        others=others,
        requests=found["requests"],
    )
