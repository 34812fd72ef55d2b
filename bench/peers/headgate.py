"""Headgate with the whole stack behind it: `headgate up` on the workload's manifests, and one more gateway replica on
its bus, pinned, whose access log goes to a file as the others' do. That replica is what is measured.
"""

import importlib.metadata
from pathlib import Path

from bench.clients.probe import Probe
from bench.peers import Running
from bench.setup.gateway import Gateway
from bench.setup.manifests import write_workload
from bench.setup.processes import pin, wait_for_port
from bench.setup.stack import Stack
from bench.setup.workload import SMALL_BYTES, Workload
from headgate.gateway import ENGINE

_READY_S = 60.0


class Headgate:
    """This checkout."""

    name = "Headgate"

    def missing(self) -> str | None:
        """None if it can be started, else what to install."""
        try:
            importlib.metadata.version("headgate-ingress")
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
            gateway = Gateway("gateway", stack, folder, "--http3", core=core)
        except BaseException:
            stack.process.stop()
            raise
        try:
            wait_for_port(gateway.http_port, gateway.process)
            Probe(gateway.http_port, workload.hosts[-1]).wait_for("x" * SMALL_BYTES, _READY_S)
        except BaseException:
            gateway.process.stop()
            stack.process.stop()
            raise
        version = f"{importlib.metadata.version('headgate-ingress')} ({ENGINE})"
        processes = (gateway.process, stack.process)
        return Running(self.name, version, gateway.http_port, gateway.https_port, processes, gateway.http_port)
