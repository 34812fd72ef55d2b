"""What differs between two tables, as a person means it: this route's backends, that upstream's endpoint.

Chunks and encoded entries tell that something differs; this tells what. Routes are known by what they match and not by
their names, so that a rule that moved within its object, or went from one object to another, is the same route. What
no one should read is replaced by a mark that differs where it does.

Rejected: a generic comparison of JSON documents. It shows a list of ten backends twice where one weight changed, and a
host with a hundred routes as one value.
"""

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue

from headgate.common.sealing import ClusterValue
from headgate.common.table import (
    ENTRIES,
    Consumer,
    ConsumerGroup,
    Credential,
    Endpoint,
    Entry,
    EntryKind,
    EntryNoun,
    PathType,
    PluginUse,
    Route,
    TableEntry,
    Upstream,
    VirtualHost,
    entry_key,
    entry_kind,
)

T = TypeVar("T")
PlainObject = dict[str, Any]

ItemKind = EntryNoun | Literal["route", "endpoint"]
_MARK_DIGITS = 8
_KEY = secrets.token_bytes(32)


class DiffOperation(StrEnum):
    """What happened to an item."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class FieldChange(BaseModel):
    """One field that has another value; None is nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    field: str
    """`timeouts.read_s`, `plugins.cors.allow_origins`."""
    before: JsonValue = None
    after: JsonValue = None


class ItemChange(BaseModel):
    """One thing that was added, removed or changed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ItemKind
    operation: DiffOperation
    name: str
    """Of a route its path with its type, of an endpoint its address and port, else the entry's key."""
    within: str = ""
    """The host of a route, with its listeners where it names some; the upstream of an endpoint."""
    when: dict[str, JsonValue] | None = None
    """Of a route, what a request has to satisfy besides the path (a `Condition`)."""
    source: str = ""
    """The object that it comes from, where there is one; of something that changed the later one."""
    fields: tuple[FieldChange, ...] = ()
    """Of something that changed."""
    content: dict[str, JsonValue] = {}
    """Of something that was added or removed: all of its fields that are not as by default."""


class TableDiff(BaseModel):
    """All changes, by name: hosts with their routes, upstreams with their endpoints, certificates, streams, consumers,
    consumer groups, listeners.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    changes: tuple[ItemChange, ...] = ()

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Number of changes by kind and operation: `{"route": {"added": 1}}`."""
        found: dict[str, Counter[str]] = {}
        for change in self.changes:
            found.setdefault(change.kind, Counter())[change.operation.value] += 1
        return {kind: dict(counter) for kind, counter in found.items()}


def diff_tables(before: Iterable[TableEntry], after: Iterable[TableEntry], *, heeds_seals: bool = True) -> TableDiff:
    """Compare two tables, or what differs between them.

    Args:
        before: entries; what is equal in both may be left out.
        after: entries.
        heeds_seals: whether another sealed value is a change. It is one where both were sealed by a watcher; what was
            sealed by way of trial is different each time.
    """
    plain = _Plain(heeds_seals)
    was = {(entry_kind(entry), entry_key(entry)): entry for entry in before}
    now = {(entry_kind(entry), entry_key(entry)): entry for entry in after}
    changes: list[ItemChange] = []
    for kind, row in ENTRIES.items():
        compare = _COMPARISONS.get(kind) or partial(_diff_plainly, row.noun)
        for key in sorted(name for entry, name in was.keys() | now.keys() if entry == kind):
            old, new = was.get((kind, key)), now.get((kind, key))
            if old != new:
                changes += compare(key, old, new, plain)
    return TableDiff(changes=tuple(changes))


class _Plain:
    """Entries as JSON data without what no one should read."""

    def __init__(self, heeds_seals: bool) -> None:
        self._heeds_seals = heeds_seals

    def all_of(self, entry: Entry) -> PlainObject:
        """Return every field."""
        return self._clean(entry.model_dump(mode="json"))  # type: ignore[no-any-return]

    def said_of(self, entry: Entry) -> PlainObject:
        """Return the fields that are not as by default."""
        return self._clean(entry.model_dump(mode="json", exclude_defaults=True))  # type: ignore[no-any-return]

    def uses(self, plugins: Sequence[PluginUse]) -> PlainObject:
        """Return what plugins are told, by their names; of a second use of one plugin the name has a number."""
        found: PlainObject = {}
        for plugin in plugins:
            number = 1 + sum(name.partition("#")[0] == plugin.name for name in found)
            found[plugin.name if number == 1 else f"{plugin.name}#{number}"] = self.use(plugin)
        return found

    def use(self, plugin: PluginUse) -> PlainObject:
        """Return what a plugin is told, on one level."""
        said = self.said_of(plugin)
        sealed = {f"{place} (secret)": held for place, held in said.get("secrets", {}).items()}
        order = {"order": plugin.order} if plugin.order is not None else {}
        place = {"is_global": True} if plugin.is_global else {}
        return {**said.get("config", {}), **sealed, **order, **place}

    def _clean(self, value: Any, field: str = "") -> Any:
        if isinstance(value, dict):
            if "boxes" in value and value.keys() <= ClusterValue.model_fields.keys():
                return f"*** ({_mark(value)})" if self._heeds_seals else "***"
            if _is_use(value):
                from headgate.common.plugins.hiding import hide_secrets  # imports the models of all plugins: 0.3 s

                value = {**value, "config": hide_secrets(value["name"], value["config"], _hidden)}
            return {name: self._clean(held, name) for name, held in value.items()}
        if isinstance(value, list):
            return [self._clean(held) for held in value]
        if isinstance(value, str) and field.endswith("_pem") and value:
            return f"sha256:{_mark(value)}"
        return value


def _is_use(value: Mapping[str, Any]) -> bool:
    """Tell whether JSON data is a `PluginUse`."""
    return isinstance(value.get("config"), dict) and value.keys() <= PluginUse.model_fields.keys()


def _hidden(secret: str) -> str:
    """Return what stands for a secret that was written in plain text: a short one could be guessed from its digest."""
    return f"*** ({hashlib.blake2b(secret.encode(), key=_KEY).hexdigest()[:_MARK_DIGITS]})"


def _mark(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_MARK_DIGITS]


# Hosts and routes


class RouteIdentity(NamedTuple):
    """What a route is known by, whatever it is called."""

    path_type: PathType
    path: str
    ignore_case: bool
    priority: int
    condition: str
    """As JSON; empty for none."""
    number: int
    """Among those that are equal otherwise."""


def _diff_hosts(key: str, old: Any, new: Any, plain: _Plain) -> Iterator[ItemChange]:
    before, after = _routes(old), _routes(new)
    if old is None or new is None:
        yield _whole("host", key, old, new, plain, leave_out={"host", "listeners", "routes"})
    elif fields := _host_fields(old, new, before, after, plain):
        yield ItemChange(kind="host", operation=DiffOperation.CHANGED, name=key, fields=fields)
    for identity in _in_order(after, before):
        yield from _diff_routes(key, before.get(identity), after.get(identity), plain)


def _routes(host: VirtualHost | None) -> dict[RouteIdentity, Route]:
    found: dict[RouteIdentity, Route] = {}
    for route in host.routes if host else ():
        condition = route.when.model_dump_json(exclude_defaults=True) if route.when else ""
        path, number = route.path, 0
        while (
            identity := RouteIdentity(path.type, path.value, path.ignore_case, route.rank.priority, condition, number)
        ) in found:
            number += 1
        found[identity] = route
    return found


def _host_fields(
    old: VirtualHost,
    new: VirtualHost,
    before: Mapping[RouteIdentity, Route],
    after: Mapping[RouteIdentity, Route],
    plain: _Plain,
) -> tuple[FieldChange, ...]:
    found = list(_differences("tls", *(plain.all_of(one.tls) if one.tls else None for one in (old, new))))
    found += _differences("unmatched", old.unmatched, new.unmatched)
    peers = {_peers(identity) for identity in before.keys() & after.keys()}
    for group in sorted(peers):
        was, now = (
            [one for one in routes if _peers(one) == group and one in before.keys() & after.keys()]
            for routes in (before, after)
        )
        if was != now:
            found.append(FieldChange(field="order", before=[*map(_title, was)], after=[*map(_title, now)]))
    return tuple(found)


def _peers(identity: RouteIdentity) -> tuple[int, str, str]:
    """Routes among which nothing but their position decides: of equal paths, or patterns of equal length."""
    is_pattern = identity.path_type is PathType.REGEX
    return identity.priority, identity.path_type, f"{len(identity.path)}" if is_pattern else identity.path


def _title(identity: RouteIdentity) -> str:
    condition = f" if {identity.condition}" if identity.condition else ""
    return f"{identity.path} {identity.path_type}{condition}"


def _diff_routes(host: str, old: Route | None, new: Route | None, plain: _Plain) -> Iterator[ItemChange]:
    one = new or old
    assert one is not None
    name, when = _route_name(one), plain.said_of(one.when) if one.when else None
    if old is None or new is None:
        left_out = {"name", "path", "rank", "when", "provenance"}
        whole = _whole("route", name, old, new, plain, within=host, leave_out=left_out)
        yield whole.model_copy(update={"when": when})
        return
    fields = tuple(_differences("", _route_data(old, plain), _route_data(new, plain)))
    if fields:
        yield ItemChange(
            kind="route",
            operation=DiffOperation.CHANGED,
            name=name,
            within=host,
            when=when,
            source=_source(new),
            fields=fields,
        )


def _route_name(route: Route) -> str:
    name = f"{route.path.value} {route.path.type}"
    if route.path.ignore_case:
        name += " in any case"
    return f"{name}, priority {route.rank.priority}" if route.rank.priority else name


def _route_data(route: Route, plain: _Plain) -> PlainObject:
    data = plain.all_of(route)
    for part_of_identity in ("name", "path", "when", "provenance"):
        del data[part_of_identity]
    del data["rank"]["priority"]
    return {**data, "plugins": plain.uses(route.plugins), "source": _source(route)}


# Upstreams and endpoints


def _diff_upstreams(key: str, old: Any, new: Any, plain: _Plain) -> Iterator[ItemChange]:
    if old is None or new is None:
        yield _whole("upstream", key, old, new, plain, leave_out={"key", "provenance"})
        return
    fields = tuple(_differences("", *(_upstream_data(one, plain) for one in (old, new))))
    if fields:
        yield ItemChange(kind="upstream", operation=DiffOperation.CHANGED, name=key, source=_source(new), fields=fields)
    before, after = _endpoints(old), _endpoints(new)
    for name in sorted(before.keys() | after.keys(), key=lambda name: (name.rpartition(":")[0], name)):
        yield from _diff_endpoints(key, name, before.get(name), after.get(name), plain)


def _upstream_data(upstream: Upstream, plain: _Plain) -> PlainObject:
    data = plain.all_of(upstream.model_copy(update={"endpoints": ()}))
    for left_out in ("key", "endpoints", "provenance"):
        del data[left_out]
    return data


def _endpoints(upstream: Upstream) -> dict[str, Endpoint]:
    return {_endpoint_name(endpoint): endpoint for endpoint in upstream.endpoints}


def _endpoint_name(endpoint: Endpoint) -> str:
    address = f"[{endpoint.address}]" if ":" in endpoint.address else endpoint.address
    return f"{address}:{endpoint.port}"


def _diff_endpoints(
    upstream: str, name: str, old: Endpoint | None, new: Endpoint | None, plain: _Plain
) -> Iterator[ItemChange]:
    if old == new:
        return
    if old is None or new is None:
        yield _whole("endpoint", name, old, new, plain, within=upstream, leave_out={"address", "port"})
        return
    fields = tuple(_differences("", plain.all_of(old), plain.all_of(new)))
    yield ItemChange(kind="endpoint", operation=DiffOperation.CHANGED, name=name, within=upstream, fields=fields)


# Entries without parts of their own: certificates, streams


def _diff_plainly(kind: EntryNoun, key: str, old: Any, new: Any, plain: _Plain) -> Iterator[ItemChange]:
    if old is None or new is None:
        yield _whole(kind, key, old, new, plain, leave_out={"key", "provenance"})
        return
    before, after = ({**plain.all_of(one), "provenance": None, "source": _source(one)} for one in (old, new))
    if fields := tuple(_differences("", before, after)):
        yield ItemChange(kind=kind, operation=DiffOperation.CHANGED, name=key, source=_source(new), fields=fields)


# Consumers


def _diff_consumers(key: str, old: Any, new: Any, plain: _Plain) -> Iterator[ItemChange]:
    return _diff_people("consumer", old, new, plain)


def _diff_consumer_groups(key: str, old: Any, new: Any, plain: _Plain) -> Iterator[ItemChange]:
    return _diff_people("consumer group", old, new, plain)


def _diff_people(kind: ItemKind, old: Any, new: Any, plain: _Plain) -> Iterator[ItemChange]:
    if old is None or new is None:
        name = (new or old).name
        yield _whole(kind, name, old, new, plain, leave_out={"key", "name", "created_at", "provenance"})
        return
    if fields := tuple(_differences("", *(_people_data(each, plain) for each in (old, new)))):
        yield ItemChange(kind=kind, operation=DiffOperation.CHANGED, name=new.name, source=_source(new), fields=fields)


def _people_data(one: Consumer | ConsumerGroup, plain: _Plain) -> PlainObject:
    data = {**plain.all_of(one), "plugins": plain.uses(one.plugins), "source": _source(one)}
    if isinstance(one, Consumer):
        data["credentials"] = _credentials(one.credentials, plain)
    for left_out in ("key", "created_at", "provenance"):
        del data[left_out]
    return data


def _credentials(credentials: Sequence[Credential], plain: _Plain) -> PlainObject:
    said = plain.uses([each.use for each in credentials])
    named = zip(said.items(), credentials, strict=True)
    return {key: {**told, "(name)": each.name} if each.name else told for (key, told), each in named}


# What all have in common


_Compare = Callable[[str, Any, Any, _Plain], Iterator[ItemChange]]
_COMPARISONS: Mapping[EntryKind, _Compare] = {
    "hosts": _diff_hosts,
    "upstreams": _diff_upstreams,
    "consumers": _diff_consumers,
    "consumer_groups": _diff_consumer_groups,
}
"""Of kinds that are not compared field by field alone."""


def _whole(
    kind: ItemKind,
    name: str,
    old: Entry | None,
    new: Entry | None,
    plain: _Plain,
    *,
    leave_out: set[str],
    within: str = "",
) -> ItemChange:
    one = new or old
    assert one is not None
    content = {field: held for field, held in plain.said_of(one).items() if field not in leave_out}
    operation = DiffOperation.ADDED if new is not None else DiffOperation.REMOVED
    return ItemChange(kind=kind, operation=operation, name=name, within=within, source=_source(one), content=content)


def _source(entry: Any) -> str:
    provenance = getattr(entry, "provenance", None)
    if provenance is None:
        return ""
    return f"{provenance.kind} {provenance.cluster}/{provenance.namespace}/{provenance.name}"


def _differences(field: str, before: Any, after: Any) -> Iterator[FieldChange]:
    """Compare two values; members of objects one by one, everything else as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in _in_order(after, before):
            yield from _differences(f"{field}.{name}" if field else name, before.get(name), after.get(name))
    elif before != after:
        yield FieldChange(field=field, before=before, after=after)


K = TypeVar("K", bound=Hashable)


def _in_order(first: Iterable[K], second: Iterable[K]) -> Sequence[K]:
    return list(dict.fromkeys((*first, *second)))
