"""Slow clients: do they take the service from the others?

    python -m bench.slow_clients [--connections 1000] [--seconds 80]

slowhttptest opens connections that send a head byte by byte (slowloris), a body, or read an answer, as slowly as they
can, to `headgate up` with its default settings; beside it a steady client asks as before. Prints what came of its
requests, and how many of the slow connections the gateway had at most and at the end, by its own count: a slow reader
takes long to notice that its connection is gone.
"""

import argparse
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BenchError
from bench.recording.steady import Answer, SteadyClient
from bench.reporting.figures import Distribution
from bench.servers.origin import start_origin
from bench.setup.manifests import SEPARATOR, endpoint_slice, ingress, service, write_class
from bench.setup.processes import free_ports
from bench.setup.stack import Stack
from bench.setup.workload import LARGE_PATH, SMALL_BYTES

HOST = "localhost"
"""slowhttptest names the host that it connects to."""
STEADY_RATE = 200
STEADY_CONNECTIONS = 16
QUIET_S = 5.0
SAMPLE_S = 0.5
_READY_S = 60.0
# In 10 seconds 24 bytes of a head or a body come; one read in 5 seconds takes 5 bytes of 192 KB.
ATTACKS = {
    "slowloris": ("-H", "-i", "10", "-x", "24"),
    "slow body": ("-B", "-i", "10", "-x", "24", "-s", "8192"),
    "slow read": ("-X", "-n", "5", "-z", "5", "-w", "512", "-y", "1024", "-k", "3"),
}


@dataclass(frozen=True)
class Attacked:
    """What one kind of slow clients did to the steady one; times are milliseconds."""

    attack: str
    quiet: Distribution
    during: Distribution
    failed: int
    most_open: int
    left_open: int


def measure(folder: Path, connections: int, seconds: int) -> list[Attacked]:
    """Start the stack, and attack it in each way.

    Raises:
        BenchError: slowhttptest is missing, or the stack does not start.
    """
    tool = shutil.which("slowhttptest")
    if tool is None:
        raise BenchError("slowhttptest is not installed: apt install slowhttptest")
    shutil.rmtree(folder, ignore_errors=True)
    manifests = folder / "manifests"
    write_class(manifests)
    (port,) = free_ports(1)
    parts = (service("slow"), endpoint_slice("slow", port), _buffering(ingress("slow", HOST, "slow")))
    (manifests / "site.yaml").write_text(SEPARATOR.join(parts))
    with start_origin(folder / "origin", [port]), Stack(manifests, folder) as stack:
        stack.wait_until_serving(HOST, "x" * SMALL_BYTES, _READY_S)
        flags = [tool, "-c", str(connections), "-r", "200", "-l", str(seconds), "-p", "5"]
        flags += ["-u", f"http://{HOST}:{stack.http_port}{LARGE_PATH}"]
        return [_attack(name, [*flags, *own], folder, stack) for name, own in ATTACKS.items()]


def _buffering(manifest: str) -> str:
    """Have the gateway wait for bodies: the origin answers without, which would end the attack."""
    annotated = manifest.replace(
        "namespace: bench}", 'namespace: bench, annotations: {headgate.dev/buffer-request: "true"}}'
    )
    if annotated == manifest:
        raise BenchError("the Ingress has no place for annotations")
    return annotated


def _attack(name: str, command: Sequence[str], folder: Path, stack: Stack) -> Attacked:
    client = SteadyClient(folder, stack.http_port, [HOST], rate=STEADY_RATE, connections=STEADY_CONNECTIONS)
    with client:
        time.sleep(QUIET_S)
        began = time.monotonic()
        attack = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        opened = [0]
        while attack.poll() is None:
            opened.append(_open_connections(stack.admin_port) - STEADY_CONNECTIONS)
            time.sleep(SAMPLE_S)
    quiet = [answer for answer in client.answers if answer.asked < began]
    during = [answer for answer in client.answers if answer.asked >= began]
    return Attacked(
        name,
        _times(quiet),
        _times(during),
        sum(answer.status != 200 for answer in during),
        max(opened),
        max(0, opened[-1]),
    )


def _open_connections(admin_port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{admin_port}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith("headgate_connections "))


def _times(answers: Sequence[Answer]) -> Distribution:
    return Distribution.of([answer.latency_ms for answer in answers])


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.slow_clients", description="Attack with slow clients.")
    parser.add_argument("--connections", type=int, default=1000, help="of slow clients, default 1000")
    parser.add_argument("--seconds", type=int, default=80, help="of each attack, default 80")
    parser.add_argument("--folder", type=Path, default=Path("bench/.work/slow-clients"))
    options = parser.parse_args(argv)
    print("| attack | open at most | open at the end | requests failed | p99 before | p99 during | longest |")
    print("|---|---|---|---|---|---|---|")
    for found in measure(options.folder.absolute(), options.connections, options.seconds):
        print(
            f"| {found.attack} | {found.most_open} | {found.left_open} | {found.failed} of {found.during.count} | "
            f"{found.quiet.p99:.1f} ms | {found.during.p99:.1f} ms | {found.during.max:.1f} ms |"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
