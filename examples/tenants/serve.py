"""Serve two tenants on this machine until Ctrl-C: `.venv/bin/python examples/tenants/serve.py`.

Each has a `headgate up` of its own, with a table, a gateway, keys and a user of NATS. They share the NATS server.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

from headgate.cli.up.embedded_nats import server_binary

HERE = Path(__file__).parent
DATA = Path(".headgate/tenants")
NATS_PORT = 4322
TENANTS = {
    "team-a": {"http": 8081, "https": 8451, "admin": 9081, "backend": 9111},
    "team-b": {"http": 8082, "https": 8452, "admin": 9082, "backend": 9112},
}


def main() -> int:
    """Run the server and the tenants; end when one of them ends or a signal comes."""
    DATA.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    running: list[subprocess.Popen[bytes]] = []
    try:
        running.append(start(server_binary(), f"--config={HERE / 'nats.conf'}", f"--log={DATA / 'nats.log'}"))
        running.extend(start_tenant(name, ports) for name, ports in TENANTS.items())
        return os.waitstatus_to_exitcode(os.wait()[1])
    except KeyboardInterrupt:
        return 0
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        end(running[1:])
        end(running[:1])


def start_tenant(name: str, ports: dict[str, int]) -> subprocess.Popen[bytes]:
    """Start all services of a tenant."""
    access = {"HEADGATE_NATS_USER": name, "HEADGATE_NATS_PASSWORD": f"a password of {name}", "HEADGATE_TABLE": name}
    return start(
        *(sys.executable, "-m", "headgate.cli", "up"),
        *(f"--manifests={HERE / name}", f"--cluster={name}", f"--nats-url=nats://127.0.0.1:{NATS_PORT}"),
        *(f"--http-port={ports['http']}", f"--https-port={ports['https']}", f"--admin-port={ports['admin']}"),
        *(f"--data-dir={DATA / name}", f"--demo-backend={name}={ports['backend']}"),
        **access,
    )


def start(*command: str, **environment: str) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own: Ctrl-C is for us alone, who end one after the other."""
    return subprocess.Popen(command, env={**os.environ, **environment}, start_new_session=True)  # noqa: S603


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Ask processes to end, and wait until they have."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
