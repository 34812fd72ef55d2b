"""What a gateway worker announces about itself.

Gateways are upgraded before translators, so what a later release says besides is passed over, and not refused: a
gateway that is not heard would lose its address in every status.
"""

import re
from collections.abc import Mapping
from typing import Final

from pydantic import AwareDatetime, BaseModel, ConfigDict

from headgate.common.snapshot import Version
from headgate.common.table.shards import WHOLE, Shard

TTL_S = 15.0
"""A worker that was not heard of for this long is gone."""
INTERVAL_S = 5.0
"""Between two announcements of a worker; a change of revision is announced at once."""
COUNTING_INTERVAL_S = 1.0
"""Between two while a table is rolled out, so that one that does harm is taken back soon."""

NOT_OPEN: Final = " not open: "
"""Between a port and the reason why it is not open, in `Heartbeat.listeners`."""
_CLOSED: Final = re.compile(rf"(https?|tcp|udp)://(.*):([0-9]+){NOT_OPEN}(.*)", re.DOTALL)


class TrafficCounts(BaseModel):
    """Requests that were over within some time."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    errors: int = 0
    """Answers of 500 and above, and requests that no route took."""
    bounds_s: tuple[float, ...] = ()
    """Upper bounds of the buckets but for the last, which has none."""
    buckets: tuple[int, ...] = ()
    """Requests by duration, from the head to the last byte of the answer."""

    @property
    def requests(self) -> int:
        """All requests."""
        return sum(self.buckets)


class RolloutReport(BaseModel):
    """How a worker fares with its table since a rollout took a step."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    step: Version
    """`Rollout.begun`."""
    is_next: bool
    """Whether it serves the next table."""
    started: AwareDatetime
    """When the worker did: another time is another process, whose counts begin at 0."""
    changed: TrafficCounts
    """Requests to the hosts and upstreams in which the next table differs, as far as the manifest names them."""
    all: TrafficCounts


class Refusal(BaseModel):
    """A revision that a worker cannot apply; it goes on with the one before."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: Version
    reason: str


class Heartbeat(BaseModel):
    """One worker of one gateway replica."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    replica: str
    worker: int
    cluster: str = ""
    zone: str = ""
    table: str
    shard: str = ""
    """What the worker serves of it, as `Shard` is written; empty: all of it."""
    version: Version | None
    """Applied; None before the first table."""
    pinned: Version | None = None
    """Old revision that the applied one is pinned to."""
    routes: Version | None = None
    """While a table is rolled out: the revision whose routes this worker serves."""
    rollout: RolloutReport | None = None
    refusal: Refusal | None = None
    behind_since: AwareDatetime | None = None
    """Since when the worker knows of a newer revision than the applied one; None: it knows of none."""
    listeners: tuple[str, ...] = ()
    """`http://0.0.0.0:8080`, and `http://0.0.0.0:9000 not open: Address already in use`."""
    addresses: tuple[str, ...] = ()
    """Addresses or host names under which clients reach this gateway: what goes into Ingress status."""
    connections: int = 0
    requests_total: int = 0
    at: AwareDatetime

    def encode(self) -> str:
        """JSON without what is as by default, so that a release that knows fewer fields reads what it needs."""
        return self.model_dump_json(exclude_defaults=True)

    @property
    def closed_ports(self) -> Mapping[tuple[int, str, bool], str]:
        """Ports of listeners that are not open, with the reasons: its number, its address, and whether it is of UDP."""
        found = filter(None, map(_CLOSED.fullmatch, self.listeners))
        return {(int(each[3]), each[2].strip("[]"), each[1] == "udp"): each[4] for each in found}

    @property
    def part(self) -> Shard:
        """What the worker serves of its table."""
        try:
            return Shard.parse(self.shard) if self.shard else WHOLE
        except ValueError:  # of a later release, which has other shards
            return WHOLE

    @property
    def served(self) -> Version | None:
        """Revision whose routes it serves; None before the first table."""
        return self.pinned or self.routes or self.version
