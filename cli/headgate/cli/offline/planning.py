"""What manifests would change if they were applied: the log's world, translated, and once more with them in it."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from headgate.cli.offline.proposals import Known, TablePlan, Verdicts, known_of, locate, propose, remarks_on
from headgate.common.deltas import ClusterAnnouncement, Delta, Operation
from headgate.common.resources import ObjectRef
from headgate.common.selection import Selection
from headgate.common.snapshot import Manifest
from headgate.common.stores import DeltaLogReader, LastGoodLog, LogBatch, LogReplay
from headgate.translator.composition import DIALECTS
from headgate.translator.leading.intake import Causes, Intake
from headgate.translator.planning.rehearsal import rehearse
from headgate.translator.settings import TranslatorSettings
from headgate.translator.translation import Translation
from headgate.watcher.sources.manifests.files import FileObject


@dataclass
class World:
    """Everything that a log says."""

    selection: Selection
    translation: Translation
    intake: Intake
    announcements: dict[str, ClusterAnnouncement] = field(default_factory=dict)
    known: dict[ObjectRef, Known] = field(default_factory=dict)

    def take(self, messages: LogBatch) -> None:
        """Take messages in."""
        self.intake.receive(messages, Causes())
        for message in messages:
            if isinstance(message, ClusterAnnouncement):
                self.announcements[message.cluster] = message
            elif isinstance(message, Delta):
                self._note(message)

    def _note(self, delta: Delta) -> None:
        known = known_of(delta)
        if known is None:
            self.known.pop(delta.ref, None)
        else:
            self.known[delta.ref] = known


async def read_world(
    log: DeltaLogReader, last_good: LastGoodLog, table: str, settings: TranslatorSettings, selection: Selection
) -> World:
    """Read a log to its end, and what stands in for versions with errors, as a table's translator would find it."""
    world = await _replay(log, table, settings, selection)
    translation = world.translation
    for _ in translation.settle():  # finds out which versions have errors
        pass
    unsure = list(translation.world.tracker.unsure)
    histories = await last_good.histories(unsure)
    for ref in unsure:
        translation.recall(ref, histories.get(ref, ()))
    return world


async def _replay(log: DeltaLogReader, table: str, settings: TranslatorSettings, selection: Selection) -> World:
    world: World | None = None
    async with aclosing(cast("Any", log.follow())) as items:
        async for item in items:
            if isinstance(item, LogReplay):
                translation = Translation(DIALECTS, settings.translation, selection, table, settings.boundaries)
                world = World(selection, translation, Intake(item.position, translation, table))
            elif world is not None:
                world.take(item)
            if world is not None and world.intake.is_replayed:
                return world
    raise AssertionError("following a log never ends")


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
    deltas = list(propose(cluster, objects, world.known))
    found = rehearse(world.translation, deltas, _pruned(world, objects) if prune else ())
    findings, notes = locate(objects, Verdicts(found.problems, found.foreign), world.selection)
    remarks = (*remarks_on(published), *_doubts(world, found.before, published), *found.consequences)
    return TablePlan(found.diff, findings, notes, remarks)


def _doubts(world: World, before: Collection[str], published: Manifest | None) -> Iterator[str]:
    if published is None:
        return
    is_same_log = published.log == world.intake.incarnation and published.inputs == dict(world.intake.inputs)
    if is_same_log and set(before) != {chunk.digest for chunk in published.live}:
        yield (
            "the translator makes another table of the same objects: are its settings (--controller-names, "
            "--watch-without-class, HEADGATE_CONFIG) and its release the same as here?"
        )


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
