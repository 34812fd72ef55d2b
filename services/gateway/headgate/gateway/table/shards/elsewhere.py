"""What a gateway of one shard answers to requests for hosts of the others: 421, so that clients ask elsewhere."""

from typing import Final

from headgate.common.table import PathMatch, PathType, Provenance, Route
from headgate.common.table.shards import Shard
from headgate.gateway.proxy.policies import RoutePolicies
from headgate.gateway.table.route import CompiledRoute

MISDIRECTED: Final = 421


class Elsewhere:
    """The route of all of these requests."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        everything = PathMatch(type=PathType.PREFIX, value="/")
        origin = Provenance(cluster="", kind="Shard", namespace="", name=str(shard))
        self.route = CompiledRoute("", Route(name="other shards", path=everything, provenance=origin))
        # They are counted together, and apart from the routes of hosts: clients choose what hosts they ask for.
        self.route.name = "hosts of other shards"
        self.route.policies = RoutePolicies(fault=reason_of(shard), fault_status=MISDIRECTED)


def reason_of(shard: Shard) -> str:
    """Say why a request is not served here."""
    return f"the host is of another shard than {shard}, which this gateway serves"
