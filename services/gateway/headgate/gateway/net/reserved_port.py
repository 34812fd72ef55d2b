"""Ports that are kept from the start, before anything listens on them."""

import contextlib
import socket
from collections.abc import Iterator

from headgate.common.errors import SettingsError


@contextlib.contextmanager
def reserve_port(setting: str, host: str, port: int) -> Iterator[int]:
    """Keep a port for the workers by binding it without listening; yield its number.

    Raises:
        SettingsError: somebody else has it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # Without SO_REUSEPORT first: with it, a second gateway of the same user would silently share the port.
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            port = probe.getsockname()[1]
        reserved = socket.socket(family)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind((host, port))
    except OSError as error:
        raise SettingsError(f"{setting}: {port} cannot be bound on {host}: {error.strerror}") from error
    with reserved:
        yield port
