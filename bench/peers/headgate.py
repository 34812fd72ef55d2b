"""Headgate with the whole stack behind it: `headgate up` on the workload's manifests, and one more gateway replica on
its bus, pinned, whose access log goes to a file as the others' do. That replica is what is measured.
"""

import importlib.metadata
from pathlib import Path

from bench.manifests import write_workload
from bench.peers import Running
from bench.probe import Probe
from bench.processes import Process, free_ports, pin, wait_for_port
from bench.stack import HEADGATE, LOOPBACK_ONLY, Stack
from bench.workload import SMALL_BYTES, Workload
from headgate.gateway import ENGINE

_READY_S = 60.0


class Headgate:
    """This checkout."""

    name = "Headgate"

    def missing(self) -> str | None:
        """None if it can be started, else what to install."""
        try:
            importlib.metadata.version("headgate")
        except importlib.metadata.PackageNotFoundError:
            return "Headgate is not installed: make install"
        return None

    def start(self, workload: Workload, folder: Path, *, core: int, side_core: int) -> Running:
        """Start the stack on `side_core` and the measured gateway on `core`."""
        manifests = folder / "manifests"
        write_workload(manifests, workload)
        stack = Stack(manifests, folder)
        try:
            stack.wait_until_serving(workload.hosts[-1], "x" * SMALL_BYTES, _READY_S)
            for pid in stack.process.family():
                pin(pid, side_core)
            http_port, https_port = free_ports(2)
            gateway = _start_gateway(stack, folder, http_port, https_port, core)
        except BaseException:
            stack.process.stop()
            raise
        try:
            wait_for_port(http_port, gateway)
            Probe(http_port, workload.hosts[-1]).wait_for("x" * SMALL_BYTES, _READY_S)
        except BaseException:
            gateway.stop()
            stack.process.stop()
            raise
        version = f"{importlib.metadata.version('headgate')} ({ENGINE})"
        return Running(self.name, version, http_port, https_port, (gateway, stack.process), http_port)


def _start_gateway(stack: Stack, folder: Path, http_port: int, https_port: int, core: int) -> Process:
    data_dir = folder / "measured"
    flags = [f"--nats-url={stack.nats_url}", f"--data-dir={data_dir}", "--instance=measured"]
    flags += [f"--http-port={http_port}", f"--https-port={https_port}", "--workers=1", "--access-log=combined"]
    flags += [f"--sealing-private-keys={stack.private_key}"]
    access_log = folder / "headgate-access.log"
    return Process("gateway", [*HEADGATE, "gateway", *flags], folder, core=core, stdout=access_log, env=LOOPBACK_ONLY)
