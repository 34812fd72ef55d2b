"""Load by h2load: HTTP/2 with several streams on each connection, or HTTP/1.1 with a new connection for each request.

Its clients resume no TLS session, so every connection is a whole handshake.
"""

import re
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.clients.load import LoadResult, observe
from bench.errors import BenchError
from bench.reporting.figures import Distribution
from bench.setup.tools import BENCH

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_FINISHED = re.compile(r"finished in ([\d.]+)(us|ms|s|m), ([\d.]+) req/s, ([\d.]+)([KMG]?)B/s")
_REQUESTS = re.compile(r"requests: .* (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout")
_CODES = re.compile(r"status codes: \d+ 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx")


@dataclass(frozen=True)
class H2Load:
    """One round. Of `seconds` and `requests` exactly one is set."""

    url: str
    """Its host is sent as `:authority` and as the server name; the connection goes to the loopback interface."""
    port: int
    clients: int
    streams: int = 1
    seconds: float | None = None
    requests: int | None = None
    headers: tuple[str, ...] = ()
    body: Path | None = None
    """File with the body of every request, which is a POST then."""
    http1: bool = False

    def argv(self, core: int) -> list[str]:
        """The command, pinned to a core."""
        argv = ["taskset", "--cpu-list", str(core), "h2load", f"--clients={self.clients}"]
        if self.http1:
            argv.append("--h1")
        else:
            argv.append(f"--max-concurrent-streams={self.streams}")
        if self.seconds is not None:
            argv.append(f"--duration={max(1, round(self.seconds))}")
        if self.requests is not None:
            argv.append(f"--requests={self.requests}")
        if self.body is not None:
            argv.append(f"--data={self.body}")
        argv += [f"--header={header}" for header in self.headers]
        return [*argv, f"--connect-to=127.0.0.1:{self.port}", self.url]

    def command(self, core: int) -> str:
        """The command as one reads it: a browser's headers are counted, and paths begin at the checkout."""
        spoken = replace(self, headers=self.headers if len(self.headers) < _MANY else ())
        counted = "" if spoken.headers == self.headers else f" and {len(self.headers)} --header of a browser"
        return shlex.join(spoken.argv(core)).replace(f"{BENCH.parent}/", "") + counted


_MANY = 4


def run_h2load(load: H2Load, *, core: int, measured: Sequence[int] = (), measured_core: int = 0) -> LoadResult:
    """Run one round on `core`.

    Raises:
        BenchError: h2load failed, or no request was answered.
    """
    with tempfile.NamedTemporaryFile(prefix="h2load-", suffix=".tsv") as log:
        argv = load.argv(core)
        argv.insert(-1, f"--log-file={log.name}")
        found = observe(argv, measured=measured, measured_core=measured_core)
        lines = Path(log.name).read_text()
    return parse_h2load(found.output, lines, busy=found.busy, others=found.others)


def parse_h2load(output: str, log: str, *, busy: float, others: float) -> LoadResult:
    """Read the summary, and the log with a line `started status microseconds` for each answer.

    Raises:
        BenchError: there is no summary, or no request was answered.
    """
    finished, requests, codes = (pattern.search(output) for pattern in (_FINISHED, _REQUESTS, _CODES))
    if not finished or not requests or not codes:
        raise BenchError(f"h2load said no figures: {output[-300:]}")
    lasted_s = float(finished[1]) * _SECONDS[finished[2]]
    succeeded, failed, errored, timeout = (int(number) for number in requests.groups())
    answered_ms = [int(line.split("\t")[2]) / 1e3 for line in log.splitlines() if line.count("\t") == 2]
    if not succeeded or not answered_ms:
        raise BenchError(f"no request was answered: {requests[0]}; {codes[0]}")
    wrong = sum(int(number) for number in codes.groups())
    errors = {"failed": failed - errored, "errored": errored, "timeout": timeout, "status": wrong}
    took = Distribution.of(answered_ms)
    return LoadResult(
        requests_per_s=succeeded / lasted_s,
        p50_ms=took.p50,
        p90_ms=took.p90,
        p99_ms=took.p99,
        p999_ms=took.p999,
        max_ms=took.max,
        megabytes_per_s=float(finished[4]) * _BYTES[finished[5]] / 1e6,
        errors={kind: count for kind, count in errors.items() if count},
        busy=busy,
        others=others,
    )
