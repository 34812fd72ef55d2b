"""The route table's vocabulary: what every dialect translates into and what gateways compile.

A table is a set of entries of a few kinds, each with a key of its own. Endpoints live in `Upstream` entries only, so
endpoint churn never touches a route. Values are frozen and hold no reference to each other except by key.

Grows with the data plane: what is here is served today.
"""

from headgate.common.table.backend import Backend
from headgate.common.table.backend_group import (
    BackendGroup,
    Choice,
    Failover,
    FirstMatch,
    Hashed,
    Mirroring,
    Weighted,
)
from headgate.common.table.base import Entry, Provenance
from headgate.common.table.challenge import ALPN_CHALLENGE, CHALLENGE_PATH, Challenge, challenge_name
from headgate.common.table.consumers import Consumer, ConsumerGroup, Credential
from headgate.common.table.fastcgi import FastCgi
from headgate.common.table.hosts import ANY_HOST, HostKey
from headgate.common.table.kinds import (
    ENTRIES,
    EntryKind,
    EntryNoun,
    EntryRow,
    TableEntry,
    entry_key,
    entry_kind,
    kind_of,
)
from headgate.common.table.listener import (
    HTTP_LISTENER,
    HTTPS_LISTENER,
    OWN_LISTENERS,
    HostOrder,
    HttpsRedirect,
    Listener,
    ListenerDefaults,
    own_listener,
)
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
from headgate.common.table.mirror import Mirror
from headgate.common.table.plugin_use import PluginUse
from headgate.common.table.rank import Rank, count_comparisons
from headgate.common.table.route import (
    Canary,
    Route,
    Unmatched,
    VirtualHost,
)
from headgate.common.table.sending import Retries, RetryCondition, Stickiness, Timeouts
from headgate.common.table.streams import MqttConnect, StreamRoute, WeightedUpstream
from headgate.common.table.tls import OTHER_NAMES, Certificate, ClientAuth, TlsPolicy
from headgate.common.table.tracing import Tracing
from headgate.common.table.upstream import (
    LARGEST_HASH_TABLE,
    ActiveCheck,
    BackendProtocol,
    BackendTls,
    Balancing,
    BalancingPolicy,
    CircuitBreaker,
    Ejection,
    Endpoint,
    HashKey,
    RetryBudget,
    Upstream,
    is_prime,
)

DEFAULT_TABLE = "default"

__all__ = [
    "ALPN_CHALLENGE",
    "ANY_HOST",
    "CHALLENGE_PATH",
    "DEFAULT_TABLE",
    "ENTRIES",
    "HTTPS_LISTENER",
    "HTTP_LISTENER",
    "LARGEST_HASH_TABLE",
    "OTHER_NAMES",
    "OWN_LISTENERS",
    "ActiveCheck",
    "AllOf",
    "AnyOf",
    "Backend",
    "BackendGroup",
    "BackendProtocol",
    "BackendTls",
    "Balancing",
    "BalancingPolicy",
    "Canary",
    "Certificate",
    "Challenge",
    "Choice",
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
    "EntryNoun",
    "EntryRow",
    "Failover",
    "FastCgi",
    "FirstMatch",
    "HashKey",
    "Hashed",
    "HostKey",
    "HostOrder",
    "HttpsRedirect",
    "Listener",
    "ListenerDefaults",
    "Mirror",
    "Mirroring",
    "MqttConnect",
    "Not",
    "Operator",
    "PathMatch",
    "PathType",
    "PluginUse",
    "Provenance",
    "Rank",
    "Retries",
    "RetryBudget",
    "RetryCondition",
    "Route",
    "Stickiness",
    "StreamRoute",
    "Subject",
    "TableEntry",
    "Timeouts",
    "TlsPolicy",
    "Tracing",
    "Unmatched",
    "Upstream",
    "VirtualHost",
    "Weighted",
    "WeightedUpstream",
    "challenge_name",
    "count_comparisons",
    "entry_key",
    "entry_kind",
    "is_prime",
    "kind_of",
    "own_listener",
]
