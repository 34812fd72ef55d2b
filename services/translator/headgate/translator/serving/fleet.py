"""The gateway replicas of a table and what they serve of it; pure."""

from collections.abc import Iterable
from typing import NamedTuple

from headgate.common.heartbeats import Heartbeat
from headgate.common.snapshot import Version
from headgate.common.table.shards import Shard, missing_shards


class Replica(NamedTuple):
    """One live replica."""

    name: str
    version: Version
    """The oldest whose routes one of its workers serves: of a pinned table the old one, in a rollout one of two."""


class ClosedPort(NamedTuple):
    """A port of a listener that a replica could not open."""

    port: int
    address: str
    """That the gateway was to listen on."""
    replica: str
    reason: str
    is_udp: bool = False


class Fleet(NamedTuple):
    """All live replicas that serve a table; one that starts and has none yet serves nothing and does not count."""

    replicas: tuple[Replica, ...] = ()
    closed: tuple[ClosedPort, ...] = ()
    """By port, address and replica."""
    missing: tuple[Shard, ...] = ()
    """Shards that no replica serves, if the others have some."""

    @classmethod
    def of(cls, heartbeats: Iterable[Heartbeat], table: str) -> "Fleet":
        """Take it from heartbeats."""
        versions: dict[str, list[Version | None]] = {}
        shards: dict[str, Shard] = {}
        closed: dict[tuple[int, str, str, bool], str] = {}
        for beat in heartbeats:
            if beat.table == table:
                versions.setdefault(beat.replica, []).append(beat.served)
                shards[beat.replica] = beat.part
                found = beat.closed_ports.items()
                closed |= {(port, address, beat.replica, is_udp): why for (port, address, is_udp), why in found}
        serving = ((name, [version for version in found if version]) for name, found in sorted(versions.items()))
        replicas = [Replica(name, min(found)) for name, found in serving if found and len(found) == len(versions[name])]
        return cls(
            tuple(replicas),
            tuple(ClosedPort(*place[:3], why, place[3]) for place, why in sorted(closed.items())),
            missing_shards(shards[replica.name] for replica in replicas),
        )

    @property
    def least(self) -> Version | None:
        """The oldest version that is served."""
        return min((replica.version for replica in self.replicas), default=None)

    def behind(self, version: Version) -> tuple[str, ...]:
        """Return the names of the replicas that do not serve a version yet."""
        return tuple(replica.name for replica in self.replicas if replica.version < version)

    def lacking(self, version: Version) -> tuple[str, ...]:
        """Return whom a version waits for: replicas that do not serve it yet, and shards without any."""
        return (*self.behind(version), *(f"shard {shard}" for shard in self.missing))
