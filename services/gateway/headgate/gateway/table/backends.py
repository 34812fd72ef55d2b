"""Backends of routes and groups, bound to what they refer to."""

import logging
from collections.abc import Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, NamedTuple, Protocol
from weakref import WeakValueDictionary

from headgate.common.plugins.errors import PluginFault
from headgate.common.table import Backend, BackendGroup, Mirror, PathMatch, PluginUse, Route
from headgate.common.table.backend_group import Nested, nested_in
from headgate.gateway.balancing.backends import (
    BackendSet,
    CanaryBackend,
    CompiledBackend,
    FailoverPicker,
    FirstMatchPicker,
    HashedPicker,
    Picker,
    SplitPicker,
)
from headgate.gateway.balancing.groups import GroupHolder, GroupHolders
from headgate.gateway.balancing.hashing import RequestHash
from headgate.gateway.balancing.stickiness import StickyCookie
from headgate.gateway.balancing.upstream import UpstreamHolder
from headgate.gateway.errors import BadMatch
from headgate.gateway.model.steps import Steps
from headgate.gateway.plugins.interface.errors import PluginRefused
from headgate.gateway.table.conditions import compile_condition
from headgate.gateway.table.policies import compile_retries

if TYPE_CHECKING:
    from headgate.gateway.proxy.hooks import RequestHooks

_log = logging.getLogger(__name__)
_CHANCE = Random()  # noqa: S311 - shares load, guards nothing


class MakeHooks(Protocol):
    """Makes what runs for the requests of routes."""

    def __call__(
        self,
        uses: Sequence[PluginUse],
        scope: str,
        path: PathMatch | None,
        owner: str,
        mirrors: Sequence[Mirror] = (),
        among: BackendSet | None = None,
        *,
        of_backend: bool = False,
    ) -> "Steps[RequestHooks | None]":
        """Make plugins and mirrors, known as `host|route name`, for the paths and `Provenance.owner` of a route.

        Behind them a backend is chosen `among` several, if something is to be done on the way there. Those `of_backend`
        come too late to recognise consumers.

        Raises:
            PluginRefused: one cannot be made.
        """


class Holders:
    """One holder for each upstream and group that any live route or table names; collected with the last of them."""

    def __init__(self) -> None:
        self._holders: WeakValueDictionary[str, UpstreamHolder] = WeakValueDictionary()
        self.groups = GroupHolders()

    def __len__(self) -> int:
        return len(self._holders)

    def find(self, key: str) -> UpstreamHolder | None:
        """Return the holder of an upstream's key, if there is one."""
        return self._holders.get(key)

    def holder(self, key: str) -> UpstreamHolder:
        """Return the holder of an upstream's key, making an empty one on first use."""
        holder = self._holders.get(key)
        if holder is None:
            holder = self._holders[key] = UpstreamHolder(key)
        return holder

    def target(self, backend: Backend) -> UpstreamHolder | GroupHolder:
        """Return where a backend leads."""
        return self.groups.holder(backend.group) if backend.group else self.holder(backend.upstream)


class RouteBackends(NamedTuple):
    """The backends of a route, as far as it has a choice."""

    only: UpstreamHolder | None = None
    """The one that all of its requests go to, and nothing is to be done on the way."""
    among: BackendSet | None = None
    """Else those that there are; None: there is none."""
    label: str = ""
    """Their keys, with commas."""
    needs_body: bool = False
    """Whether a canary can only be told by the request's body."""

    @property
    def needs_hooks(self) -> bool:
        """Whether something is to be done on the way to one of them, or may be within a group."""
        return self.among is not None and not all(backend.is_plain for backend in self.among.backends)


NO_BACKENDS = RouteBackends()


def bind_backend(
    backend: Backend,
    holders: Holders,
    make_hooks: MakeHooks,
    scope: str,
    path: PathMatch | None,
    owner: str,
    mirrors: Sequence[Mirror] = (),
) -> Steps[CompiledBackend]:
    """Bind a backend, known as `scope`, in steps if it has large plugins. Raises PluginRefused, PluginFault."""
    hooks, mirrors = None, (*backend.mirrors, *mirrors)
    if backend.plugins or mirrors:
        hooks = yield from make_hooks(backend.plugins, scope, path, owner, mirrors, of_backend=True)
    return CompiledBackend(
        holders.target(backend),
        hooks,
        backend.timeouts,
        retries=compile_retries(backend.retries) if backend.retries is not None else None,
        keeps_body=backend.keeps_body,
        session_name=backend.session_name,
    )


def bind_route(route: Route, holders: Holders, make_hooks: MakeHooks, scope: str) -> Steps[RouteBackends]:
    """Bind the backends of a route, known as `host|route name`.

    Raises:
        BadMatch: a canary's condition or the cookie cannot be compiled.
        PluginRefused: a plugin of a backend cannot be made.
        PluginFault: likewise.
    """
    split = []
    for index, backend in enumerate(route.backends):
        if backend.is_plain:
            bound = CompiledBackend(holders.holder(backend.upstream))
        else:
            where = f"{scope}|backend {index}"
            bound = yield from bind_backend(backend, holders, make_hooks, where, route.path, route.provenance.owner)
        split.append((bound, backend.weight))
    canaries = [
        CompiledBackend(holders.holder(canary.upstream), keeps_sessions=canary.keeps_sessions)
        for canary in route.canaries
    ]
    return join_backends(route, split, canaries)


def join_backends(
    route: Route,
    split: Sequence[tuple[CompiledBackend, int]],
    canaries: Sequence[CompiledBackend] = (),
    chance: Random = _CHANCE,
) -> RouteBackends:
    """Put the backends of a route together. Raises BadMatch."""
    label = ",".join(backend.target.key for backend in (*canaries, *(backend for backend, _ in split)))
    weighted = [backend for backend, weight in split if weight]
    if len(weighted) == 1 and not canaries and route.stickiness is None and weighted[0].is_plain:
        return RouteBackends(only=weighted[0].upstream, label=label)
    if not (weighted or canaries):
        return RouteBackends(label=label)
    compiled = list(_compile_canaries(route, canaries, chance))
    cookie = StickyCookie(route.stickiness) if route.stickiness is not None else None
    among = BackendSet(route.name, SplitPicker(split, compiled), cookie)
    return RouteBackends(None, among, label, any(canary.needs_body for canary in compiled))


def _compile_canaries(route: Route, backends: Sequence[CompiledBackend], chance: Random) -> Iterator[CanaryBackend]:
    for index, (canary, backend) in enumerate(zip(route.canaries, backends, strict=True)):
        when = compile_condition(canary.when, f"canaries[{index}].when") if canary.when else None
        unless = compile_condition(canary.unless, f"canaries[{index}].unless") if canary.unless else None
        yield CanaryBackend(backend, when, unless, canary.share, chance, canary.needs_main)


class BoundGroup(NamedTuple):
    """A compiled group, and the holder that routes find it in."""

    holder: GroupHolder
    current: BackendSet | None
    """None: it refuses all requests."""
    nested: Nested
    fault: str = ""
    """Why it does."""


def bind_group(group: BackendGroup, holders: Holders, make_hooks: MakeHooks) -> Steps[BoundGroup]:
    """Bind a group, in steps if it has large plugins. One that cannot be bound refuses its requests."""
    holder, owner, bound = holders.groups.holder(group.key), group.provenance.owner, []
    try:
        for index, backend in enumerate(group.backends):
            scope = f"backend group {group.key}|{index}"
            bound.append((yield from bind_backend(backend, holders, make_hooks, scope, None, owner, group.mirrors)))
        cookie = StickyCookie(group.stickiness) if group.stickiness is not None else None
        picker = _picker(group, bound)
    except (BadMatch, PluginRefused, PluginFault) as bad:
        _log.error("backend group %s of %s cannot be served: %s", group.key, group.provenance, bad)
        return BoundGroup(holder, None, nested_in(group), f"of {group.provenance} cannot be served: {bad}")
    failover = group.failover
    statuses = frozenset(failover.statuses) if failover is not None else frozenset[int]()
    current = BackendSet(
        group.key,
        picker,
        cookie,
        statuses,
        repeats_unsafe=failover is not None and failover.unsafe,
        find_fault=holder.fault,
    )
    return BoundGroup(holder, current, nested_in(group))


def _picker(group: BackendGroup, bound: Sequence[CompiledBackend]) -> Picker:
    """Return what chooses among the backends of a group. Raises BadMatch."""
    split = [(each, backend.weight) for each, backend in zip(bound, group.backends, strict=True)]
    if group.hashed is not None:
        return HashedPicker(split, RequestHash(group.hashed.keys))
    if group.failover is not None:
        return FailoverPicker(*bound)
    if group.first_match is not None:
        conditions = [
            compile_condition(choice.when, f"choices[{index}].when") if choice.when is not None else None
            for index, choice in enumerate(group.first_match.choices)
        ]
        return FirstMatchPicker(tuple(zip(bound, conditions, strict=True)))
    return SplitPicker(split if group.weighted is not None else [(bound[0], 1)])
