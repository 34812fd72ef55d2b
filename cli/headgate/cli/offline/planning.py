"""What manifests would change if they were applied: the log's world, translated, and once more with them in it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from headgate.cli.offline.consequences import consequences
from headgate.cli.offline.tables import Finding, Note, delta_of, object_name
from headgate.cli.terminal.errors import UsageMistake
from headgate.common.deltas import ClusterAnnouncement, Delta, Operation
from headgate.common.resources import INGRESS_CLASS, JsonObject, ObjectRef
from headgate.common.sealing import Sealer
from headgate.common.selection import Selection
from headgate.common.snapshot import Chunk, Manifest, decode_chunk
from headgate.common.stores import DeltaLogReader, LastGoodLog, LogBatch, LogReplay
from headgate.common.table import TableEntry
from headgate.common.table_diff import TableDiff, diff_tables
from headgate.translator.composition import DIALECTS
from headgate.translator.leading.intake import Causes, Intake
from headgate.translator.offline import foreign_objects
from headgate.translator.settings import TranslatorSettings
from headgate.translator.translation import Translation
from headgate.translator.world.settings import TranslationSettings
from headgate.watcher.objects.secrets import throwaway_recipients
from headgate.watcher.sources.manifests.files import FileObject


class Known(NamedTuple):
    """What an API server would keep of an object when a manifest is applied to it."""

    uid: str
    metadata: Mapping[str, Any]
    """`creationTimestamp` and `generation`, as far as there are."""
    status: Any


_KEPT = ("creationTimestamp", "generation")


@dataclass
class World:
    """Everything that a log says."""

    classes: TranslationSettings
    selection: Selection
    translation: Translation
    intake: Intake
    announcements: dict[str, ClusterAnnouncement] = field(default_factory=dict)
    known: dict[ObjectRef, Known] = field(default_factory=dict)
    ingress_classes: dict[ObjectRef, Delta] = field(default_factory=dict)

    def take(self, messages: LogBatch) -> None:
        """Take messages in."""
        self.intake.receive(messages, Causes())
        for message in messages:
            if isinstance(message, ClusterAnnouncement):
                self.announcements[message.cluster] = message
            elif isinstance(message, Delta):
                self._note(message)

    def _note(self, delta: Delta) -> None:
        if delta.object is None:
            self.known.pop(delta.ref, None)
            self.ingress_classes.pop(delta.ref, None)
            return
        metadata = delta.object.get("metadata") or {}
        kept = {name: metadata[name] for name in _KEPT if name in metadata}
        self.known[delta.ref] = Known(delta.uid, kept, delta.object.get("status"))
        if delta.ref[1:3] == (INGRESS_CLASS.group, INGRESS_CLASS.resource):
            self.ingress_classes[delta.ref] = delta

    def chunks(self) -> dict[str, Chunk]:
        """Return the table as it is now, by digest."""
        for _ in self.translation.settle():
            pass
        return {chunk.digest: chunk for chunk in self.translation.assembly.image.chunks()}


async def read_world(
    log: DeltaLogReader, last_good: LastGoodLog, table: str, settings: TranslatorSettings, selection: Selection
) -> World:
    """Read a log to its end, and what stands in for versions with errors, as a table's translator would find it."""
    world = await _replay(log, table, settings, selection)
    translation = world.translation
    unsure = list(translation.world.tracker.unsure)
    histories = await last_good.histories(unsure)
    for ref in unsure:
        translation.recall(ref, histories.get(ref, ()))
    return world


async def _replay(log: DeltaLogReader, table: str, settings: TranslatorSettings, selection: Selection) -> World:
    classes = settings.translation
    world: World | None = None
    async with aclosing(cast("Any", log.follow())) as items:
        async for item in items:
            if isinstance(item, LogReplay):
                translation = Translation(DIALECTS, classes, selection, table, settings.boundaries)
                world = World(classes, selection, translation, Intake(item.position, translation, table))
            elif world is not None:
                world.take(item)
            if world is not None and world.intake.is_replayed:
                return world
    raise AssertionError("following a log never ends")


class TablePlan(NamedTuple):
    """What manifests would change."""

    diff: TableDiff
    findings: tuple[Finding, ...]
    """What is wrong with them, sorted by file and line."""
    notes: tuple[Note, ...]
    remarks: tuple[str, ...] = ()
    """What else has to be known to understand the difference."""


def choose_cluster(
    announced: Mapping[str, ClusterAnnouncement], selection: Selection, wanted: str
) -> ClusterAnnouncement:
    """Return the cluster that manifests would be applied to.

    Raises:
        UsageMistake: there is none such, or several to choose from.
    """
    names = sorted(filter(selection.has_cluster, announced))
    if not names:
        raise UsageMistake("no watcher has said anything yet, so there is no cluster to apply manifests to")
    if wanted and wanted not in names:
        raise UsageMistake(f"there is no cluster {wanted!r} in the table, but {', '.join(names)}")
    if not wanted and len(names) > 1:
        raise UsageMistake(f"say which cluster the manifests are for: --cluster {' or --cluster '.join(names)}")
    return announced[wanted or names[0]]


def make_plan(
    world: World,
    cluster: ClusterAnnouncement,
    objects: Sequence[FileObject],
    published: Manifest | None,
    *,
    prune: bool,
) -> TablePlan:
    """Apply objects to a world and say what changes by it.

    Args:
        world: is changed.
        cluster: that the objects are of.
        objects: of manifests.
        published: the current revision.
        prune: what is in the world of the objects' kinds and namespaces, and not among them, is taken for deleted.
    """
    before = world.chunks()
    remarks = tuple(_remarks(world, before, published))
    deltas = list(_deltas(world, cluster, objects))
    for delta in [*deltas, *(_pruned(world, objects) if prune else ())]:
        world.translation.apply(delta)
    after = world.chunks()
    findings, notes = _judge(world, objects, deltas)
    was, now = _only_in(before, after), _only_in(after, before)
    difference = diff_tables(was, now, heeds_seals=False)
    return TablePlan(difference, findings, notes, (*remarks, *consequences(was, now)))


def _only_in(one: Mapping[str, Chunk], other: Mapping[str, Chunk]) -> list[TableEntry]:
    chunks = [chunk for digest, chunk in one.items() if digest not in other]
    return [entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content)]


def _remarks(world: World, before: Mapping[str, Chunk], published: Manifest | None) -> Iterator[str]:
    if published is None:
        return
    if published.pin is not None:
        yield f"the table is pinned to {published.pin.version}: nothing of this is served before `headgate unpin`"
    if published.rollout is not None:
        yield f"{published.rollout.target} is rolled out, or was: this comes after it; `headgate rollout` says more"
    is_same_log = published.log == world.intake.incarnation and published.inputs == dict(world.intake.inputs)
    if is_same_log and before.keys() != {chunk.digest for chunk in published.live}:
        yield (
            "the translator makes another table of the same objects: are its settings (--controller-names, "
            "--watch-without-class, HEADGATE_CONFIG) and its release the same as here?"
        )


def _deltas(world: World, cluster: ClusterAnnouncement, objects: Sequence[FileObject]) -> Iterator[Delta]:
    sealer = Sealer(cluster.cluster, throwaway_recipients())
    now = datetime.now(UTC)
    is_stamped = cluster.source == "kubernetes"
    for one in objects:
        delta = delta_of(one, sealer)
        if delta is None or delta.object is None:
            continue
        known = world.known.get(one.ref)
        metadata: JsonObject = dict(delta.object["metadata"])
        if known is not None:
            metadata |= known.metadata
        elif is_stamped:
            metadata.setdefault("creationTimestamp", now.isoformat())
        manifest = {**delta.object, "metadata": metadata}
        if known is not None and known.status is not None:
            manifest["status"] = known.status  # a subresource, which applying leaves alone
        yield delta.model_copy(update={"object": manifest, "uid": known.uid if known else delta.uid})


def _pruned(world: World, objects: Sequence[FileObject]) -> Iterator[Delta]:
    present = {one.ref for one in objects}
    scopes = {ref[:4] for ref in present}
    for ref, known in world.known.items():
        if ref[:4] in scopes and ref not in present:
            yield Delta(
                ref=ref,
                operation=Operation.DELETE,
                uid=known.uid,
                resource_version="",
                observed_at=datetime.now(UTC),
            )


def _judge(
    world: World, objects: Sequence[FileObject], deltas: Sequence[Delta]
) -> tuple[tuple[Finding, ...], tuple[Note, ...]]:
    conditions = {delta.ref: world.translation.condition(delta.ref) for delta in deltas}
    ours = {ref for ref, condition in conditions.items() if condition}
    selected = [delta for delta in deltas if world.selection.selects(delta.ref)]
    stated = [*world.ingress_classes.values(), *selected]
    present = [(delta.ref, delta.object) for delta in stated if delta.object is not None]
    foreign = foreign_objects(present, ours, world.classes)
    foreign |= {
        one.ref: f"namespace {one.ref.namespace!r} is not in the table"
        for one in objects
        if one.kind.is_routing and not world.selection.selects(one.ref)
    }
    findings = [
        Finding(one.file, one.line, object_name(one), problem)
        for one in objects
        if (condition := conditions.get(one.ref))
        for problem in condition.problems
    ]
    notes = [Note(one.file, one.line, object_name(one), foreign[one.ref]) for one in objects if one.ref in foreign]
    return tuple(sorted(findings, key=lambda one: (one.file, one.line))), tuple(sorted(notes))
