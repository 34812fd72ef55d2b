"""Translation without services: for `check`, `plan` and tests."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from headgate.common.deltas import Delta
from headgate.common.problems import Problem
from headgate.common.resources import INGRESS_CLASS, JsonObject, ObjectRef
from headgate.common.snapshot import decode_chunk
from headgate.common.table import Certificate, TableEntry
from headgate.common.table_image import TableImage
from headgate.translator.assembly.boundaries import DEFAULT_BOUNDARIES, Boundaries
from headgate.translator.composition import DIALECTS
from headgate.translator.objects.dialect import Dialect
from headgate.translator.sources.classes import IngressClass, read_ingress_class
from headgate.translator.translation import Translation
from headgate.translator.world.settings import DEFAULT_SETTINGS, TranslationSettings
from headgate.translator.world.world import KindKey


class Offline(NamedTuple):
    """The table that some objects make."""

    problems: Mapping[ObjectRef, tuple[Problem, ...]]
    """Of every object that is ours; empty where all is well."""
    accepted: frozenset[ObjectRef]
    """Objects of which at least one route is served."""
    image: TableImage
    foreign: Mapping[ObjectRef, str]
    """Objects that are not ours by their class, and why."""

    @property
    def entries(self) -> tuple[TableEntry, ...]:
        """All entries of the table, decoded."""
        return tuple(entry for chunk in self.image.chunks() for entry in decode_chunk(chunk.kind, chunk.content))

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """Those entries that are certificates."""
        chunks = (chunk for chunk in self.image.chunks() if chunk.kind == "certificates")
        entries = (entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content))
        return tuple(entry for entry in entries if isinstance(entry, Certificate))


def translate_all(
    deltas: Iterable[Delta],
    settings: TranslationSettings = DEFAULT_SETTINGS,
    boundaries: Boundaries = DEFAULT_BOUNDARIES,
    dialects: Sequence[Dialect] = DIALECTS,
) -> Offline:
    """Translate objects at once, every cluster taken for complete."""
    translation = Translation(dialects, settings, boundaries=boundaries, is_followed=False)
    present: list[tuple[ObjectRef, JsonObject]] = []
    for delta in deltas:
        translation.apply(delta)
        translation.activate(delta.ref.cluster)
        if delta.object is not None:
            present.append((delta.ref, delta.object))
    for _ in translation.settle():
        pass
    conditions = {ref: translation.condition(ref) for ref in sorted(translation.assembly.fragments)}
    ours = {ref for ref, condition in conditions.items() if condition}
    return Offline(
        problems={ref: condition.problems for ref, condition in conditions.items() if condition},
        accepted=frozenset(ref for ref, condition in conditions.items() if condition and condition.is_accepted),
        image=translation.assembly.image,
        foreign=foreign_objects(present, ours, settings, dialects),
    )


def foreign_objects(
    present: Iterable[tuple[ObjectRef, JsonObject]],
    ours: Collection[ObjectRef],
    settings: TranslationSettings,
    dialects: Sequence[Dialect] = DIALECTS,
) -> dict[ObjectRef, str]:
    """Say of objects that are not ours why they are not; all IngressClasses are among the objects."""
    present = list(present)
    classes: dict[str, list[IngressClass]] = {}
    for ref, manifest in present:
        if (ref.group, ref.resource) == (INGRESS_CLASS.group, INGRESS_CLASS.resource):
            classes.setdefault(ref.cluster, []).append(read_ingress_class(manifest))
    return reasons_of_foreign(present, ours, lambda cluster: classes.get(cluster, ()), settings, dialects)


def reasons_of_foreign(
    present: Iterable[tuple[ObjectRef, JsonObject]],
    ours: Collection[ObjectRef],
    classes_of: Callable[[str], Sequence[IngressClass]],
    settings: TranslationSettings,
    dialects: Sequence[Dialect] = DIALECTS,
) -> dict[ObjectRef, str]:
    """Say of objects that are not ours why they are not; `classes_of` returns the IngressClasses of a cluster."""
    ownerships = {kind.stored.name: kind.ownership for dialect in dialects for kind in dialect.kinds}

    def why(ref: ObjectRef, manifest: JsonObject) -> str:
        ownership = ownerships.get(KindKey(ref.group, ref.resource))
        return "" if ownership is None else ownership.why_not(manifest, classes_of(ref.cluster), settings)

    found = {ref: why(ref, manifest) for ref, manifest in present if ref not in ours}
    return {ref: reason for ref, reason in found.items() if reason}
