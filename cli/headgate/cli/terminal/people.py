"""Who gives a command, for what the history keeps."""

import getpass
import os
import socket


def current_user() -> str:
    """Return `USER@HOST`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # no such user, as in a container
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
