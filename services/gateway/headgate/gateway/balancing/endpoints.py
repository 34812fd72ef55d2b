"""Endpoints by address, shared by all upstreams that name them, and their connection pools, made on first use.

A table may name 100,000 endpoints of which few get traffic on one worker: a slot costs a tenth of a pool. A slot keeps
its identity while any upstream has it, so balancing state and connections survive swaps; when none does it is
collected, and its pool is retired by the next `live_pools`.
"""

from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet, WeakValueDictionary

from headgate.common.table import BackendProtocol

if TYPE_CHECKING:
    from headgate.gateway.proxy.pool import EndpointPool


class PoolSource(Protocol):
    """Where connection pools come from: the proxy's `PoolRegistry`."""

    def get(self, address: str, port: int, protocol: BackendProtocol) -> "EndpointPool":
        """Return the pool of an address (which may be a DNS name), making it on first use."""


class EndpointSlot:
    """One address that upstreams send to."""

    __slots__ = ("__weakref__", "_directory", "address", "pool", "port", "protocol")

    def __init__(self, directory: "EndpointDirectory", address: str, port: int, protocol: BackendProtocol) -> None:
        self._directory = directory
        self.address = address
        self.port = port
        self.protocol = protocol
        self.pool: EndpointPool | None = None
        """None before the first request."""

    def open_pool(self) -> "EndpointPool":
        """Return the pool, making it on first use."""
        if self.pool is None:
            self.pool = self._directory.open_pool(self)
        return self.pool


class EndpointDirectory:
    """All slots of one worker."""

    def __init__(self, pools: PoolSource) -> None:
        self._pools = pools
        self._slots: WeakValueDictionary[tuple[str, int, BackendProtocol], EndpointSlot] = WeakValueDictionary()
        self._opened: WeakSet[EndpointSlot] = WeakSet()

    def __len__(self) -> int:
        return len(self._slots)

    def slot(self, address: str, port: int, protocol: BackendProtocol) -> EndpointSlot:
        """Return the one slot of an address."""
        key = (address, port, protocol)
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = EndpointSlot(self, address, port, protocol)
        return slot

    def open_pool(self, slot: EndpointSlot) -> "EndpointPool":
        """Make or find the pool of a slot."""
        self._opened.add(slot)
        return self._pools.get(slot.address, slot.port, slot.protocol)

    def live_pools(self) -> "set[EndpointPool]":
        """Return the pools that some upstream may still choose; the others can be retired."""
        return {slot.pool for slot in self._opened if slot.pool is not None}
