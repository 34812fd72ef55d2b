"""Consumers: who may use routes that ask who is there, how they are recognised, and what holds for them."""

from pydantic import Field

from headgate.common.table.base import Entry, Provenance
from headgate.common.table.plugin_use import PluginUse


class Credential(Entry):
    """By what a consumer is recognised."""

    use: PluginUse
    """An authentication plugin and what it has to know of the consumer: `key-auth` with its `key`."""
    name: str = ""
    """What upstreams are told that it was, in `X-Credential-Identifier`."""


class Consumer(Entry):
    """Somebody, or some program, that routes can recognise.

    Two that are recognised by the same, one key for example, are told apart by age: the older one is meant, and of
    equal ones the first by namespace, name and cluster. The same holds for two of one name where a name is asked for.
    """

    key: str
    """Unique in the table: `<cluster>/<namespace>/<object>`."""
    name: str
    """`team_jack`: for upstreams (`X-Consumer-Username`), restrictions, limits and the access log."""
    group: str = ""
    """Name of its group; there need be no `ConsumerGroup` of that name."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Upstreams are told `custom_id` (`X-Consumer-Custom-Id`)."""
    credentials: tuple[Credential, ...] = ()
    plugins: tuple[PluginUse, ...] = ()
    """For its requests, wherever it is recognised, in the place of the route's and the group's of the same name."""
    created_at: str = ""
    """RFC 3339; one without counts as older than all."""
    is_scoped: bool = False
    """Whether only routes of its own cluster and namespace recognise it. Two of different namespaces may then be
    recognised by the same."""
    gateway: str = ""
    """Gateway of which it is a consumer, `<cluster>/<namespace>/<name>`: routes of other Gateways do not recognise it;
    empty: it is of none, and all do."""
    provenance: Provenance


class ConsumerGroup(Entry):
    """Plugins that several consumers have in common. Of two with one name the older is meant, as with consumers."""

    key: str
    """Unique in the table: `<cluster>/<namespace>/<object>`."""
    name: str
    """As consumers have it in `group`."""
    plugins: tuple[PluginUse, ...] = ()
    """For the requests of its consumers, in the place of the route's of the same name."""
    created_at: str = ""
    """As that of a consumer."""
    provenance: Provenance
