"""Endpoints by address, shared by all upstreams that name them, and their connection pools, made on first use.

A table may name 100,000 endpoints of which few get traffic on one worker: a slot costs a tenth of a pool. A slot keeps
its identity while any upstream has it, so balancing state and connections survive swaps; when none does it is
collected, and `take_orphans` names its pool.
"""

from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

from headgate.common.table import BackendProtocol

if TYPE_CHECKING:
    from headgate.gateway.proxy.pool import EndpointPool


EndpointKey = tuple[str, int, BackendProtocol]
"""Address (which may be a DNS name), port, protocol."""


class PoolSource(Protocol):
    """Where connection pools come from: the proxy's `PoolRegistry`."""

    def get(self, address: str, port: int, protocol: BackendProtocol) -> "EndpointPool":
        """Return the pool of an address, making it on first use."""


class EndpointSlot:
    """One address that upstreams send to."""

    __slots__ = ("__weakref__", "_directory", "key", "pool")

    def __init__(self, directory: "EndpointDirectory", key: EndpointKey) -> None:
        self._directory = directory
        self.key = key
        self.pool: EndpointPool | None = None
        """None before the first request."""

    def __del__(self) -> None:
        if self.pool is not None:
            self._directory.note_orphan(self.key)

    def open_pool(self) -> "EndpointPool":
        """Return the pool, making it on first use."""
        if self.pool is None:
            self.pool = self._directory.open_pool(self.key)
        return self.pool


class EndpointDirectory:
    """All slots of one worker."""

    def __init__(self, pools: PoolSource) -> None:
        self._pools = pools
        self._slots: WeakValueDictionary[EndpointKey, EndpointSlot] = WeakValueDictionary()
        self._orphans: set[EndpointKey] = set()

    def __len__(self) -> int:
        return len(self._slots)

    def slot(self, address: str, port: int, protocol: BackendProtocol) -> EndpointSlot:
        """Return the one slot of an address."""
        key = (address, port, protocol)
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = EndpointSlot(self, key)
        return slot

    def open_pool(self, key: EndpointKey) -> "EndpointPool":
        """Make or find a pool."""
        return self._pools.get(*key)

    def note_orphan(self, key: EndpointKey) -> None:
        """Remember that a slot with a pool was collected."""
        self._orphans.add(key)

    def take_orphans(self) -> list[EndpointKey]:
        """Return whose pools no upstream can choose any more, once each; endpoints that came back stay noted."""
        gone = [key for key in self._orphans if key not in self._slots]
        self._orphans.difference_update(gone)
        return gone
