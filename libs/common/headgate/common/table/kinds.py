"""The kinds of entries that a table has, each in one row.

Snapshots keep the entries of a kind in chunks of its own, the translator puts and discards them by kind and key, and
gateways compile them by kind. All of these, differences of tables and the command line follow the rows. A new kind is a
model, its name in `EntryKind` and `TableEntry`, a row, and a `ChunkSet` of the gateways' compiler; types cannot be made
of rows, so a test compares the three.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from headgate.common.table.backend_group import BackendGroup
from headgate.common.table.base import Entry
from headgate.common.table.challenge import Challenge
from headgate.common.table.consumers import Consumer, ConsumerGroup
from headgate.common.table.listener import Listener
from headgate.common.table.route import VirtualHost
from headgate.common.table.streams import StreamRoute
from headgate.common.table.tls import Certificate
from headgate.common.table.upstream import Upstream

EntryKind = Literal[
    "hosts",
    "upstreams",
    "certificates",
    "streams",
    "consumers",
    "consumer_groups",
    "listeners",
    "backend_groups",
    "challenges",
]
TableEntry = (
    VirtualHost | Upstream | Certificate | StreamRoute | Consumer | ConsumerGroup | Listener | BackendGroup | Challenge
)
EntryNoun = Literal[
    "host", "upstream", "certificate", "stream", "consumer", "consumer group", "listener", "backend group", "challenge"
]


class EntryRow(NamedTuple):
    """One kind of entries."""

    model: type[TableEntry]
    noun: EntryNoun
    """One of them, as people read it."""


ENTRIES: Final[Mapping[EntryKind, EntryRow]] = MappingProxyType(
    {
        "hosts": EntryRow(VirtualHost, "host"),
        "upstreams": EntryRow(Upstream, "upstream"),
        "certificates": EntryRow(Certificate, "certificate"),
        "streams": EntryRow(StreamRoute, "stream"),
        "consumers": EntryRow(Consumer, "consumer"),
        "consumer_groups": EntryRow(ConsumerGroup, "consumer group"),
        "listeners": EntryRow(Listener, "listener"),
        "backend_groups": EntryRow(BackendGroup, "backend group"),
        "challenges": EntryRow(Challenge, "challenge"),
    }
)
_KINDS: Final[Mapping[type[Entry], EntryKind]] = {row.model: kind for kind, row in ENTRIES.items()}


def kind_of(model: type[Entry]) -> EntryKind:
    """Return the kind whose entries are of a model."""
    return _KINDS[model]


def entry_kind(entry: TableEntry) -> EntryKind:
    """Return the kind that an entry belongs to."""
    return _KINDS[type(entry)]


def entry_key(entry: TableEntry) -> str:
    """Return the key of an entry among those of its kind."""
    return entry.key
