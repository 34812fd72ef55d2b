"""The route table's vocabulary: what every dialect translates into and what gateways compile.

A table is a set of entries of a few kinds, each with a key of its own. Endpoints live in `Upstream` entries only, so
endpoint churn never touches a route. Values are frozen and hold no reference to each other except by key.

Grows with the data plane: what is here is served today.
"""

from collections.abc import Mapping
from typing import Literal

from headgate.common.table.base import Entry, Provenance
from headgate.common.table.consumers import Consumer, ConsumerGroup, Credential
from headgate.common.table.match import (
    AllOf,
    AnyOf,
    Compare,
    Condition,
    Not,
    Operator,
    PathMatch,
    PathType,
    Subject,
)
from headgate.common.table.rank import Rank, count_comparisons
from headgate.common.table.route import (
    ANY_HOST,
    Canary,
    PluginUse,
    Retries,
    RetryCondition,
    Route,
    Stickiness,
    Timeouts,
    Unmatched,
    VirtualHost,
    WeightedBackend,
)
from headgate.common.table.streams import MqttConnect, StreamRoute
from headgate.common.table.tls import Certificate, ClientAuth, TlsPolicy
from headgate.common.table.upstream import (
    ActiveCheck,
    BackendProtocol,
    BackendTls,
    Balancing,
    CircuitBreaker,
    Ejection,
    Endpoint,
    HashKey,
    Policy,
    Upstream,
)

DEFAULT_TABLE = "default"

EntryKind = Literal["hosts", "upstreams", "certificates", "streams", "consumers", "consumer_groups"]
ENTRY_KINDS: tuple[EntryKind, ...] = ("hosts", "upstreams", "certificates", "streams", "consumers", "consumer_groups")
TableEntry = VirtualHost | Upstream | Certificate | StreamRoute | Consumer | ConsumerGroup

ENTRY_TYPES: Mapping[EntryKind, type[TableEntry]] = {
    "hosts": VirtualHost,
    "upstreams": Upstream,
    "certificates": Certificate,
    "streams": StreamRoute,
    "consumers": Consumer,
    "consumer_groups": ConsumerGroup,
}


def entry_key(entry: TableEntry) -> str:
    """Key of an entry among those of its kind."""
    return entry.host if isinstance(entry, VirtualHost) else entry.key


def entry_kind(entry: TableEntry) -> EntryKind:
    """Kind that an entry belongs to."""
    match entry:
        case VirtualHost():
            return "hosts"
        case Upstream():
            return "upstreams"
        case Certificate():
            return "certificates"
        case StreamRoute():
            return "streams"
        case Consumer():
            return "consumers"
        case ConsumerGroup():
            return "consumer_groups"


__all__ = [
    "ANY_HOST",
    "DEFAULT_TABLE",
    "ENTRY_KINDS",
    "ENTRY_TYPES",
    "ActiveCheck",
    "AllOf",
    "AnyOf",
    "BackendProtocol",
    "BackendTls",
    "Balancing",
    "Canary",
    "Certificate",
    "CircuitBreaker",
    "ClientAuth",
    "Compare",
    "Condition",
    "Consumer",
    "ConsumerGroup",
    "Credential",
    "Ejection",
    "Endpoint",
    "Entry",
    "EntryKind",
    "HashKey",
    "MqttConnect",
    "Not",
    "Operator",
    "PathMatch",
    "PathType",
    "PluginUse",
    "Policy",
    "Provenance",
    "Rank",
    "Retries",
    "RetryCondition",
    "Route",
    "Stickiness",
    "StreamRoute",
    "Subject",
    "TableEntry",
    "Timeouts",
    "TlsPolicy",
    "Unmatched",
    "Upstream",
    "VirtualHost",
    "WeightedBackend",
    "count_comparisons",
    "entry_key",
    "entry_kind",
]
