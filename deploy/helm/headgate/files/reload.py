"""Have the NATS server of this pod read its certificates again when others are mounted: it does so at SIGHUP only.

    python3 reload.py nats-server FOLDER...    # a process of this pod, and what it reads

Of the standard library alone, so that it takes few megabytes. Changed settings start the pod anew and need no signal.
"""

import os
import signal
import sys
import time
from pathlib import Path

PAUSE_S = 2.0


def contents(folders: list[Path]) -> dict[Path, bytes]:
    """Return what each file in these folders holds."""
    return {path: path.read_bytes() for folder in folders for path in sorted(folder.iterdir()) if path.is_file()}


def processes(name: str) -> list[int]:
    """Return the ids of processes with this name."""
    found = []
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().strip() == name:
                found.append(int(comm.parent.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


def main(name: str, folders: list[Path]) -> None:
    """Look every few seconds, until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    read: dict[Path, bytes] = {}
    while True:
        time.sleep(PAUSE_S)
        try:
            found = contents(folders)
            if found != read:
                for process in processes(name):
                    os.kill(process, signal.SIGHUP)
                read = found
        except OSError as error:  # files were exchanged, or the server has ended: look again
            print(error, file=sys.stderr, flush=True)


main(sys.argv[1], [Path(folder) for folder in sys.argv[2:]])
