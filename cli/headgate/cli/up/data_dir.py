"""What `up` keeps in its data directory besides what the services keep there.

up.lock      held while an `up` uses the directory
up.json      what runs now: process ids, addresses; read by `status` and `history`, removed at the end
nats.port    the port that the embedded NATS server got, so that it comes back on the same one
nats/        the embedded NATS server's files
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from headgate.cli.terminal.errors import UsageMistake
from headgate.cli.up.ports import choose_free, why_taken
from headgate.operations.status.up_state import UpState

LOCK_FILE = "up.lock"
STATE_FILE = "up.json"
NATS_PORT_FILE = "nats.port"
NATS_FOLDER = "nats"
LARGE_TABLE = 256 * 1024
"""Bytes of a table on disk: some 8,000 hosts, which a gateway compiles in a second."""


@contextmanager
def locked(data_dir: Path) -> Iterator[None]:
    """Use a data directory alone; it is made if absent.

    Raises:
        UsageMistake: another `up` uses it, or it cannot be written.
    """
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(data_dir / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise UsageMistake(f"--data-dir {data_dir}: cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        holder = read_state(data_dir)
        who = f" (process {holder.pid})" if holder else ""
        raise UsageMistake(f"another `headgate up`{who} uses {data_dir}; stop it or give another --data-dir") from error
    try:
        yield
    finally:
        (data_dir / STATE_FILE).unlink(missing_ok=True)
        os.close(descriptor)


def write_state(data_dir: Path, state: UpState) -> None:
    """Replace the state file in one step."""
    draft = data_dir / (STATE_FILE + ".new")
    draft.write_text(state.model_dump_json(indent=2) + "\n")
    draft.replace(data_dir / STATE_FILE)


def read_state(data_dir: Path) -> UpState | None:
    """Return what a running `up` wrote; None if none runs or the file is not readable."""
    try:
        if not _is_locked(data_dir):
            return None  # left by an `up` that was killed
        content: Any = json.loads((data_dir / STATE_FILE).read_text())
        return UpState.model_validate(content)
    except (OSError, ValueError, ValidationError):
        return None


def _is_locked(data_dir: Path) -> bool:
    descriptor = os.open(data_dir / LOCK_FILE, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def nats_port(data_dir: Path) -> int:
    """Return the embedded NATS server's port: the one it had before if that is free, else a new one."""
    kept = data_dir / NATS_PORT_FILE
    try:
        port = int(kept.read_text())
    except (OSError, ValueError):
        port = 0
    if not 0 < port < 65536 or why_taken(port, "127.0.0.1"):
        port = choose_free()
        kept.write_text(f"{port}\n")
    return port


def has_large_table(data_dir: Path) -> bool:
    """Whether gateways left a table of thousands of hosts here, which they serve at their next start."""
    return any(path.stat().st_size > LARGE_TABLE for path in data_dir.glob("table-*.last-good"))
