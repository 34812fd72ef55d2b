"""Ports are tried before anything starts, so that a taken one is one line and not a crash loop."""

import errno
import socket

from headgate.cli.terminal.errors import UsageMistake


def require_free(flag: str, port: int, host: str) -> None:
    """Check that a port can be listened on.

    Raises:
        UsageMistake: it cannot; names the port, the flag and the reason.
    """
    reason = why_taken(port, host)
    if reason:
        raise UsageMistake(f"port {port} ({flag}) {reason}; stop what listens there or choose another with {flag}")


def why_taken(port: int, host: str) -> str | None:
    """Say why a TCP port cannot be listened on; None if it can."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do it: connections in TIME_WAIT do not count, a listener does (also one with SO_REUSEPORT).
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except PermissionError:
            return "needs privileges (ports below 1024 do)"
        except OSError as error:
            return "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
    return None


class AdminPort:
    """Where a service's admin site is: on a free port, another one at every start."""

    def __init__(self) -> None:
        self.url = ""
        """Of the present start; empty before the first."""

    def choose(self) -> tuple[str, ...]:
        """Choose a port and return the flags for it; one that is taken meanwhile costs a restart."""
        port = choose_free()
        self.url = f"http://127.0.0.1:{port}"
        return "--admin-host=127.0.0.1", f"--admin-port={port}"


def choose_free(host: str = "127.0.0.1") -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
