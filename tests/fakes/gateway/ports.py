"""Ports for servers that are started later, or again: nobody else gets them meanwhile.

The kernel gives the ports from 32768 on to whoever asks for any, so a port that was found free there may be the near
end of somebody's connection a moment later. These lie below, none is given twice by one process, and processes that run
tests beside each other have a range each.
"""

import contextlib
import os
import random
import socket

_RANGE = 20_000 // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_LOWEST = 10_000 + _RANGE * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_given: set[tuple[socket.SocketKind, int]] = set()
_chance = random.SystemRandom()


def free_port(host: str = "127.0.0.1", kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """A port that nobody has at the moment."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    while True:
        port = _chance.randrange(_LOWEST, _LOWEST + _RANGE)
        if (kind, port) in _given:
            continue
        with socket.socket(family, kind) as probe, contextlib.suppress(OSError):
            probe.bind((host, port))
            _given.add((kind, port))
            return port


def free_ports(count: int) -> list[int]:
    """Several ports of the loopback interface."""
    return [free_port() for _ in range(count)]
