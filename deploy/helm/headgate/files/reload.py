"""Have the NATS server of this pod read its certificates again when others are mounted: it does so at SIGHUP only.

    python3 reload.py nats-server PORT FOLDER...    # a process of this pod, where it listens, and what it reads

Of the standard library alone, so that it takes few megabytes. Changed settings start the pod anew and need no signal.
"""

import os
import signal
import socket
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


def main(name: str, port: int, folders: list[Path]) -> None:
    """Look every few seconds, until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    read: dict[Path, bytes] = {}
    while True:
        time.sleep(PAUSE_S)
        try:
            found = contents(folders)
            if found != read:
                # A server that does not listen yet does not heed the signal yet either, and would end.
                socket.create_connection(("127.0.0.1", port), PAUSE_S).close()
                for process in processes(name):
                    os.kill(process, signal.SIGHUP)
                read = found
        except OSError as error:  # files were exchanged, or the server has ended or just starts: look again
            print(error, file=sys.stderr, flush=True)


main(sys.argv[1], int(sys.argv[2]), [Path(folder) for folder in sys.argv[3:]])
