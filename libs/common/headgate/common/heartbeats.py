"""What a gateway worker announces about itself."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from headgate.common.snapshot import Version

TTL_S = 15.0
"""A worker that was not heard of for this long is gone."""
INTERVAL_S = 5.0
"""Between two announcements of a worker; a change of revision is announced at once."""


class Heartbeat(BaseModel):
    """One worker of one gateway replica."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    replica: str
    worker: int
    cluster: str = ""
    zone: str = ""
    table: str
    version: Version | None
    """Applied; None before the first table."""
    pinned: Version | None = None
    """Old revision that the applied one is pinned to."""
    listeners: tuple[str, ...] = ()
    """`http://0.0.0.0:8080`."""
    addresses: tuple[str, ...] = ()
    """Addresses or host names under which clients reach this gateway: what goes into Ingress status."""
    connections: int = 0
    requests_total: int = 0
    at: datetime
