"""Translation without services: for `check`, `plan` and tests."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from headgate.common.deltas import Delta
from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import TableImage, decode_chunk
from headgate.common.table import TableEntry
from headgate.translator.dialects import Dialect
from headgate.translator.dialects.ingress import ClassSettings, IngressDialect
from headgate.translator.translation import Translation


class Offline(NamedTuple):
    """The table that some objects make."""

    entries: tuple[TableEntry, ...]
    problems: Mapping[ObjectRef, tuple[Problem, ...]]
    """Of every object that is ours; empty where all is well."""
    accepted: frozenset[ObjectRef]
    """Objects of which at least one route is served."""
    image: TableImage


def make_dialects(classes: ClassSettings | None = None) -> Sequence[Dialect]:
    """Return all dialects that this release knows."""
    return (IngressDialect(classes or ClassSettings()),)


def translate_all(deltas: Iterable[Delta], classes: ClassSettings | None = None) -> Offline:
    """Translate objects at once, every cluster taken for complete."""
    translation = Translation(make_dialects(classes))
    for delta in deltas:
        translation.apply(delta)
        translation.activate(delta.ref.cluster)
    for _ in translation.settle():
        pass
    conditions = {ref: translation.condition(ref) for ref in sorted(translation.assembly.fragments)}
    image = translation.assembly.image
    return Offline(
        entries=tuple(entry for chunk in image.chunks() for entry in decode_chunk(chunk.kind, chunk.content)),
        problems={ref: condition.problems for ref, condition in conditions.items() if condition},
        accepted=frozenset(ref for ref, condition in conditions.items() if condition and condition.is_accepted),
        image=image,
    )
