"""Assembly: fragments, upstreams and certificates merged into the entries of one table, change by change.

Only hosts and server names that a changed fragment claims are merged again. Upstreams and certificates are in the table
while a fragment refers to them. Entries go into the `TableImage`, which holds them encoded, so nothing is kept twice.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.table import (
    HTTPS_LISTENER,
    Certificate,
    Challenge,
    EntryKind,
    Listener,
    TableEntry,
    TlsPolicy,
    VirtualHost,
    entry_key,
    entry_kind,
)
from headgate.common.table import OWN_LISTENERS as OWN_LISTENER_KEYS
from headgate.common.table.hosts import HostKey
from headgate.common.table_image import TableImage, encode_entry
from headgate.translator.assembly.boundaries import DEFAULT_BOUNDARIES, Boundaries
from headgate.translator.assembly.claimants import Claimants, Needs
from headgate.translator.assembly.claims import (
    ChangedEntry,
    HostPath,
    claimed_entries,
    claimed_hosts,
    claimed_names,
    claimed_ports,
    claimed_spots,
    server_name,
    trim,
)
from headgate.translator.assembly.conflicts import MergedHost, merge_host, outgrow
from headgate.translator.assembly.credentials import CredentialName, award_credential, credential_names
from headgate.translator.assembly.entry_listeners import EntryListeners
from headgate.translator.assembly.global_rules import NO_PLUGINS, award_plugins
from headgate.translator.assembly.host_names import is_on_listeners, name_of
from headgate.translator.assembly.host_owners import HostOwners
from headgate.translator.assembly.losses import (
    GLOBAL_RULES,
    HTTPS,
    OWN_LISTENERS,
    Losses,
    Place,
    claimed_places,
    lost_at,
)
from headgate.translator.assembly.own_listeners import OwnListeners, ports_of
from headgate.translator.assembly.presented_names import PresentedNames
from headgate.translator.assembly.secured_wildcards import SecuredWildcards
from headgate.translator.assembly.server_names import NameVerdict, award_name, may_present
from headgate.translator.assembly.stream_hosts import StreamHosts
from headgate.translator.assembly.streams import are_named, award_port
from headgate.translator.assembly.wildcard_tls import ANY_DEPTH, WildcardPolicies, WildcardTls
from headgate.translator.fragments.fragment import BackendUse, CertificateRef, Fragment, StreamPort
from headgate.translator.fragments.upstream_refs import UpstreamRef
from headgate.translator.upstreams.plain import PlainUpstream
from headgate.translator.upstreams.resolution import BackendFault, ResolvedUpstream

K = TypeVar("K", bound=Hashable)


class Assembly:
    """The entries of a table and where they come from."""

    def __init__(
        self,
        boundaries: Boundaries = DEFAULT_BOUNDARIES,
        listeners: Iterable[Listener] = (),
        *,
        is_for_shards: bool = False,
    ) -> None:
        """Begin with nothing; `boundaries` say how far namespaces reach, `listeners` may be named by hosts."""
        self._boundaries = boundaries
        self.image = TableImage(is_for_shards=is_for_shards)
        self.changed: dict[ChangedEntry, None] = {}
        """Entries that were put or discarded since the caller last cleared this."""
        self.touched: dict[ObjectRef, None] = {}
        """Objects whose conditions may have changed since the caller last cleared this."""
        self._claimants = Claimants()
        self._faults: dict[UpstreamRef, BackendFault] = {}
        self._sharing: dict[str, tuple[str, ...]] = {}
        """Keys of the upstreams that several clusters have, each with these clusters."""
        self._certificates: dict[CertificateRef, Certificate] = {}
        self._challenges: dict[CertificateRef, set[tuple[EntryKind, str]]] = {}
        self._presented = PresentedNames()
        self._secured = SecuredWildcards()
        self._wildcard_tls = WildcardPolicies(boundaries)
        self._global_rules: dict[ObjectRef, Fragment] = {}
        self._global_plugins = NO_PLUGINS
        listeners = list(listeners)
        self._own_listeners = OwnListeners(each for each in listeners if each.key in OWN_LISTENER_KEYS)
        self._entry_listeners = EntryListeners(each for each in listeners if each.key not in OWN_LISTENER_KEYS)
        for listener in (*self._own_listeners.entries.values(), *self._entry_listeners.lasting):
            self._put(listener)
        self.owners = HostOwners(self._claimants, self._sharing, boundaries)
        of_ports = self._entry_listeners, self._own_listeners
        self._stream_hosts = partial(StreamHosts, self._claimants, self.owners, of_ports)
        self._lost: dict[Place, Mapping[ObjectRef, tuple[Problem, ...]]] = {}
        self._streams: dict[StreamPort, frozenset[str]] = {}
        self._dirty_hosts: dict[str, None] = {}
        self._dirty_ports: dict[StreamPort, None] = {}
        self._dirty_names: dict[str, None] = {}
        self._dirty_certificates: dict[CertificateRef, None] = {}
        self._dirty_credentials: dict[CredentialName, None] = {}

    @property
    def fragments(self) -> Mapping[ObjectRef, Fragment]:
        """Fragments of all objects that are ours."""
        return self._claimants.fragments

    def put_fragment(self, ref: ObjectRef, fragment: Fragment | None) -> Needs:
        """Take an object's contribution in place of the one before; None takes it away."""
        old = self._claimants.fragments.get(ref)
        if old == fragment:
            return Needs((), ())
        self.touched[ref] = None
        claims = self._claimants.replace(ref, fragment)
        self.owners.note(claims.hosts)
        self._dirty_hosts.update(self._secured.replace(ref, old, fragment, claims.hosts, self._claimants.of_host))
        self._dirty_names.update(claims.names)
        if self._wildcard_tls:
            self._dirty_hosts.update({name: None for name in claims.names if self._claimants.of_host.of(name)})
        self._dirty_certificates.update(claims.certificates)
        self._dirty_ports.update(claims.ports)
        self._touch_hosts(claims.hosts)
        self._dirty_credentials.update(claims.credentials)
        self._replace_entries(old, fragment)
        self._replace_global_rule(ref, fragment)
        self._replace_own_listeners(ref, fragment)
        return claims.needs

    def _touch_hosts(self, hosts: Mapping[str, None]) -> None:
        """Have hosts merged again, and what goes by their owners: certificates, streams on the HTTPS port."""
        everywhere = {**hosts, **dict.fromkeys(self.owners.elsewhere_of(hosts))}
        self._dirty_hosts.update(everywhere)
        for host in filter(is_on_listeners, everywhere):
            keys = HostKey.read(host).listeners
            self._dirty_ports.update(dict.fromkeys(self._entry_listeners.ports_of(keys)))
            self._dirty_ports.update(dict.fromkeys(self._own_listeners.ports_of(keys)))
        about = map(server_name, hosts if self._claimants.of_name.used else ())
        self._dirty_names.update({name: None for name in about if self._claimants.of_name.of(name)})
        streaming = self._claimants.of_port.of(HTTPS)
        if streaming and are_named(everywhere, self._claimants.fragments_of(streaming)):
            self._dirty_ports[HTTPS] = None

    def _replace_entries(self, old: Fragment | None, new: Fragment | None) -> None:
        if not (old and old.entries) and not (new and new.entries):
            return
        entries = claimed_entries(new)
        for changed in claimed_entries(old).keys() - entries.keys():
            self._discard(*changed)
        for entry in entries.values():
            self._put(entry)

    def _replace_global_rule(self, ref: ObjectRef, fragment: Fragment | None) -> None:
        """Take the plugins of every request. A change of them is one of every host."""
        if fragment is not None and fragment.global_plugins:
            self._global_rules[ref] = fragment
        elif self._global_rules.pop(ref, None) is None:
            return
        before, now = self._global_plugins, award_plugins(self._global_rules.values(), self._boundaries)
        self._global_plugins = now
        self._set_lost(GLOBAL_RULES, now.lost)
        if before[:2] != now[:2]:
            self._dirty_hosts.update(dict.fromkeys(self._claimants.of_host.used))

    def _replace_own_listeners(self, ref: ObjectRef, fragment: Fragment | None) -> None:
        before = self._own_listeners.entries
        if not self._own_listeners.replace(ref, fragment):
            return
        self._set_lost(OWN_LISTENERS, self._own_listeners.lost)
        for key in before.keys() - self._own_listeners.entries.keys():
            self._discard("listeners", key)
        for listener in self._own_listeners.entries.values():
            self._put(listener)
        over_tls = self._own_listeners.entries.get(HTTPS_LISTENER)
        for listener in self._entry_listeners.secure(over_tls.tls if over_tls is not None else None):
            self._put(listener)
        self._dirty_ports.update(dict.fromkeys(ports_of({**before, **self._own_listeners.entries}.values())))

    def put_upstream(self, ref: UpstreamRef, resolved: ResolvedUpstream | PlainUpstream) -> None:
        """Take an upstream's present state."""
        if self.image.put_encoded("upstreams", ref.key, resolved.content):
            self.changed[ChangedEntry("upstreams", ref.key)] = None
        self._set_fault(ref, resolved.fault)
        self._set_sharing(ref, resolved.clusters)

    def discard_upstream(self, ref: UpstreamRef) -> None:
        """Drop an upstream that no entry refers to any more."""
        self._discard("upstreams", ref.key)
        self._set_fault(ref, None)
        self._set_sharing(ref, ())

    def _set_fault(self, ref: UpstreamRef, fault: BackendFault | None) -> None:
        if self._faults.get(ref) == fault:
            return
        if fault is None:
            del self._faults[ref]
        else:
            self._faults[ref] = fault
        self.touched.update(dict.fromkeys(self._claimants.of_upstream.of(ref)))

    def _set_sharing(self, ref: UpstreamRef, clusters: tuple[str, ...]) -> None:
        if self._sharing.get(ref.key, ()) == clusters:
            return
        if clusters:
            self._sharing[ref.key] = clusters
        else:
            del self._sharing[ref.key]
        for user in self._claimants.of_upstream.of(ref):
            self._touch_hosts(claimed_hosts(self._claimants.fragments.get(user)))
            self._dirty_ports.update(claimed_ports(self._claimants.fragments.get(user)))

    def put_challenges(self, ref: CertificateRef, entries: tuple[Challenge | Certificate, ...]) -> None:
        """Take what gateways answer about a certificate that is ordered."""
        new = {(entry_kind(entry), entry_key(entry)) for entry in entries}
        for kind, key in self._challenges.pop(ref, set()) - new:
            self._discard(kind, key)
        for entry in entries:
            self._put(entry)
        if new:
            self._challenges[ref] = new

    def put_certificate(self, ref: CertificateRef, certificate: Certificate | None) -> None:
        """Take a certificate's present state, without server names; None where it is unusable or unused."""
        if certificate is None:
            self._certificates.pop(ref, None)
        else:
            self._certificates[ref] = certificate
        self._dirty_certificates[ref] = None

    def assemble(self) -> Iterator[None]:
        """Merge what was touched; yields after each entry, so that a caller may do it in portions."""
        for host in _take(self._dirty_hosts):
            self._assemble_host(host)
            yield
        for port in _take(self._dirty_ports):
            self._assemble_port(port)
            yield
        for name in _take(self._dirty_names):
            self._assemble_name(name)
            yield
        for ref in _take(self._dirty_certificates):
            self._assemble_certificate(ref)
            yield
        for credential in _take(self._dirty_credentials):
            users = self._claimants.fragments_of(self._claimants.of_credential.of(credential))
            self._set_lost(("credential", str(credential)), award_credential(credential, users))
            yield

    def _assemble_host(self, host: str) -> None:
        verdict = self._merge(host, self._claimants.fragments_of(self._claimants.of_host.of(host)))
        self._set_lost(("host", host), verdict.lost)
        if verdict.is_claimed:
            routes = tuple(map(self._global_plugins.add_to, verdict.routes))
            tls = self._inherited_tls(host, verdict) or verdict.tls
            name, listeners = HostKey.read(host)
            fields = {"host": name, "listeners": listeners, "routes": routes, "tls": tls}
            self._put(VirtualHost.of_valid(**fields, unmatched=verdict.unmatched))
            self._use_listeners(host, listeners)
        else:
            self._inherited_tls(host, verdict)
            self._discard("hosts", host)
            self._use_listeners(host, ())
        if host.startswith(ANY_DEPTH):
            owner = verdict.tls and verdict.tls_owner
            self._note_wildcard_tls(host, WildcardTls(verdict.tls, owner) if verdict.tls and owner else None)

    def _use_listeners(self, host: str, listeners: tuple[str, ...]) -> None:
        """Have the listeners of entry points in the table that virtual hosts name."""
        come, gone = self._entry_listeners.use(host, listeners)
        for listener in come:
            self._put(listener)
        for key in gone:
            self._discard("listeners", key)

    def _merge(self, host: str, fragments: Iterable[Fragment]) -> MergedHost:
        above = tuple(self._claimants.fragments_of(self._secured.above(host)))
        elsewhere = self.owners.elsewhere(host)
        return merge_host(host, fragments, self._sharing, self._boundaries, above=above, elsewhere=elsewhere)

    def _note_wildcard_tls(self, host: str, tls: WildcardTls | None) -> None:
        """Note what is asked for all names below a domain. A change of it is one of every host there."""
        if self._wildcard_tls.replace(host, tls):
            below = (each for each in self._claimants.of_host.used if each != host and name_of(each).endswith(host[2:]))
            self._dirty_hosts.update(dict.fromkeys(below))

    def _inherited_tls(self, host: str, verdict: MergedHost) -> TlsPolicy | None:
        """Return what is asked of a host by the longest wildcard that takes its name and holds for it."""
        before, inherited = self._wildcard_tls.refused(host), None
        if verdict.tls is None and verdict.inherits_tls and self._wildcard_tls and not self._has_certificate(host):
            inherited = self._wildcard_tls.inherit(host, self.owners.oldest_claimant(host))
        else:
            self._wildcard_tls.forget(host)
        for wildcard in before ^ self._wildcard_tls.refused(host):
            self.touched.update(dict.fromkeys(self._claimants.of_host.of(wildcard)))
        return inherited

    def _has_certificate(self, host: str) -> bool:
        """Whether a host has a certificate with which everything is said that is asked of its clients."""
        name = server_name(host)
        users = list(self._claimants.fragments_of(self._claimants.of_name.of(name)))
        return any(user.settles_tls for user in may_present(self.owners.of_name(name, users), users))

    def _assemble_port(self, port: StreamPort) -> None:
        routes, lost = award_port(
            port, self._claimants.fragments_of(self._claimants.of_port.of(port)), self._sharing, self._stream_hosts()
        )
        self._set_lost(("port", str(port)), lost)
        keys = frozenset(route.key for route in routes)
        for key in sorted(self._streams.pop(port, frozenset()) - keys):
            self._discard("streams", key)
        for route in routes:
            self._put(route)
        if keys:
            self._streams[port] = keys
        self._use_listeners(f"streams of port {port.port}", self._entry_listeners.beside_streams(port, routes))

    def _assemble_name(self, name: str) -> None:
        winner, lost = self._award_name(name, list(self._claimants.fragments_of(self._claimants.of_name.of(name))))
        self._set_lost(("name", name), lost)
        self._dirty_certificates.update(dict.fromkeys(self._presented.award(name, winner)))

    def namespaces_of(self, ref: CertificateRef) -> frozenset[tuple[str, str]]:
        """Return the clusters and namespaces of the objects that refer to a certificate."""
        return frozenset((user.cluster, user.namespace) for user in self._claimants.of_certificate.of(ref))

    def may_have(self, ref: CertificateRef) -> bool:
        """Whether each name of a certificate is presented with it, or with another of the same namespaces."""
        wanting = self.namespaces_of(ref)
        winners = map(self._presented.certificate_of, ref.names)
        return all(
            winner is not None and (winner == ref or not wanting.isdisjoint(self.namespaces_of(winner)))
            for winner in winners
        )

    def _award_name(self, name: str, users: list[Fragment], proposed: Fragment | None = None) -> NameVerdict:
        return award_name(self.owners.of_name(name, users, proposed), users)

    def _assemble_certificate(self, ref: CertificateRef) -> None:
        certificate, names = self._certificates.get(ref), self._presented.of(ref)
        if certificate is not None and (names or self._claimants.is_on_listeners(ref)):
            self._put(certificate.model_copy(update={"server_names": tuple(sorted(names))}))
        else:
            self._discard("certificates", ref.key)

    def _put(self, entry: TableEntry) -> None:
        kind, key = entry_kind(entry), entry_key(entry)
        if self.image.put_encoded(kind, key, encode_entry(entry)):
            self.changed[ChangedEntry(kind, key)] = None

    def _discard(self, kind: EntryKind, key: str) -> None:
        if self.image.discard(kind, key):
            self.changed[ChangedEntry(kind, key)] = None

    def _set_lost(self, where: Place, lost: Mapping[ObjectRef, tuple[Problem, ...]]) -> None:
        before = self._lost.get(where, {})
        self.touched.update({ref: None for ref in before.keys() | lost.keys() if before.get(ref) != lost.get(ref)})
        if lost:
            self._lost[where] = lost
        else:
            self._lost.pop(where, None)

    @property
    def losses(self) -> "Losses":
        """Who has lost what, by the host, server name or port that it is about."""
        return self._lost

    def rehearse(self, ref: ObjectRef, fragment: Fragment) -> "Losses":
        """Return who would lose what where an object contributed this instead of what it does; nothing is kept."""
        before = self._claimants.fragments.get(ref)
        lost: dict[Place, Mapping[ObjectRef, tuple[Problem, ...]]] = {}
        by_host: dict[str, set[HostPath]] = {}
        for spot in claimed_spots(before) | claimed_spots(fragment):
            by_host.setdefault(spot.host, set()).add(spot)
        for host, spots in by_host.items():
            lost["host", host] = self._rehearse_host(host, spots, before, fragment)
        for name in claimed_names(before) | claimed_names(fragment):
            users = [*self._claimants.others(self._claimants.of_name.of(name), ref), fragment]
            lost["name", name] = self._award_name(name, users, fragment).lost
        for port in claimed_ports(before) | claimed_ports(fragment):
            claimants = [*self._claimants.others(self._claimants.of_port.of(port), ref), fragment]
            lost["port", str(port)] = award_port(port, claimants, self._sharing, self._stream_hosts()).lost
        for credential in credential_names(fragment):
            users = [*self._claimants.others(self._claimants.of_credential.of(credential), ref), fragment]
            lost["credential", str(credential)] = award_credential(credential, users)
        if fragment.global_plugins:
            lost[GLOBAL_RULES] = award_plugins(
                [*self._claimants.others(self._global_rules, ref), fragment], self._boundaries
            ).lost
        return lost

    def _rehearse_host(
        self, host: str, spots: Collection[HostPath], before: Fragment | None, after: Fragment
    ) -> Mapping[ObjectRef, tuple[Problem, ...]]:
        """Merge what others claim of the same spots, and nothing else: a host may have thousands of users.

        Where other namespaces have to do with the host everything counts: who owns it, and which paths are near.
        """
        ref = after.identity.ref
        if self.owners.is_shared(host, after.identity):
            others = list(self._claimants.others(self._claimants.of_host.of(host), ref))
        else:
            users = {user for spot in spots for user in self._claimants.of_spot.of(spot)}
            others = [trim(other, spots) for other in self._claimants.others(users, ref)]
        lost = self._merge(host, [*others, after]).lost
        outgrown = tuple(outgrow(host, len(self.image.get("hosts", host) or b""), before, after))
        return {**lost, ref: (*lost.get(ref, ()), *outgrown)} if outgrown else lost

    def lost_by(self, fragment: Fragment, losses: "Losses | None" = None) -> Iterator[Problem]:
        """Yield what an object claimed in vain, in order of its claims; `losses` are those of now by default."""
        losses, hosts = self._lost if losses is None else losses, claimed_hosts(fragment)
        if losses:
            yield from lost_at(claimed_places(fragment, hosts), losses, fragment.identity.ref)
        for host in hosts:
            yield from self._wildcard_tls.problems(host, fragment.identity)

    def users_of(self, upstream: UpstreamRef) -> Iterable[ObjectRef]:
        """Return the objects that refer to an upstream."""
        return self._claimants.of_upstream.of(upstream)

    def fault_of(self, upstream: UpstreamRef) -> BackendFault | None:
        """Return what is wrong with an upstream that is in use."""
        return self._faults.get(upstream)

    def faults_of(self, fragment: Fragment) -> Iterator[tuple[str, UpstreamRef, BackendFault]]:
        """Yield what is wrong with an object's backends, each with the field that is at fault."""
        for use in fragment.backends:
            fault = self._faults.get(use.upstream)
            if fault is not None and not (use.may_be_empty and fault.is_emptiness):
                yield field_at_fault(use, fault), use.upstream, fault


def field_at_fault(use: BackendUse, fault: BackendFault) -> str:
    """Return the field of a reference that a fault is about."""
    return use.port_field if fault.is_about_port else use.name_field


def _take(waiting: dict[K, None]) -> Iterator[K]:
    while waiting:
        yield waiting.popitem()[0]  # the oldest would be searched for behind all those that are gone
