"""Starts a program that ends when its parent does, however the parent ends.

    python -I tether.py PARENT_PID COMMAND...

Linux sends SIGTERM to this process when its parent dies (prctl(2), PR_SET_PDEATHSIG), even if the parent was killed
with SIGKILL and could clean up nothing; the setting survives the exec of the program. Elsewhere the program just runs.

Rejected: `preexec_fn`, which is unsafe once the supervisor has a second thread; and a pipe that every service would
have to watch, which services that are also run by other supervisors should not need.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie this process to its parent, then become the program."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit("the parent ended before this began")
    os.execv(command[0], command)  # noqa: S606 - the very purpose, and no shell


if __name__ == "__main__":
    main()
