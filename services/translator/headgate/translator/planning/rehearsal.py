"""What objects change in a table: the table as it is, and once more with them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from headgate.common.deltas import Delta
from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import Chunk, decode_chunk
from headgate.common.table import TableEntry
from headgate.common.table_diff import TableDiff, diff_tables
from headgate.translator.offline import reasons_of_foreign
from headgate.translator.planning.consequences import consequences
from headgate.translator.sources.classes import INGRESS_CLASSES, IngressClass
from headgate.translator.translation import Translation
from headgate.translator.world.world import EVERY


class Rehearsal(NamedTuple):
    """What would change."""

    diff: TableDiff
    problems: Mapping[ObjectRef, tuple[Problem, ...]]
    """Of each of the objects that is ours."""
    foreign: Mapping[ObjectRef, str]
    """Why others are not."""
    consequences: tuple[str, ...]
    before: Collection[str]
    """Digests of the table's chunks as it is."""


def rehearse(translation: Translation, deltas: Sequence[Delta], gone: Iterable[Delta] = ()) -> Rehearsal:
    """Apply objects and say what changes by it.

    Args:
        translation: is changed, and serves nothing afterwards.
        deltas: of the objects.
        gone: of objects that are deleted besides.
    """
    before = _chunks(translation)
    for delta in (*deltas, *gone):
        translation.apply(delta)
    after = _chunks(translation)
    was, now = _only_in(before, after), _only_in(after, before)
    problems = {
        delta.ref: condition.problems for delta in deltas if (condition := translation.condition(delta.ref)) is not None
    }
    return Rehearsal(
        diff=diff_tables(was, now, heeds_seals=False),
        problems=problems,
        foreign=_foreign(translation, deltas, problems),
        consequences=tuple(consequences(was, now)),
        before=before.keys(),
    )


def _chunks(translation: Translation) -> dict[str, Chunk]:
    for _ in translation.settle():
        pass
    return {chunk.digest: chunk for chunk in translation.assembly.image.chunks()}


def _only_in(one: Mapping[str, Chunk], other: Mapping[str, Chunk]) -> list[TableEntry]:
    chunks = [chunk for digest, chunk in one.items() if digest not in other]
    return [entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content)]


def _foreign(translation: Translation, deltas: Sequence[Delta], ours: Collection[ObjectRef]) -> Mapping[ObjectRef, str]:
    selects = translation.selection.selects
    present = [(one.ref, one.object) for one in deltas if one.object is not None and selects(one.ref)]

    def classes_of(cluster: str) -> Sequence[IngressClass]:
        return translation.graph.look(cluster).find(INGRESS_CLASSES, EVERY)

    return reasons_of_foreign(present, ours, classes_of, translation.graph.settings)
