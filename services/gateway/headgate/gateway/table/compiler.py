"""Turning one revision into the next: staged chunk by chunk, made current in one synchronous step.

`TableCompiler.stage` names the chunks that are missing; each is decoded and compiled by `TableUpdate.add` in steps,
between which the caller lets traffic run; `TableUpdate.commit` swaps balancers and returns the new table, without a
point in between at which a request could see half of it. An update that fails is dropped.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from headgate.common.sealing import Unseal
from headgate.common.snapshot import ChunkName, Version
from headgate.common.table import (
    BackendGroup,
    Certificate,
    Challenge,
    Consumer,
    ConsumerGroup,
    EntryKind,
    Listener,
    StreamRoute,
    Upstream,
    VirtualHost,
)
from headgate.gateway.balancing.endpoints import EndpointDirectory, EndpointSlot
from headgate.gateway.balancing.levels import NOWHERE, Place
from headgate.gateway.balancing.upstream import UpstreamBalancer, UpstreamHolder, missing_balancer
from headgate.gateway.balancing.way import GroupEndpoints
from headgate.gateway.health.policies import WatchesNothing, WatchesUpstreams
from headgate.gateway.model.steps import Steps, finish
from headgate.gateway.plugins.interface.consumers import ConsumerDirectory, KnownConsumer, KnownGroup
from headgate.gateway.streams.route import CompiledStream
from headgate.gateway.table.backends import BoundGroup, Holders, MakeHooks, bind_group
from headgate.gateway.table.certificates import OpenedCertificate, open_certificate
from headgate.gateway.table.challenges import AnsweredChallenge, compile_challenge
from headgate.gateway.table.chunks import ALL_ENTRIES, ChunkSet, ChunkStage, FindPrevious, decode_entry
from headgate.gateway.table.compile import (
    CompiledHost,
    compile_host,
    no_plugins,
)
from headgate.gateway.table.compiled_table import CompiledTable, HostChange
from headgate.gateway.table.listener_compiler import ListenerCompiler
from headgate.gateway.table.listener_ports import OWN_HTTPS, ListenerPort, OwnPorts, plan_listeners
from headgate.gateway.table.listeners import CompiledListener
from headgate.gateway.table.names import FollowsNames, NameFollower
from headgate.gateway.table.shards.elsewhere import Elsewhere
from headgate.gateway.table.shards.part import PartUpdate, ShardPart
from headgate.gateway.table.upstreams import BoundUpstream, UpstreamCompiler
from headgate.gateway.tls.backend import BackendContexts
from headgate.gateway.tls.policy import HostTls, TlsPolicies

_log = logging.getLogger(__name__)

SETTLED_AT_ONCE = 1000
"""Upstreams without health policies that are settled between two turns of the event loop: about a millisecond."""
_kind_of = attrgetter("kind")
_WATCHED_COST = 10
"""An endpoint that is watched takes the time of so many of them."""


class TableCompiler:
    """The compiled state of one table.

    Args:
        directory: where endpoints and their pools are found.
        unseal: opens a certificate's private key; raises SealingError.
        next_offset: how many turns a new upstream begins with, for workers not to march in step.
        place: where this gateway is, for upstreams that prefer what is near.
        health: watches the endpoints of what is made current.
        make_hooks: makes the plugins of routes.
        resolver: knows the addresses of endpoints that are names; without one they are looked up by each connection.
        consumers: where plugins find consumers.
        own_ports: numbers of the gateway's own ports.
        part: what is kept of the table; None: all of it.
    """

    def __init__(
        self,
        directory: EndpointDirectory,
        unseal: Unseal,
        next_offset: Callable[[], int] = lambda: 0,
        place: Place = NOWHERE,
        health: WatchesUpstreams | None = None,
        make_hooks: MakeHooks = no_plugins,
        resolver: FollowsNames | None = None,
        consumers: ConsumerDirectory | None = None,
        own_ports: OwnPorts = MappingProxyType({}),
        part: ShardPart | None = None,
    ) -> None:
        self.directory = directory
        self.consumer_directory = ConsumerDirectory() if consumers is None else consumers
        self._unseal = unseal
        self._next_offset = next_offset
        self._health: WatchesUpstreams = WatchesNothing() if health is None else health
        self._make_hooks = make_hooks
        self._names = NameFollower(resolver, self._renew_upstream) if resolver is not None else None
        self._named: dict[str, BoundUpstream] = {}
        """Current upstreams that have names, by key."""
        self._holders = Holders()
        self._upstream_compiler = UpstreamCompiler(
            directory, self._holders, BackendContexts(unseal), place, next_offset, self._names
        )
        self._tls_policies = TlsPolicies()
        self._listener_compiler = ListenerCompiler(self._tls_policies, self._holders, make_hooks)
        self.hosts: ChunkSet[VirtualHost, CompiledHost] = ChunkSet(VirtualHost, self._compile_host)
        self.upstreams: ChunkSet[Upstream, BoundUpstream] = ChunkSet(Upstream, self._upstream_compiler.bind)
        self.certificates: ChunkSet[Certificate, OpenedCertificate] = ChunkSet(Certificate, self._open_certificate)
        self.streams: ChunkSet[StreamRoute, CompiledStream] = ChunkSet(StreamRoute, self._compile_stream)
        self.consumers: ChunkSet[Consumer, KnownConsumer] = ChunkSet(Consumer, self._compile_consumer)
        self.consumer_groups: ChunkSet[ConsumerGroup, KnownGroup] = ChunkSet(ConsumerGroup, self._compile_group)
        self.listeners: ChunkSet[Listener, CompiledListener] = ChunkSet(Listener, self._listener_compiler.compile)
        self.backend_groups: ChunkSet[BackendGroup, BoundGroup] = ChunkSet(BackendGroup, self._compile_backend_group)
        self.challenges: ChunkSet[Challenge, AnsweredChallenge] = ChunkSet(Challenge, self._compile_challenge)
        self.chunk_sets: Mapping[EntryKind, ChunkSet[Any, Any]] = {
            "hosts": self.hosts,
            "upstreams": self.upstreams,
            "certificates": self.certificates,
            "streams": self.streams,
            "consumers": self.consumers,
            "consumer_groups": self.consumer_groups,
            "listeners": self.listeners,
            "backend_groups": self.backend_groups,
            "challenges": self.challenges,
        }
        self._own_ports = own_ports
        self.endpoint_count = 0
        """Endpoints of all upstreams of the table; one that several name counts for each."""
        self._elsewhere = Elsewhere(part.shard) if part is not None else None
        self.part = part
        self.table: CompiledTable | None = None

    def _compile_host(self, raw: bytes, find_previous: FindPrevious[CompiledHost]) -> Steps[tuple[str, CompiledHost]]:
        return compile_host(raw, find_previous, self._holders, self._tls_policies, self._make_hooks)

    def _compile_backend_group(
        self, raw: bytes, find_previous: FindPrevious[BoundGroup]
    ) -> Steps[tuple[str, BoundGroup]]:
        entry = decode_entry(BackendGroup, raw)
        return entry.key, (yield from bind_group(entry, self._holders, self._make_hooks))

    def _renew_upstream(self, key: str) -> None:
        """Send requests to the addresses that the names of an upstream have now."""
        bound = self._named[key]
        assert bound.named is not None
        bound.balancer = self._upstream_compiler.balance_named(bound.named, bound.balancer)
        self._place(bound.holder, bound.balancer)
        finish(self._watch(bound))

    def _compile_stream(
        self, raw: bytes, find_previous: FindPrevious[CompiledStream]
    ) -> Steps[tuple[str, CompiledStream]]:
        entry = decode_entry(StreamRoute, raw)
        yield from ()
        tls = self._tls_policies.compile(entry.tls, entry.key)
        return entry.key, CompiledStream(entry, self._holders.holder, self._next_offset(), tls)

    def _open_certificate(
        self, raw: bytes, find_previous: FindPrevious[OpenedCertificate]
    ) -> Steps[tuple[str, OpenedCertificate]]:
        certificate = decode_entry(Certificate, raw)
        previous = find_previous(certificate.key)
        yield from ()
        return certificate.key, open_certificate(certificate, previous and previous.compiled, self._unseal)

    def _compile_challenge(
        self, raw: bytes, find_previous: FindPrevious[AnsweredChallenge]
    ) -> Steps[tuple[str, AnsweredChallenge]]:
        return compile_challenge(raw, self._holders, self._make_hooks)

    def _compile_consumer(
        self, raw: bytes, find_previous: FindPrevious[KnownConsumer]
    ) -> Steps[tuple[str, KnownConsumer]]:
        entry = decode_entry(Consumer, raw)
        yield from ()
        return entry.key, self.consumer_directory.read(entry, self._unseal)

    def _compile_group(self, raw: bytes, find_previous: FindPrevious[KnownGroup]) -> Steps[tuple[str, KnownGroup]]:
        entry = decode_entry(ConsumerGroup, raw)
        yield from ()
        return entry.key, KnownGroup(entry)

    def stage(self, version: Version, names: Sequence[ChunkName]) -> "TableUpdate":
        """Begin an update to a revision that consists of these chunks."""
        return TableUpdate(self, version, names)

    def find_tls(self, server_name: bytes, port: ListenerPort = OWN_HTTPS) -> HostTls | None:
        """Return the TLS policy of the virtual host that takes a server name: lower case, empty if none was sent."""
        return self.table.find_tls(port, server_name) if self.table is not None else None

    def find_certificates(self, server_name: bytes, port: ListenerPort = OWN_HTTPS) -> Sequence[str]:
        """Return the keys of certificates among which that for a server name is chosen; none: all of the table."""
        return self.table.find_certificates(port, server_name) if self.table is not None else ()

    def certificates_at(self, listener: str) -> Sequence[str]:
        """Return the keys of the certificates of a listener by its key."""
        known = self.table.listeners.get(listener) if self.table is not None else None
        return known.entry.certificates if known is not None else ()

    @property
    def listener_entries(self) -> Mapping[str, Listener]:
        """The listeners of the table by their keys."""
        listeners = self.table.listeners if self.table is not None else {}
        return {key: each.entry for key, each in listeners.items()}

    def find_endpoints(self, key: str) -> UpstreamHolder | None:
        """Return where the endpoints of an upstream are found."""
        return self._holders.find(key)

    def hold_endpoints(self, key: str) -> UpstreamHolder:
        """Return where the endpoints of an upstream are found once it is in the table, as long as that is held."""
        return self._holders.holder(key)

    def hold_group(self, key: str) -> GroupEndpoints:
        """Return where the endpoints of a group of backends are found once it is in the table."""
        return GroupEndpoints(self._holders.groups.holder(key))

    def forget_upstream(self, key: str) -> None:
        """Leave routes that still refer to a removed upstream with a reason instead of its last endpoints."""
        self._place(self._holders.holder(key), missing_balancer(key))
        self._follow_names(key, None)

    def replace_groups(self, bound: Mapping[str, BoundGroup], gone: Collection[str]) -> None:
        """Send requests by these revisions of groups from now on, and refuse those of groups that are gone."""
        for group in bound.values():
            group.holder.replace(group.current, group.nested, group.fault)
        for key in gone:
            self._holders.groups.holder(key).replace(None, None)

    def note_upstream(self, upstream: BoundUpstream) -> None:
        """Send requests by this revision of an upstream from now on."""
        key, before = upstream.holder.key, upstream.holder.balancer
        self._follow_names(key, upstream)
        if upstream.named is not None:
            # Its names may have got other addresses since it was compiled.
            self._renew_upstream(key)
        else:
            if upstream.balancer.is_at_rest and not before.is_at_rest and before.size:
                upstream.balancer.adopt(before)  # its first request came meanwhile
            self._place(upstream.holder, upstream.balancer)

    def _place(self, holder: UpstreamHolder, balancer: UpstreamBalancer) -> None:
        self.endpoint_count += balancer.size - holder.balancer.size
        holder.balancer = balancer

    def settle(self, arrived: Iterable[BoundUpstream], gone: Iterable[str]) -> Steps[None]:
        """Begin to watch upstreams that are current now, and end it for those that are gone, in steps."""
        cost = 0
        for key in gone:
            self._health.forget(key)
            cost += _WATCHED_COST
            if cost > SETTLED_AT_ONCE:
                cost = 0
                yield
        for upstream in arrived:
            yield from self._watch(upstream)
            cost += 1 if upstream.policies.are_none else _WATCHED_COST * (1 + len(upstream.balancer.slots))
            if cost > SETTLED_AT_ONCE:
                cost = 0
                yield

    def _watch(self, upstream: BoundUpstream) -> Steps[None]:
        holder = upstream.holder
        holder.health = self._health
        for _ in self._health.adopt(holder.key, upstream.policies, _slots_of(upstream.balancer), holder.mark):
            holder.state = self._health.find(holder.key)
            yield
        holder.state = self._health.find(holder.key)

    def _follow_names(self, key: str, upstream: BoundUpstream | None) -> None:
        """Keep the names of an upstream fresh, and no longer those of the revision before; None: it is gone."""
        if self._names is None:
            return
        named = upstream.named if upstream is not None else None
        if upstream is not None and named is not None:
            self._named[key] = upstream
        else:
            self._named.pop(key, None)
        self._names.adopt(key, named)

    def next_table(
        self,
        version: Version,
        hosts: ChunkStage[VirtualHost, CompiledHost],
        listeners: Sequence[CompiledListener] | None,
        challenges: Iterable[AnsweredChallenge],
    ) -> Steps[CompiledTable]:
        """Make a table with the hosts of a stage, in steps; `listeners` are all, None as they were."""
        table = CompiledTable.empty(version, self._elsewhere) if self.table is None else self.table
        plan, by_key = table.plan, table.listeners
        if listeners is not None:
            by_key = {each.entry.key: each for each in listeners}
            plan = yield from plan_listeners([each.entry for each in listeners], self._own_ports)
            for key, problem in plan.problems.items() - table.plan.problems.items():
                _log.error("a listener is not served as it asks", extra={"listener": key, "problem": problem})
        change = HostChange(*hosts.outcome())
        return (
            yield from table.succeed(
                version,
                change,
                plan,
                by_key,
                partial(self._listener_compiler.adapt_routes, hosts),
                {(one.host, one.path): one.route for one in challenges},
            )
        )

    def stored_chunks(self) -> Iterable[tuple[ChunkName, bytes]]:
        """Yield the current chunks, compressed, as the store has them."""
        for chunks in self.chunk_sets.values():
            for held in chunks.held.values():
                yield held.name, held.stored


class TableUpdate:
    """The way to one revision."""

    def __init__(self, compiler: TableCompiler, version: Version, names: Sequence[ChunkName]) -> None:
        self._compiler = compiler
        self._version = version
        self._part = part = PartUpdate(compiler.part) if compiler.part is not None else None
        by_kind: dict[EntryKind, list[ChunkName]] = {kind: [] for kind in compiler.chunk_sets}
        kept = names if part is None else filter(part.needs, names)
        for kind, alike in groupby(kept, _kind_of):  # they come kind by kind
            by_kind[kind] += alike
        self._stages: Mapping[EntryKind, ChunkStage[Any, Any]] = {
            kind: chunks.stage(by_kind[kind], ALL_ENTRIES if part is None else part.selection(kind))
            for kind, chunks in compiler.chunk_sets.items()
        }
        self.certificates: tuple[Mapping[str, OpenedCertificate], Collection[str]] = {}, ()
        """Once committed: those that are new or changed by key, and the keys of those that are gone."""
        self._table: CompiledTable | None = None
        self._upstreams: Iterable[BoundUpstream] | None = None
        """Those that `commit` has to have asked; None: all that arrived."""
        self.settling: Steps[None] = _nothing_to_settle()
        """What `commit` left to do, in steps; to be finished before another update is committed."""

    @property
    def needed(self) -> tuple[ChunkName, ...]:
        """Chunks that the compiler lacks, as far as is known: of a part those of hosts say which others it needs."""
        return sum((stage.needed for stage in self._stages.values()), ())

    def rounds(self) -> Iterator[Sequence[ChunkName]]:
        """Yield the chunks to be added, in any order; those of a round before the next round is asked for."""
        if self._part is None:
            yield self.needed
        else:
            yield from self._part.rounds(self._stages)

    def add(self, name: ChunkName, content: bytes, stored: bytes | None = None) -> Steps[None]:
        """Decode and compile one chunk, in steps; its content is verified against its digest already.

        Yields after each step of about a millisecond, for the caller to let traffic run.

        Args:
            name: of the chunk.
            content: of the chunk.
            stored: the same, compressed, where that is at hand.

        Raises:
            DecodeError: the chunk does not follow the contract.
        """
        yield from self._stages[name.kind].add(name, content, stored)

    @property
    def changes_ports(self) -> bool:
        """Whether what listens on ports of the table needs to hear of it."""
        return self._stages["streams"].is_changed or self._stages["listeners"].is_changed

    def prepare(self) -> Steps[CompiledTable]:
        """Make the table of the revision, in steps, once all chunks were added; `commit` does so if it was not done.

        Raises:
            LookupError: a needed chunk was not added.
        """
        for stage in self._stages.values():
            stage.check_complete()
        hosts, listeners = self._stages["hosts"], self._stages["listeners"]
        compiled = listeners.compiled() if listeners.is_changed else None
        table = yield from self._compiler.next_table(
            self._version, hosts, compiled, self._stages["challenges"].compiled()
        )
        self._table = table
        if self._compiler.table is None:
            self._upstreams = yield from self._place_first()
        return table

    def _place_first(self) -> Steps[list[BoundUpstream]]:
        """Have the upstreams of the first table asked, in steps; return those that are left to `commit`.

        While nothing is served no request can see some of them without the others.
        """
        arrived, _ = self._stages["upstreams"].outcome()
        for number, upstream in enumerate(arrived.values(), 1):
            if upstream.named is None:
                self._compiler.note_upstream(upstream)
            if number % SETTLED_AT_ONCE == 0:
                yield
        return [upstream for upstream in arrived.values() if upstream.named is not None]

    def commit(self) -> CompiledTable:
        """Make the revision current. Synchronous: no request runs in between.

        Health checks and bounds of the first upstreams, which for most updates are all, are in effect with it, and of
        the rest by and by with `settling`. Until then an upstream goes on with those that it had.

        Raises:
            LookupError: a needed chunk was not added; nothing is changed.
        """
        table = self._table or finish(self.prepare())
        committed = {kind: stage.commit() for kind, stage in self._stages.items()}
        bound: Mapping[str, BoundUpstream]
        bound, gone = committed["upstreams"]
        for upstream in bound.values() if self._upstreams is None else self._upstreams:
            self._compiler.note_upstream(upstream)
        for key in gone:
            self._compiler.forget_upstream(key)
        self._compiler.replace_groups(*committed["backend_groups"])
        self.certificates = committed["certificates"]
        consumers = self._compiler.consumer_directory.replace(*committed["consumers"])
        next(consumers, None)
        self._compiler.consumer_directory.replace_groups(*committed["consumer_groups"])
        self._compiler.table = table
        if self._part is not None:
            self._part.commit()
        upstreams = self._compiler.settle(bound.values(), gone)
        next(upstreams, None)
        self.settling = _one_after_the_other(consumers, upstreams)
        return table


def _slots_of(balancer: UpstreamBalancer) -> Iterator[EndpointSlot]:
    """Yield the slots of an upstream, which may be made for whoever takes one."""
    yield from balancer.slots


def _one_after_the_other(*several: Steps[None]) -> Steps[None]:
    for steps in several:
        yield from steps


def _nothing_to_settle() -> Steps[None]:
    yield from ()
