"""The pure core put together: deltas in, table image and conditions out.

`apply` takes changes, `activate` admits a cluster, `settle` brings everything up to date in portions, so that a caller
with an event loop can breathe in between. Equal inputs give equal bytes, in whatever order and portions they came.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from headgate.common.clusters import read_settings
from headgate.common.deltas import Delta, LastGood
from headgate.common.problems import Problem, Severity
from headgate.common.resources import ObjectRef
from headgate.common.resources.references import NGINX_PREFIX
from headgate.common.selection import EVERYTHING, Selection
from headgate.common.table import DEFAULT_TABLE
from headgate.common.table.upstream_key import UpstreamKey
from headgate.translator.assembly.assembly import Assembly
from headgate.translator.assembly.boundaries import DEFAULT_BOUNDARIES, Boundaries
from headgate.translator.assembly.claimants import Needs
from headgate.translator.assembly.conditions import ObjectStatus, judge
from headgate.translator.fragments.fragment import CertificateRef, Fragment, with_versions
from headgate.translator.fragments.upstream_refs import UpstreamRef
from headgate.translator.objects.dialect import Dialect, TranslatedKind
from headgate.translator.objects.life_cycle import check_object, is_ours, refuse_object, translate_object
from headgate.translator.objects.nginx_prefix import problem_as_written, with_prefix
from headgate.translator.sources.certificates import CERTIFICATE
from headgate.translator.sources.endpoints import ENDPOINT_SLICES, LEGACY_ENDPOINTS
from headgate.translator.sources.imports import SERVICE_IMPORTS
from headgate.translator.sources.ordered import ACCOUNTS, CHALLENGES, ORDERED_CERTIFICATES
from headgate.translator.sources.policies import OWNERSHIP, ObjectTarget
from headgate.translator.sources.services import SERVICES
from headgate.translator.sources.sharing import CLUSTERS, SERVICE_EXPORTS
from headgate.translator.upstreams.entries import UPSTREAM
from headgate.translator.upstreams.held import held_upstream
from headgate.translator.upstreams.resolution import ResolvedUpstream
from headgate.translator.world.attachments import Provider, Providers
from headgate.translator.world.entry_point_listeners import listeners_of
from headgate.translator.world.graph import Graph, Level, Lookups, Node, Output, Rule
from headgate.translator.world.in_place import InPlace
from headgate.translator.world.settings import DEFAULT_SETTINGS, TranslationSettings
from headgate.translator.world.world import Check, StoredKind, World

_TABLE_KINDS: tuple[StoredKind[Any], ...] = (
    *(SERVICES, ENDPOINT_SLICES, LEGACY_ENDPOINTS, SERVICE_EXPORTS, SERVICE_IMPORTS),
    *(ORDERED_CERTIFICATES, ACCOUNTS),
)


def _unchecked(ref: ObjectRef, form: object) -> Iterable[Problem]:
    return ()


def _checker(kind: TranslatedKind[Any, Any], lookups: Lookups) -> Check:
    return lambda ref, form: check_object(kind, ref, form, lookups)


def _ownership_finder(
    kinds: Sequence[TranslatedKind[Any, Any]],
) -> Callable[[Lookups, ObjectTarget], bool | None]:
    """Return what says whether an object is ours, also one that a server has in an older group of its kind."""
    named: dict[tuple[str, str], list[TranslatedKind[Any, Any]]] = {}
    for kind in kinds:
        group = (kind.yields_to or kind.stored).kind.group
        named.setdefault((group, kind.stored.kind.kind), []).append(kind)

    def find(lookups: Lookups, target: ObjectTarget) -> bool | None:
        for kind in named.get((target.group, target.kind), ()):
            ref = kind.stored.ref(lookups.cluster, target.namespace, target.name)
            if (found := is_ours(kind, ref, lookups)) is not None:
                return found
        return None

    return find


class Translation:
    """Translates the objects of active clusters into one table."""

    def __init__(
        self,
        dialects: Sequence[Dialect],
        settings: TranslationSettings = DEFAULT_SETTINGS,
        selection: Selection = EVERYTHING,
        table: str = DEFAULT_TABLE,
        boundaries: Boundaries = DEFAULT_BOUNDARIES,
        *,
        is_followed: bool = True,
        is_for_shards: bool = False,
    ) -> None:
        """Begin with an empty world.

        Args:
            dialects: what can be translated.
            settings: what holds for all objects.
            selection: which clusters and namespaces the table is made of; callers leave out the objects of others.
            table: its name, by which clusters' gateways are chosen.
            boundaries: how far the objects of one namespace reach.
            is_followed: whether objects change once all is settled. If not, no earlier version can stand in for one
                with errors, so objects are not judged by themselves before they are translated, which says the same of
                them; and it is not remembered what each of them looked up.
            is_for_shards: whether the table is laid out for gateways that hold a shard of it.
        """
        self.selection = selection
        clusters = replace(CLUSTERS, read=lambda manifest: read_settings(manifest).of_table(table))
        translated = [kind for dialect in dialects for kind in dialect.kinds]
        self.wanted: dict[CertificateRef, None] = {}
        """Certificates that objects want ordered."""
        read = [*_TABLE_KINDS, clusters, *(kind for dialect in dialects for kind in dialect.reads)]
        settings = replace(settings, selection=selection)
        self._nginx_prefix = settings.nginx.annotations_prefix
        kinds = [with_prefix(stored, self._nginx_prefix) for stored in (*read, *(kind.stored for kind in translated))]
        in_place = InPlace(settings)
        checks = {kind.stored.name: _checker(kind, in_place) if is_followed else _unchecked for kind in translated}
        self.world = World(kinds, checks, self._is_to_be_translated)
        providers = [Provider(OWNERSHIP, _ownership_finder(translated))]
        self.graph = Graph(
            self.world,
            settings,
            Providers([*providers, *(one for dialect in dialects for one in dialect.provides)]),
            is_followed=is_followed,
        )
        self.assembly = Assembly(boundaries, listeners_of(settings.entry_points), is_for_shards=is_for_shards)
        self.held: dict[UpstreamKey, ResolvedUpstream] = {}
        """Upstreams of held tables that were resolved since the caller last cleared this."""
        self._held: frozenset[UpstreamKey] = frozenset()
        self._held_rule = held_upstream([read for dialect in dialects for read in dialect.upstreams])
        self._active: set[str] = set()
        self.left_out: set[str] = set()
        """Clusters that are there, and not selected."""
        self._roots: dict[tuple[str, str], tuple[TranslatedKind[Any, Any], Rule[ObjectRef, Fragment | None]]] = {
            kind.stored.name: (kind, self._rule(kind)) for kind in translated
        }
        self._roots_alone = self._roots.keys() - {kind.name for kind in read}
        """Kinds that are not looked up: of no use where they are not selected."""

    def _rule(self, kind: TranslatedKind[Any, Any]) -> "Rule[ObjectRef, Fragment | None]":
        def translate(lookups: Lookups, ref: ObjectRef) -> Fragment | None:
            return translate_object(kind, ref, lookups)

        def refuse(ref: ObjectRef, error: Exception) -> Fragment | None:
            form, versions = self.world.get(ref), self.world.tracker.get(ref)
            if form is None or versions is None:
                return None
            return with_versions(refuse_object(kind, ref, form, error), versions)

        return Rule(f"{kind.stored.kind.kind} fragment", Level.OBJECT, translate, refuse)

    @property
    def active_clusters(self) -> frozenset[str]:
        """Clusters whose objects are in the table."""
        return frozenset(self._active)

    def is_active(self, cluster: str) -> bool:
        """Whether a cluster's objects are in the table."""
        return cluster in self._active

    def activate(self, cluster: str) -> None:
        """Admit a cluster whose objects are all here."""
        if cluster in self._active:
            return
        self._active.add(cluster)
        self.graph.complete(cluster)
        for ref in self.world.tracker.refs(cluster):
            self._demand_root(ref)

    def dismiss(self, cluster: str) -> None:
        """Let a cluster go, whose objects are all deleted."""
        self._active.discard(cluster)
        self.graph.dismiss(cluster)

    def apply(self, delta: Delta) -> bool:
        """Take in one delta; return whether anything changed by it that the table is made of, or may be."""
        ref = delta.ref
        if not self.selection.has_namespace(ref.namespace) and (ref.group, ref.resource) in self._roots_alone:
            return False
        return self._note(ref, self.world.apply(delta))

    def recall(self, ref: ObjectRef, history: Sequence[Delta]) -> bool:
        """Take the earlier versions of an object of which that is `unsure`; return whether anything changed by it."""
        return self._note(ref, self.world.recall(ref, history))

    def remember(self, said: LastGood) -> bool:
        """Take what the log has written down of an object; return whether anything changed by it."""
        return self._note(said.ref, self.world.remember(said))

    def _note(self, ref: ObjectRef, changed: tuple[Hashable, ...]) -> bool:
        if not changed:
            return False
        is_ours = self.selection.has_namespace(ref.namespace) or any(map(self.graph.askers, changed))
        self.graph.touch(changed)
        if ref.cluster in self._active:
            self._demand_root(ref)
        return is_ours

    def is_root(self, ref: ObjectRef) -> bool:
        """Whether an object is selected, and of a kind that becomes fragments."""
        return self.selection.selects(ref) and (ref.group, ref.resource) in self._roots

    def translate(self, ref: ObjectRef, lookups: Lookups) -> Fragment | None:
        """Return what an object of such a kind would contribute in another world; nothing of it is kept."""
        return translate_object(self._roots[ref.group, ref.resource][0], ref, lookups)

    def _is_to_be_translated(self, ref: ObjectRef, form: Any) -> bool:
        root = self._roots.get((ref.group, ref.resource))
        return root is not None and self.selection.has_namespace(ref.namespace) and root[0].concerns(form)

    def _demand_root(self, ref: ObjectRef) -> None:
        root, stored = self._roots.get((ref.group, ref.resource)), self.world.get(ref)
        if root is None or not self.selection.has_namespace(ref.namespace):
            return
        versions = self.world.tracker.get(ref)
        if (versions is not None and versions.errors) or (stored is not None and root[0].concerns(stored)):
            self.graph.demand(Node(root[1], ref))

    def hold(self, keys: frozenset[UpstreamKey]) -> None:
        """Resolve these upstreams too, into `held` and not into the table."""
        if keys == self._held:
            return
        for key in self._held - keys:
            self.graph.release(Node(self._held_rule, key))
        for key in keys - self._held:
            self.graph.demand(Node(self._held_rule, key))
        self._held = keys

    @property
    def pending(self) -> int:
        """Nodes that wait to run."""
        return self.graph.pending

    def settle(self) -> Iterator[None]:
        """Bring everything up to date; yields after each piece of work, some microseconds to a millisecond each.

        The image and the conditions mean something only when this has ended.
        """
        for output in self.graph.settle():
            self._take(output)
            yield
        yield from self.assembly.assemble()

    def _take(self, output: Output) -> None:
        rule, argument = output.node
        if rule is UPSTREAM:
            self.assembly.put_upstream(argument, output.value)
        elif rule is self._held_rule:
            if output.value is not None:
                self.held[argument] = output.value
        elif rule is CHALLENGES:
            self.assembly.put_challenges(argument, output.value)
        elif rule is CERTIFICATE:
            self.assembly.put_certificate(argument, output.value)
        else:
            self._supply(self.assembly.put_fragment(argument, output.value))
            self._judge(argument, output.value)
            if self.world.tracker.get(argument) is None:
                self.graph.release(output.node)

    def _judge(self, ref: ObjectRef, fragment: Fragment | None) -> None:
        """Judge an object that was presumed to be good, by its translation where that found no error at all."""
        if not self.world.is_presumed(ref):
            return
        if fragment is not None and all(problem.severity is not Severity.ERROR for problem in fragment.problems):
            self.world.acquit(ref)
        else:
            self._note(ref, self.world.judge(ref))

    def _supply(self, needs: Needs) -> None:
        for ref in needs.released:
            self.graph.release(_need(ref))
            if isinstance(ref, CertificateRef):
                self.assembly.put_certificate(ref, None)
                self._end_order(ref)
            else:
                self.assembly.discard_upstream(ref)
        for ref in needs.demanded:
            self.graph.demand(_need(ref))
            if isinstance(ref, CertificateRef) and ref.resolver:
                self.wanted[ref] = None
                self.graph.demand(Node(CHALLENGES, ref))

    def _end_order(self, ref: CertificateRef) -> None:
        if ref.resolver:
            del self.wanted[ref]
            self.graph.release(Node(CHALLENGES, ref))
            self.assembly.put_challenges(ref, ())

    def condition(self, ref: ObjectRef) -> ObjectStatus | None:
        """Return how an object stands; None where it is gone or not ours."""
        fragment = self.assembly.fragments.get(ref)
        if fragment is None:
            return None
        status = judge(fragment, self.assembly)
        if self._nginx_prefix == NGINX_PREFIX:
            return status
        found = (status.problems, status.errors, status.unresolved)
        problems, errors, unresolved = (tuple(map(self.as_written, each)) for each in found)
        return replace(status, problems=problems, errors=errors, unresolved=unresolved)

    def as_written(self, problem: Problem) -> Problem:
        """Return a problem that names annotations with the prefix that they have in manifests."""
        return problem_as_written(problem, self._nginx_prefix)


def _need(ref: UpstreamRef | CertificateRef) -> Node:
    return Node(CERTIFICATE if isinstance(ref, CertificateRef) else UPSTREAM, ref)
