"""Where connections of every port find what they ask for routes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headgate.gateway.proxy.seam import RouterHolder
from headgate.gateway.table.compiled_table import CompiledTable
from headgate.gateway.table.listener_ports import OWN_HTTP, OWN_HTTPS, ListenerPort

if TYPE_CHECKING:
    from headgate.gateway.proxy.request_source import RequestSource


class NoRoutes:
    """The router of a port that no listener has any more: connections that are open on it get 404."""

    __slots__ = ("version_label",)

    def __init__(self, version_label: str) -> None:
        self.version_label = version_label

    def match(self, host: bytes, path: bytes, source: "RequestSource") -> None:
        """Find nothing."""

    def takes(self, host: bytes) -> bool:
        """Take no host."""
        return False


class PortRouters:
    """The holder of each port's router. A swap of the table stores one attribute for each."""

    def __init__(self) -> None:
        self._holders: dict[ListenerPort, RouterHolder] = {port: RouterHolder() for port in (OWN_HTTP, OWN_HTTPS)}
        self._table: CompiledTable | None = None

    @property
    def holders(self) -> Mapping[ListenerPort, RouterHolder]:
        """All of them."""
        return self._holders

    def holder(self, port: ListenerPort) -> RouterHolder:
        """Return the holder of a port, which has the router of the current table."""
        holder = self._holders.get(port)
        if holder is None:
            holder = self._holders[port] = RouterHolder()
            self._fill(port, holder)
        return holder

    def drop(self, port: ListenerPort) -> None:
        """Forget a port that was closed; connections that are open on it ask no table any more."""
        holder = self._holders.pop(port, None)
        if holder is not None and self._table is not None:
            holder.router = NoRoutes(self._table.version_label)

    def swap(self, table: CompiledTable) -> None:
        """Have all ports ask a table from now on."""
        self._table = table
        for port, holder in self._holders.items():
            self._fill(port, holder)

    def _fill(self, port: ListenerPort, holder: RouterHolder) -> None:
        if self._table is not None:
            holder.router = self._table.router(port) or NoRoutes(self._table.version_label)
