"""Endpoints by address, shared by all upstreams that name them, and their connection pools, made on first use.

A table may name 100,000 endpoints of which few get traffic on one worker: a slot costs a tenth of a pool. A slot keeps
its identity while any upstream has it, so balancing state and connections survive swaps; when none does it is
collected, and `take_orphans` names its pool.
"""

import time
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary, ref

from headgate.gateway.balancing.latency import PeakLatency
from headgate.gateway.model.connection import ConnectionSpec

if TYPE_CHECKING:
    from headgate.gateway.proxy.endpoint_pool import EndpointPool


EndpointKey = tuple[str, int, ConnectionSpec]
"""Address (which may be a DNS name), port, and how it is connected to."""


class PoolSource(Protocol):
    """Where connection pools come from: the proxy's `PoolRegistry`."""

    def get(self, address: str, port: int, spec: ConnectionSpec) -> "EndpointPool":
        """Return the pool of an address, making it on first use."""


class SlotUser(Protocol):
    """An upstream's balancer, as slots know it."""

    key: str
    """Of the upstream."""

    def note_change(self) -> None:
        """Hear that a slot's health changed."""


class EndpointSlot:
    """One address that upstreams send to, and whether it is fit to be sent to."""

    __slots__ = (
        "__weakref__",
        "_directory",
        "_ejected_until",
        "_is_healthy",
        "_users",
        "is_suspect",
        "key",
        "latency",
        "pool",
        "sessions",
    )

    def __init__(self, directory: "EndpointDirectory", key: EndpointKey) -> None:
        self._directory = directory
        self._is_healthy = True
        self._ejected_until = 0.0
        self._users: tuple[ref[SlotUser], ...] | list[ref[SlotUser]] = ()
        self.is_suspect = False
        """Unhealthy, or ejected at some time that may be over: what plans look at first."""
        self.key = key
        self.pool: EndpointPool | None = None
        """None before the first request."""
        self.latency: PeakLatency | None = None
        """None while no upstream chooses by latency."""
        self.sessions = 0
        """Under way without a pool: streams."""

    def __del__(self) -> None:
        if self.pool is not None:
            self._directory.note_orphan(self.key)

    @property
    def is_healthy(self) -> bool:
        """What active checks found last; true without checks."""
        return self._is_healthy

    @property
    def ejected_until(self) -> float:
        """Monotonic seconds; 0 if it was never ejected or was let back in."""
        return self._ejected_until

    @property
    def active(self) -> int:
        """Requests and streams under way."""
        pool = self.pool
        return self.sessions if pool is None else self.sessions + pool.in_flight

    @property
    def name(self) -> bytes:
        """`address:port`, by which hashing knows it."""
        return f"{self.key[0]}:{self.key[1]}".encode()

    @property
    def url(self) -> bytes:
        """The same with the scheme that is spoken, and the name that the address was found under."""
        address, port, spec = self.key
        host = spec.name or address
        scheme = "https" if spec.protocol == "h2" else spec.protocol
        return f"{scheme}://[{host}]:{port}".encode() if ":" in host else f"{scheme}://{host}:{port}".encode()

    def mark(self, *, is_healthy: bool | None = None, ejected_until: float | None = None) -> None:
        """Change what is given; upstreams that send here plan anew before their next choice if it is a change.

        An ejection ends by itself; `ejected_until=0` ends it early.
        """
        before = self._is_healthy, self._ejected_until
        if is_healthy is not None:
            self._is_healthy = is_healthy
        if ejected_until is not None:
            self._ejected_until = ejected_until
        self.is_suspect = not self._is_healthy or self._ejected_until > 0.0
        if before != (self._is_healthy, self._ejected_until):
            self.notify_users()

    def notify_users(self) -> None:
        """Let all balancers that send here plan anew before their next choice."""
        for user in self._users:
            balancer = user()
            if balancer is not None:
                balancer.note_change()

    def add_user(self, user: "tuple[ref[SlotUser]]") -> None:
        """Tell a balancer of changes for as long as it lives."""
        users = self._users
        if len(users) & (len(users) - 1):
            # Thousands of upstreams may send here: the dead are looked for each time that they have doubled.
            assert isinstance(users, list)
            users.extend(user)
            return
        # Nearly all slots have one upstream, of which two revisions are there during a swap, and share its tuple.
        living = [other for other in users if other() is not None]
        self._users = [*living, *user] if living else user

    @property
    def upstreams(self) -> list[str]:
        """Keys of the upstreams that send here."""
        users = [user() for user in self._users]
        return sorted({user.key for user in users if user is not None})

    def open_pool(self) -> "EndpointPool":
        """Return the pool, making it on first use."""
        pool = self.pool
        if pool is None:
            pool = self.pool = self._directory.open_pool(self.key)
            pool.latency = self.latency
        return pool

    def measure(self, latency: PeakLatency) -> None:
        """Measure how long answers take from now on."""
        self.latency = latency
        if self.pool is not None:
            self.pool.latency = latency


class EndpointDirectory:
    """All slots of one worker.

    Args:
        pools: where their connections are.
        clock: monotonic seconds.
        chance: what random choices are drawn from.
    """

    def __init__(
        self,
        pools: PoolSource,
        clock: Callable[[], float] = time.monotonic,
        chance: Random | None = None,
    ) -> None:
        self.clock = clock
        self.chance = chance or Random()  # noqa: S311 - spreads load, guards nothing
        self._pools = pools
        self._slots: WeakValueDictionary[EndpointKey, EndpointSlot] = WeakValueDictionary()
        self._orphans: set[EndpointKey] = set()

    def __len__(self) -> int:
        return len(self._slots)

    def slot(self, address: str, port: int, spec: ConnectionSpec) -> EndpointSlot:
        """Return the one slot of an address."""
        key = (address, port, spec)
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = EndpointSlot(self, key)
        return slot

    def upstreams(self, key: EndpointKey) -> list[str]:
        """Return the keys of the upstreams that name an address; none once no table does."""
        slot = self._slots.get(key)
        return slot.upstreams if slot is not None else []

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
