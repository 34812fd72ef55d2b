"""Load by HTTP/3: a client of some hundred lines on quic-go, built with the machine's Go at first use."""

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.clients.load import LoadResult, observe, parse_result
from bench.errors import BenchError
from bench.setup.tools import BENCH, WORK

_SOURCE = Path(__file__).with_name("http3load")
_MANY = 4


@dataclass(frozen=True)
class Http3Load:
    """One round."""

    url: str
    """Its host is sent as `:authority` and as the server name; connections go to the loopback interface."""
    port: int
    connections: int
    streams: int
    seconds: float
    headers: tuple[str, ...] = ()

    def argv(self, program: Path, core: int) -> list[str]:
        """The command, pinned to a core."""
        argv = ["taskset", "--cpu-list", str(core), str(program), f"--connect-to=127.0.0.1:{self.port}"]
        argv += [f"--connections={self.connections}", f"--streams={self.streams}", f"--seconds={self.seconds:g}"]
        return [*argv, *(f"--header={header}" for header in self.headers), self.url]

    def command(self, program: Path, core: int) -> str:
        """The command as one reads it: a browser's headers are counted, and paths begin at the checkout."""
        argv = [each for each in self.argv(program, core) if not each.startswith("--header=")]
        return shlex.join(argv).replace(f"{BENCH.parent}/", "") + f" and {len(self.headers)} --header of a browser"


def build_client() -> Path:
    """Return the program.

    Raises:
        BenchError: there is no Go, or it cannot build the client.
    """
    go = shutil.which("go")
    if go is None:
        raise BenchError("the client for HTTP/3 needs Go 1.26 or newer: https://go.dev/dl/")
    program = WORK / "http3load"
    built = subprocess.run([go, "build", "-o", str(program), "."], cwd=_SOURCE, capture_output=True, text=True)
    if built.returncode:
        raise BenchError(f"the client for HTTP/3 cannot be built: {built.stderr[-500:]}")
    return program


def run_http3_load(
    load: Http3Load, program: Path, *, core: int, measured: Sequence[int] = (), measured_core: int = 0
) -> LoadResult:
    """Run one round on `core`.

    Raises:
        BenchError: the client failed, or no request was answered.
    """
    found = observe(load.argv(program, core), measured=measured, measured_core=measured_core)
    return parse_result(found.output, busy=found.busy, others=found.others)
