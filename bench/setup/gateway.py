"""A further gateway replica on the bus of a stack, pinned, with its access log in a file."""

import re
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from bench.errors import BenchError
from bench.setup.processes import Process, free_ports, tail
from bench.setup.stack import HEADGATE, LOOPBACK_ONLY, Stack

_READY_S = 60.0


class Gateway:
    """One replica with one worker; `process` is to be ended by whoever started it."""

    def __init__(
        self,
        name: str,
        stack: Stack,
        folder: Path,
        *flags: str,
        core: int | None = None,
        ports: tuple[int, int, int] | None = None,
        program: Sequence[str] = HEADGATE,
    ) -> None:
        """Start it.

        Args:
            name: of the replica, its data folder and its log.
            stack: whose bus and sealing key it uses.
            folder: for data and logs.
            flags: further ones of `headgate gateway`.
            core: to pin it to.
            ports: for HTTP, HTTPS and the admin site; free ones by default.
            program: the command `headgate`.
        """
        self.name = name
        self.http_port, self.https_port, self.admin_port = ports or free_ports(3)
        argv = [*program, "gateway", f"--nats-url={stack.nats_url}", f"--data-dir={folder / name}"]
        argv += ["--allowed-destinations=127.0.0.0/8"]
        argv += [f"--instance={name}", "--workers=1", "--access-log=combined"]
        argv += [f"--http-port={self.http_port}", f"--https-port={self.https_port}", f"--admin-port={self.admin_port}"]
        argv += [f"--sealing-private-keys={stack.private_key}", *flags]
        access_log = folder / f"{name}-access.log"
        self.process = Process(name, argv, folder, core=core, stdout=access_log, env=LOOPBACK_ONLY)

    def wait_until_ready(self, timeout_s: float = _READY_S) -> None:
        """Return when it says that it is ready; end it if that does not come.

        Raises:
            BenchError: it ended, or is not ready in time.
        """
        end = time.monotonic() + timeout_s
        while self.process.is_running() and time.monotonic() < end:
            if self._ask("/readyz") is not None:
                return
            time.sleep(0.05)
        self.process.stop()
        raise BenchError(f"{self.name} is not ready within {timeout_s:.0f} s: {tail(self.process.log)}")

    def metric(self, name: str) -> float:
        """Sum of the samples of one metric.

        Raises:
            BenchError: it does not say.
        """
        text = self._ask("/metrics")
        if text is None:
            raise BenchError(f"{self.name} gives no metrics")
        return read_metric(text, name)

    def _ask(self, path: str) -> str | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}{path}", timeout=5) as answer:
                return str(answer.read(), "utf-8")
        except (urllib.error.URLError, OSError):
            return None


def read_metric(text: str, name: str) -> float:
    """Sum of the samples of one metric in Prometheus' text format.

    Raises:
        BenchError: there is no sample.
    """
    values = re.findall(rf"^{re.escape(name)}(?:\{{.*\}})? (\S+)$", text, re.MULTILINE)
    if not values:
        raise BenchError(f"there is no metric {name}")
    return sum(float(value) for value in values)
