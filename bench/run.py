"""The command: which parts are measured, how long, and where the report goes.

python -m bench                                  everything, about 40 minutes
python -m bench --quick                          everything, short, for development: under 5 minutes
python -m bench handshakes http2                 two parts
python -m bench throughput --rounds 2 --peers nginx,headgate
python -m bench propagation --changes 50
python -m bench scale --ingresses 1000 --documents-per-file 1
python -m bench scale --ingresses 10000 --dialects apisixroutes
python -m bench churn --ingresses 10000 --seconds 300
"""

import argparse
import datetime
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from types import FrameType

from bench.errors import BenchError
from bench.parts.bodies import BodiesPlan, measure_bodies
from bench.parts.churn import ChurnPlan, measure_churn
from bench.parts.commands import CommandsPlan, measure_commands
from bench.parts.connections import ConnectionsPlan, measure_connections
from bench.parts.http2 import Http2Plan, measure_http2
from bench.parts.http3 import Http3Plan, measure_http3
from bench.parts.new_connections import HandshakePlan, measure_new_connections
from bench.parts.propagation import PropagationPlan, measure_propagation
from bench.parts.replicas import ReplicasPlan, measure_replicas
from bench.parts.scale import ScalePlan, measure_scale
from bench.parts.swaps import SwapsPlan, measure_swaps
from bench.parts.throughput import measure_throughput, scenarios
from bench.peers import Peer
from bench.peers.envoy import Envoy
from bench.peers.haproxy import HAProxy
from bench.peers.headgate import Headgate
from bench.peers.nginx import Nginx
from bench.reporting.machine import StolenTime, describe_machine, load_average
from bench.reporting.promise import PartResult
from bench.reporting.readme import update_readme
from bench.reporting.report import Report, markdown, write_report
from bench.setup.apisix import APISIX
from bench.setup.manifests import ANNOTATED, INGRESS, Dialect
from bench.setup.processes import end_all, raise_descriptor_limit
from bench.setup.tools import BENCH, WORK, alone
from bench.setup.traefik import TRAEFIK

README = BENCH.parent / "README.md"
DESCRIPTORS = 65536
"""Open files that each process may have, for the many idle connections."""
PEERS: tuple[Peer, ...] = (Nginx(), HAProxy(), Envoy(), Headgate())


@dataclass(frozen=True)
class Extent:
    """How much is measured unless flags say otherwise."""

    connections: tuple[int, ...]
    rounds: int
    seconds: float
    handshakes: HandshakePlan
    http2: Http2Plan
    http3: Http3Plan
    bodies: BodiesPlan
    connections_held: ConnectionsPlan
    swaps: SwapsPlan
    replicas: ReplicasPlan
    churn: tuple[ChurnPlan, ...]
    commands: CommandsPlan
    changes: int
    propagation_ingresses: tuple[int, ...]
    scale_ingresses: tuple[int, ...]
    scale_changes: int


FULL = Extent(
    connections=(32, 256),
    rounds=5,
    seconds=5.0,
    handshakes=HandshakePlan(4000, 5),
    http2=Http2Plan(5, 4.0),
    http3=Http3Plan(5, 4.0),
    bodies=BodiesPlan(1 << 30, 5, 10.0),
    connections_held=ConnectionsPlan(10_000, 1_000, 30.0),
    swaps=SwapsPlan(60.0, 100, 25),
    replicas=ReplicasPlan(6),
    churn=(ChurnPlan(10_000, 10, 100, 300.0, 200),),
    commands=CommandsPlan(10_000, 100),
    changes=200,
    propagation_ingresses=(0, 1000),
    scale_ingresses=(1000, 10_000),
    scale_changes=25,
)
QUICK = Extent(
    connections=(32,),
    rounds=2,
    seconds=1.0,
    handshakes=HandshakePlan(500, 2),
    http2=Http2Plan(2, 1.0),
    http3=Http3Plan(2, 1.0),
    bodies=BodiesPlan(1 << 28, 2, 2.0),
    connections_held=ConnectionsPlan(500, 50, 2.0),
    swaps=SwapsPlan(5.0, 100, 20),
    replicas=ReplicasPlan(1),
    churn=(ChurnPlan(300, 10, 100, 5.0, 15),),
    commands=CommandsPlan(300, 10),
    changes=30,
    propagation_ingresses=(0,),
    scale_ingresses=(300,),
    scale_changes=5,
)


def _throughput(options: argparse.Namespace, extent: Extent, folder: Path) -> PartResult:
    wanted = scenarios(
        options.connections or extent.connections,
        options.rounds or extent.rounds,
        options.seconds or extent.seconds,
        extras=not options.no_extras,
    )
    return measure_throughput(options.peers or PEERS, wanted, folder)


def _handshakes(options: argparse.Namespace, extent: Extent, folder: Path) -> PartResult:
    return measure_new_connections(options.peers or PEERS, extent.handshakes, folder)


def _http2(options: argparse.Namespace, extent: Extent, folder: Path) -> PartResult:
    return measure_http2(options.peers or PEERS, extent.http2, folder)


def _http3(options: argparse.Namespace, extent: Extent, folder: Path) -> PartResult:
    return measure_http3(options.peers or PEERS, extent.http3, folder)


def _bodies(options: argparse.Namespace, extent: Extent, folder: Path) -> PartResult:
    return measure_bodies(options.peers or PEERS, extent.bodies, folder)


def _connections(options: argparse.Namespace, extent: Extent, folder: Path) -> PartResult:
    return measure_connections(options.peers or PEERS, extent.connections_held, folder)


def _swaps(options: argparse.Namespace, extent: Extent, folder: Path) -> PartResult:
    return measure_swaps(extent.swaps, folder)


def _replicas(options: argparse.Namespace, extent: Extent, folder: Path) -> PartResult:
    return measure_replicas(extent.replicas, folder)


def _churn(options: argparse.Namespace, extent: Extent, folder: Path) -> PartResult:
    plans, standard = extent.churn, extent.churn[0]
    if options.ingresses:
        plans = tuple(replace(standard, ingresses=count) for count in options.ingresses)
    if options.seconds:
        plans = tuple(replace(plan, seconds=options.seconds) for plan in plans)
    if options.changes:
        plans = tuple(replace(plan, changes=options.changes) for plan in plans)
    return measure_churn(plans, folder)


def _commands(options: argparse.Namespace, extent: Extent, folder: Path) -> PartResult:
    plan = extent.commands
    return measure_commands(replace(plan, ingresses=options.ingresses[0]) if options.ingresses else plan, folder)


MEASURES: dict[str, Callable[[argparse.Namespace, Extent, Path], PartResult]] = {
    "throughput": _throughput,
    "handshakes": _handshakes,
    "http2": _http2,
    "http3": _http3,
    "bodies": _bodies,
    "connections": _connections,
    "swaps": _swaps,
    "replicas": _replicas,
    "churn": _churn,
    "commands": _commands,
}
"""Parts that tell their own story."""
PARTS = (*MEASURES, "propagation", "scale")
DIALECTS = (INGRESS, APISIX)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what was asked for; return 0, or 1 if anything went wrong."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    words = list(sys.argv[1:] if argv is None else argv)
    options = _parser().parse_args(words)
    try:
        with alone():
            return _run(words, options)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


def _run(words: Sequence[str], options: argparse.Namespace) -> int:
    extent = QUICK if options.quick else FULL
    report = Report(
        started=datetime.datetime.now(datetime.UTC),
        command=shlex.join(["python", "-m", "bench", *words]),
        machine=describe_machine(),
        load_before=load_average(),
    )
    raise_descriptor_limit(DESCRIPTORS)
    began, stolen = time.monotonic(), StolenTime()
    try:
        _measure(report, options, extent)
    except KeyboardInterrupt:
        report.errors.append("interrupted")
    finally:
        end_all()
        report.took_s, report.stolen = time.monotonic() - began, stolen.share()
        _write(report, options)
    return 1 if report.failures else 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    """End as with Ctrl-C, so that everything which was started is ended, also where a shell ignores SIGINT."""
    raise KeyboardInterrupt


def _write(report: Report, options: argparse.Namespace) -> None:
    parts = options.parts or PARTS
    suffix = "" if set(parts) == set(PARTS) else "-" + "-".join(parts)
    folder = options.out or (WORK / "results" if options.quick else BENCH / "results")
    text, data = write_report(report, folder, suffix)
    print(markdown(report))
    if options.readme:
        update_readme(README, report, text)
    print(f"written to {text} and {data.name}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure Headgate beside nginx, HAProxy and Envoy, its propagation of changes, and its scale.",
        epilog="docs/bench.md says how each figure comes about and how to read it.",
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="short, for development; written to bench/.work/results")
    parser.add_argument("--readme", action="store_true", help="put the figures into README.md too")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the report; default bench/results")
    parser.add_argument("--peers", type=_peers, metavar="NAMES", help="proxies to compare, separated by commas")
    parser.add_argument("--connections", type=_numbers, metavar="N,...", help="throughput: default 32,256")
    parser.add_argument("--rounds", type=int, metavar="N", help="throughput: rounds of each proxy, default 5")
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="throughput: of a round, default 5; churn: default 300"
    )
    parser.add_argument("--no-extras", action="store_true", help="throughput: leave out TLS and 64 KB bodies")
    parser.add_argument("--changes", type=int, metavar="N", help="propagation and churn: default 200")
    parser.add_argument(
        "--ingresses",
        type=_numbers,
        metavar="N,...",
        help="propagation: 0,1000; scale, of any dialect: 1000,10000; churn, commands: 10000",
    )
    parser.add_argument(
        "--dialects",
        type=_dialects,
        metavar="NAMES",
        help="scale: default ingresses,apisixroutes; also annotated,ingressroutes",
    )
    parser.add_argument("--documents-per-file", type=int, default=100, metavar="N", help="scale: default 100")
    return parser


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def _names(text: str, known: Collection[str]) -> list[str]:
    wanted = [name.strip().lower() for name in text.split(",")]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(known)}")
    return wanted


def _peers(text: str) -> tuple[Peer, ...]:
    known = {peer.name.lower(): peer for peer in PEERS}
    return tuple(known[name] for name in _names(text, known))


def _dialects(text: str) -> tuple[Dialect, ...]:
    known = {dialect.title.lower(): dialect for dialect in (*DIALECTS, ANNOTATED, TRAEFIK)}
    return tuple(known[name] for name in _names(text, known))


def _measure(report: Report, options: argparse.Namespace, extent: Extent) -> None:
    parts = options.parts or PARTS
    if unknown := set(parts) - set(PARTS):
        raise SystemExit(f"{', '.join(sorted(unknown))}: not one of {', '.join(PARTS)}")
    folder = WORK / "run"
    shutil.rmtree(folder, ignore_errors=True)
    for name, measure in MEASURES.items():
        if name in parts:
            _guarded(report, name, partial(_keep, report, name, partial(measure, options, extent, folder / name)))
    if "propagation" in parts:
        for count in options.ingresses or extent.propagation_ingresses:
            plan = PropagationPlan(count, options.changes or extent.changes)
            _guarded(report, f"propagation, {count}", partial(_propagation, report, plan, folder / "propagation"))
    if "scale" in parts:
        for count, dialect in product(options.ingresses or extent.scale_ingresses, options.dialects or DIALECTS):
            size = ScalePlan(count, options.documents_per_file, extent.scale_changes, dialect)
            _guarded(report, f"scale, {count} {dialect.title}", partial(_scale, report, size, folder / "scale"))


def _guarded(report: Report, what: str, measure: Callable[[], None]) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)
    try:
        measure()
    except BenchError as error:
        report.errors.append(f"{what}: {error}")
        print(f"failed: {error}", file=sys.stderr)


def _keep(report: Report, name: str, measure: Callable[[], PartResult]) -> None:
    report.parts[name] = measure()


def _propagation(report: Report, plan: PropagationPlan, folder: Path) -> None:
    report.propagation.append(measure_propagation(plan, folder))


def _scale(report: Report, plan: ScalePlan, folder: Path) -> None:
    report.scale.append(measure_scale(plan, folder))
