"""Ports that open and close with the table.

`apply` compares what is open with what a table asks for and changes the difference, in one synchronous step: ports that
stay are not touched. A port that cannot be bound costs what asked for it only; it is shown, and tried again until the
table drops it.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from headgate.common.heartbeats import NOT_OPEN

_log = logging.getLogger(__name__)

RETRY_S = 5.0
"""Between two tries to bind a port."""

P = TypeVar("P")
P_contra = TypeVar("P_contra", contravariant=True)


class PortKey(NamedTuple):
    """A port that is listened on."""

    transport: Literal["tcp", "udp"]
    port: int
    address: str = ""
    """Empty: that of the gateway's own ports."""

    def __str__(self) -> str:
        return f"{self.transport}/{self.port}@{self.address}" if self.address else f"{self.transport}/{self.port}"


class OpenPort(Protocol[P_contra]):
    """A port that is open."""

    def change(self, plan: P_contra) -> None:
        """Do this with connections from now on."""

    def close(self) -> None:
        """Take no new connections; those that are open go on."""


class PortSet(Generic[P]):
    """Ports of one sort.

    Args:
        noun: what they are, for the log: `stream port`.
        host: address of those that name none.
        open_port: opens one; raises OSError.
        reserved: TCP ports that are others', and whose: where several processes share ports the kernel would not refuse
            them.
        on_settled: called whenever ports have opened, closed or failed.
        on_change: called when a port that could not be opened is open.
        reserved_udp: as `reserved`.
    """

    def __init__(
        self,
        noun: str,
        host: str,
        open_port: Callable[[PortKey, P], OpenPort[P]],
        reserved: Mapping[int, str],
        on_settled: Callable[[], None],
        on_change: Callable[[], None] = lambda: None,
        *,
        reserved_udp: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        self._noun = noun
        self._host = host
        self._open_port = open_port
        self.reserved = dict(reserved)
        self._reserved_udp = reserved_udp
        self._on_settled = on_settled
        self._on_change = on_change
        self.open: dict[PortKey, OpenPort[P]] = {}
        self.failed: dict[PortKey, tuple[P, str]] = {}
        """With the reasons."""
        self._retry: asyncio.TimerHandle | None = None

    def apply(self, wanted: Mapping[PortKey, P]) -> None:
        """Open, change and close ports to what is wanted. Never raises."""
        for key in [key for key in self.open if key not in wanted or self._why_not(key)]:
            self._close(key)
        for key in self.failed.keys() - wanted.keys():
            del self.failed[key]
        for key, plan in wanted.items():
            if key in self.open:
                self.open[key].change(plan)
            else:
                self._try_open(key, plan)
        self._settle()

    def shown(self) -> Mapping[PortKey, str]:
        """Return all ports as heartbeats show them, `127.0.0.1:53`, with the reason if one is not open."""
        reasons = {key: "" for key in self.open} | {key: f"{NOT_OPEN}{why}" for key, (_, why) in self.failed.items()}
        return {key: f"{self.where(key)}{reasons[key]}" for key in sorted(reasons)}

    def where(self, key: PortKey) -> str:
        """Return the address and the port that are listened on."""
        host = key.address or self._host
        return f"[{host}]:{key.port}" if ":" in host else f"{host}:{key.port}"

    def stop(self) -> None:
        """Try no port again."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        self.failed.clear()

    def close(self) -> None:
        """Close all ports for good."""
        self.stop()
        for key in list(self.open):
            self._close(key)
        self._settle()

    def _why_not(self, key: PortKey) -> str:
        """Say whose a port is; empty if it is nobody's. At another address than the others' it is another port."""
        reserved = self.reserved if key.transport == "tcp" else self._reserved_udp
        owner = reserved.get(key.port) if key.address in ("", self._host) else None
        return f"port {key.port} is {owner}" if owner else ""

    def _try_open(self, key: PortKey, plan: P) -> None:
        try:
            if why := self._why_not(key):
                raise OSError(why)
            self.open[key] = self._open_port(key, plan)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            if self.failed.get(key, (plan, ""))[1] != reason:
                fields = {"port": str(key), "host": key.address or self._host, "error": reason}
                _log.error("a %s cannot be opened, it is tried again", self._noun, extra=fields)
            self.failed[key] = (plan, reason)
        else:
            self.failed.pop(key, None)
            _log.info("%s opened", self._noun, extra={"port": str(key)})

    def _close(self, key: PortKey) -> None:
        self.open.pop(key).close()
        _log.info("%s closed", self._noun, extra={"port": str(key)})

    def _settle(self) -> None:
        self._on_settled()
        if self.failed and self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(RETRY_S, self.try_again)

    def try_again(self) -> None:
        """Try to open the ports that could not be opened."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        before = self.shown()
        for key, (plan, _) in list(self.failed.items()):
            self._try_open(key, plan)
        self._settle()
        if self.shown() != before:
            self._on_change()
