"""What a change does to a gateway's throughput, by pairs of short rounds before and after.

    python -m bench.pairs --before "COMMAND" [--load http1] [--pairs 20] [--seconds 2] [--connections 32]

COMMAND is the command `headgate` of another checkout, as `../before/.venv/bin/headgate`. A gateway of it and one of
this checkout, on one core, follow the same table; h2load asks the one and the other in turn, and each pair begins with
the other one. Of each pair the requests for a second of the gateway's processor time are divided: a slow moment of the
machine mostly slows both rounds. Printed are the median of these ratios, their middle half, and the share of processor
time that the kernel used. The loads are those of `bench.setup.loads`.
"""

import argparse
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median, quantiles

from bench.clients.h2load import H2Load, run_h2load
from bench.clients.probe import Probe
from bench.errors import BenchError
from bench.parts.comparison import LOAD_CORE, PROXY_CORE
from bench.setup.gateway import Gateway
from bench.setup.loads import LOADS, serving_stack
from bench.setup.measuring import measure_alone
from bench.setup.processes import family
from bench.setup.stack import HEADGATE
from bench.setup.workload import SMALL_BYTES

_READY_S = 60.0


@dataclass(frozen=True)
class Round:
    """What one gateway did in one round."""

    requests: float
    user_s: float
    system_s: float

    @property
    def per_core(self) -> float:
        """Requests for a second of processor time."""
        return self.requests / (self.user_s + self.system_s)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="the command `headgate` of another checkout")
    parser.add_argument("--load", choices=LOADS, default="http1")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--connections", type=int, default=32)
    options = parser.parse_args()
    if options.pairs < 2:
        parser.error("--pairs: at least 2")
    pairs = measure_alone(lambda folder: _measure(folder, options))
    print(compare(pairs))
    return 0


def compare(pairs: Sequence[tuple[Round, Round]]) -> str:
    """Put into words what pairs of rounds, before and after, say."""
    ratios = [after.per_core / before.per_core for before, after in pairs]
    low, _, high = quantiles(ratios, n=4)
    rows = [
        f"{median(ratios):.3f} of the requests before, the middle half of {len(ratios)} pairs {low:.3f} to {high:.3f}"
    ]
    for name, rounds in (("before", [pair[0] for pair in pairs]), ("after", [pair[1] for pair in pairs])):
        per_core = median(each.per_core for each in rounds)
        kernel = median(each.system_s / (each.user_s + each.system_s) for each in rounds)
        rows.append(
            f"{name}: {per_core:,.0f} requests for a second of processor time, {kernel:.0%} of it in the kernel"
        )
    return "\n".join(rows)


def _measure(folder: Path, options: argparse.Namespace) -> list[tuple[Round, Round]]:
    with serving_stack(folder, LOAD_CORE) as loads:
        programs = {"before": shlex.split(options.before), "after": list(HEADGATE)}
        gateways: list[Gateway] = []
        try:
            for name, program in programs.items():
                gateways.append(Gateway(name, loads.stack, folder, core=PROXY_CORE, program=program))
            for gateway in gateways:
                gateway.wait_until_ready()
                Probe(gateway.http_port, loads.workload.hosts[-1]).wait_for("x" * SMALL_BYTES, _READY_S)
            asked = [(gateway, loads.of(options.load, gateway, options.connections)) for gateway in gateways]
            pairs = []
            for number in range(options.pairs):
                order = asked if number % 2 else asked[::-1]
                found = [_round(gateway, load, options) for gateway, load in order]
                before, after = found if number % 2 else found[::-1]
                pairs.append((before, after))
            return pairs
        finally:
            for gateway in gateways:
                gateway.process.stop()


def _round(gateway: Gateway, load: H2Load, options: argparse.Namespace) -> Round:
    pids = family(gateway.process.pid)
    before = _times(pids)
    if options.load == "handshakes":
        # A connection is a request, and one that is under way at the end of a round would be an error.
        count = round(options.seconds * _HANDSHAKES_PER_S)
        done = run_h2load(replace(load, clients=count, requests=count), core=LOAD_CORE)
        requests = float(count)
    else:
        done = run_h2load(replace(load, seconds=options.seconds), core=LOAD_CORE)
        requests = done.requests_per_s * max(1, round(options.seconds))
    if done.errors:
        raise BenchError(f"{gateway.name}: {done.errors}")
    user_s, system_s = (after - earlier for earlier, after in zip(before, _times(pids), strict=True))
    return Round(requests, user_s, system_s)


_HANDSHAKES_PER_S = 500


def _times(pids: Sequence[int]) -> tuple[float, float]:
    """Return the seconds that processes have used so far in their own code and in the kernel."""
    ticks = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in pids]
    per_s = os.sysconf("SC_CLK_TCK")
    return sum(int(user) for user, _ in ticks) / per_s, sum(int(system) for _, system in ticks) / per_s


if __name__ == "__main__":
    raise SystemExit(main())
