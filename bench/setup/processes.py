"""Processes that a measurement starts: pinned, logged to its folder, measured through /proc and ended by pid."""

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from bench.errors import BenchError

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


_running: list["Process"] = []


def end_all() -> None:
    """End whatever is left of what was started: after an interruption in the middle of a start."""
    for process in reversed(_running[:]):
        process.stop()


class Process:
    """One started program. Its output goes to `<folder>/<name>.log`, or its standard output elsewhere if asked."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        folder: Path,
        *,
        core: int | None = None,
        env: Mapping[str, str] | None = None,
        stdout: Path | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.log = folder / f"{name}.log"
        pinned = ["taskset", "--cpu-list", str(core), *argv] if core is not None else list(argv)
        with self.log.open("ab") as log, (stdout or self.log).open("ab") as out:
            self._popen = subprocess.Popen(
                pinned,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **(env or {})},
            )
        _running.append(self)

    @property
    def pid(self) -> int:
        """Id of the program itself: `taskset` replaces itself by it."""
        return self._popen.pid

    def is_running(self) -> bool:
        """Whether the program has not ended."""
        return self._popen.poll() is None

    def ensure_running(self) -> None:
        """Raise BenchError with the end of the log if the program has ended."""
        if (code := self._popen.poll()) is not None:
            raise BenchError(f"{self.name} ended with code {code}: {tail(self.log)}")

    def signal(self, number: signal.Signals) -> None:
        """Send the program a signal, if it has not ended."""
        self._popen.send_signal(number)

    def wait(self, timeout_s: float) -> int:
        """Return the exit code.

        Raises:
            BenchError: the program does not end in time.
        """
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"{self.name} does not end within {timeout_s:g} s: {tail(self.log)}") from error

    def family(self) -> list[int]:
        """Pids of the program and all that it started and that still live."""
        return family(self.pid)

    def stop(self, grace_s: float = 10.0) -> None:
        """End the program, then whatever of its children outlived it."""
        pids = self.family()
        if self._popen.poll() is None:
            self._popen.send_signal(signal.SIGTERM)
            try:
                self._popen.wait(grace_s)
            except subprocess.TimeoutExpired:
                self._popen.kill()
                self._popen.wait()
        for pid in pids:
            if pid != self.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if self in _running:
            _running.remove(self)

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


def tail(log: Path, lines: int = 5) -> str:
    """Last lines of a log, as one; access log lines are skipped."""
    found = [line for line in log.read_text(errors="replace").splitlines() if " HTTP/1." not in line]
    return " | ".join(found[-lines:]) or f"{log} is empty"


def need_program(name: str, package: str) -> str | None:
    """None if a program is there, else what to install."""
    return None if shutil.which(name) else f"`{name}` is missing: apt-get install {package}"


def raise_descriptor_limit(wanted: int) -> int:
    """Allow this process and those that it starts so many open files, or as many as it may; return the number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limits in ((wanted, max(wanted, hard)), (min(wanted, hard), hard)):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            return limits[0]
    return soft


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nothing listens on at the moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def wait_for_port(port: int, process: Process, timeout_s: float = 15.0) -> None:
    """Return when something accepts on a loopback port; end the process if that does not come.

    Raises:
        BenchError: the process ended, or nothing accepts in time.
    """
    end = time.monotonic() + timeout_s
    while process.is_running() and time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.01)
        else:
            return
    process.stop()
    raise BenchError(f"{process.name} does not accept on port {port} within {timeout_s:.0f} s: {tail(process.log)}")


def family(pid: int) -> list[int]:
    """Pids of a process and its descendants, parents first."""
    found = [pid]
    for parent in found:
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                children = Path(f"/proc/{parent}/task/{task}/children").read_text()
                found.extend(int(child) for child in children.split())
        except OSError:  # it has just ended
            continue
    return found


def pin(pid: int, core: int) -> None:
    """Move all threads of a process to one core; threads that it starts later follow."""
    for task in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(task), {core})


def rss_mb(pids: Iterable[int]) -> float:
    """Resident memory of some processes, in MB of 10^6 bytes; pages that they share count in each."""
    return sum(_resident_pages(pid) for pid in pids) * _PAGE_BYTES / 1e6


def _resident_pages(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system time that some processes have used so far."""
    return sum(_cpu_ticks(pid) for pid in pids) / _TICKS_PER_S


def core_seconds(core: int) -> float:
    """Time that a core has worked so far, for whomever; waiting and what the hypervisor took do not count."""
    lines = Path("/proc/stat").read_text().splitlines()
    fields = next(line.split() for line in lines if line.startswith(f"cpu{core} "))
    user, nice, system, _idle, _iowait, irq, softirq = (int(field) for field in fields[1:8])
    return (user + nice + system + irq + softirq) / _TICKS_PER_S


def _cpu_ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def command_line(pid: int) -> str:
    """Command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""
