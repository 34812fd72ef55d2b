"""The proxies that are compared, a module each, all told to do the same.

Every one of them: one worker, keep-alive on both sides, routing by host to ten services, the same six forwarded
headers, an access log line per request to a file, TLS with the same certificate.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.setup.processes import Process
from bench.setup.workload import Workload

IDLE_CONNECTIONS = 512
"""Idle connections to one service that a proxy may keep: more than any load opens."""


@dataclass(frozen=True)
class Running:
    """A proxy that serves."""

    name: str
    version: str
    http_port: int
    https_port: int
    processes: tuple[Process, ...]
    """The first carries traffic: its family's processor time and memory count as the proxy's."""
    h2c_port: int
    """For HTTP/2 without TLS; the HTTP port where that takes both."""

    def serving(self) -> list[int]:
        """Pids of the processes that carry traffic."""
        return self.processes[0].family()

    def ensure_running(self) -> None:
        """Raise BenchError if one of the processes has ended."""
        for process in self.processes:
            process.ensure_running()

    def stop(self) -> None:
        """End all processes."""
        for process in self.processes:
            process.stop()


class Peer(Protocol):
    """How one proxy is found and started."""

    name: str

    def missing(self) -> str | None:
        """None if it can be started, else what to install."""

    def start(self, workload: Workload, folder: Path, *, core: int, side_core: int) -> Running:
        """Start it with what carries traffic pinned to `core` and anything else on `side_core`.

        Raises:
            BenchError: it does not come up.
        """
