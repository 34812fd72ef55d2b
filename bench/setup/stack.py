"""Headgate as a user starts it: `headgate up` on a folder of manifests, with everything on."""

import json
import re
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.clients.probe import Probe
from bench.errors import BenchError
from bench.setup.processes import Process, family, free_ports, rss_mb, tail
from headgate.common.sealing import PRIVATE_KEY_FILE

HEADGATE = (sys.executable, "-m", "headgate.cli")
LOOPBACK_ONLY = {"HEADGATE_HTTP_HOST": "127.0.0.1"}


_LOG_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


class Stack:
    """`headgate up` while the context lasts, its data in a folder of its own."""

    def __init__(self, manifests: Path, folder: Path) -> None:
        self.data_dir = folder / "data"
        self.http_port, self.https_port, self.admin_port = free_ports(3)
        self.started, self._started_at = time.monotonic(), time.time()
        flags = [f"--manifests={manifests}", f"--data-dir={self.data_dir}", "--access-log=combined"]
        flags += [f"--http-port={self.http_port}", f"--https-port={self.https_port}", f"--admin-port={self.admin_port}"]
        flags += ["--console-port=0"]
        self.process = Process("headgate", [*HEADGATE, "up", *flags], folder, env=LOOPBACK_ONLY)

    def __enter__(self) -> "Stack":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.stop(grace_s=25)

    def wait_until_serving(self, host: str, body: str, timeout_s: float) -> float:
        """Return the seconds from the start to the right answer of a host.

        Raises:
            BenchError: it does not answer in time, or `up` ended.
        """
        end = time.monotonic() + timeout_s
        probe = Probe(self.http_port, host)
        status, found = 0, ""
        while time.monotonic() < end:
            self.process.ensure_running()
            status, found = probe.ask()
            if (status, found) == (200, body):
                probe.close()
                return time.monotonic() - self.started
            time.sleep(0.01)
        raise BenchError(
            f"Headgate answers {status} {found[:100]!r} for {host} after {timeout_s:.0f} s: {tail(self.process.log)}"
        )

    def _state(self) -> Mapping[str, Any]:
        """What `up` writes about itself; empty before it did."""
        try:
            found = json.loads((self.data_dir / "up.json").read_text())
        except (OSError, ValueError):
            return {}
        assert isinstance(found, dict)
        return found

    @property
    def nats_url(self) -> str:
        """Of the server that `up` started."""
        return str(self._state()["nats_url"])

    @property
    def private_key(self) -> Path:
        """Key file for further gateways on this stack."""
        return self.data_dir / PRIVATE_KEY_FILE

    @property
    def pids(self) -> dict[str, int]:
        """Service to the id of its first process."""
        return dict(self._state().get("processes", {}))

    @property
    def restarts(self) -> dict[str, int]:
        """Service to how often it had to be started again; empty if all is well."""
        return dict(self._state().get("restarts", {}))

    def steps_s(self, wanted: Mapping[str, str]) -> dict[str, float]:
        """Step to the seconds from the start to the first log line with its words, of the steps that the log has."""
        lines = self.process.log.read_text(errors="replace").splitlines()
        found = {}
        for step, words in wanted.items():
            line = next((line for line in lines if words in line), "")
            if time_of_day := _LOG_TIME.search(line):
                found[step] = datetime.fromisoformat(time_of_day.group()).timestamp() - self._started_at
        return found

    def memory_mb(self) -> dict[str, float]:
        """Service to its resident memory in MB now, its own child processes included; `up` is the supervisor."""
        found = {name: rss_mb(family(pid)) for name, pid in self.pids.items()}
        return {**found, "up": rss_mb([self.process.pid])}

    def peak_mb(self) -> dict[str, float]:
        """Service to the most memory that its first process ever had."""
        return {name: _peak_mb(pid) for name, pid in {**self.pids, "up": self.process.pid}.items()}


def _peak_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(found[0]) * 1024 / 1e6 if found else 0.0
