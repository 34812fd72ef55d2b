"""Translation without services: for `check`, `plan` and tests."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from headgate.common.deltas import Delta
from headgate.common.problems import Problem
from headgate.common.resources import ALL_KINDS, INGRESS_CLASS, JsonObject, Kinds, ObjectRef, Ownership
from headgate.common.snapshot import TableImage, decode_chunk
from headgate.common.table import Certificate, TableEntry
from headgate.translator.assembly.boundaries import DEFAULT_BOUNDARIES, Boundaries
from headgate.translator.dialects import Dialect
from headgate.translator.dialects.apisix import ApisixDialect, find_backend_policy, find_route_policy
from headgate.translator.dialects.ingress import ClassSettings, IngressDialect
from headgate.translator.dialects.ingress.dialect import find_ingress
from headgate.translator.dialects.ingress.document import class_name
from headgate.translator.dialects.services import ServicesDialect
from headgate.translator.sources.classes import read_ingress_class, why_foreign
from headgate.translator.translation import Translation


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


def make_dialects(classes: ClassSettings | None = None) -> Sequence[Dialect]:
    """Return all dialects that this release knows."""
    settings = classes or ClassSettings()
    apisix = ApisixDialect(settings, find_ingress)
    ingress = IngressDialect(
        settings, apisix.find_plugins, apisix.find_addresses, find_backend_policy, find_route_policy
    )
    return (ingress, apisix, ServicesDialect())


def translate_all(
    deltas: Iterable[Delta],
    classes: ClassSettings | None = None,
    boundaries: Boundaries = DEFAULT_BOUNDARIES,
    *,
    dialects: Sequence[Dialect] | None = None,
    kinds: Kinds = ALL_KINDS,
) -> Offline:
    """Translate objects at once, every cluster taken for complete; by all dialects unless some are given."""
    deltas = list(deltas)
    translation = Translation(dialects or make_dialects(classes), boundaries=boundaries, has_history=False)
    for delta in deltas:
        translation.apply(delta)
        translation.activate(delta.ref.cluster)
    for _ in translation.settle():
        pass
    conditions = {ref: translation.condition(ref) for ref in sorted(translation.assembly.fragments)}
    ours = {ref for ref, condition in conditions.items() if condition}
    return Offline(
        problems={ref: condition.problems for ref, condition in conditions.items() if condition},
        accepted=frozenset(ref for ref, condition in conditions.items() if condition and condition.is_accepted),
        image=translation.assembly.image,
        foreign=foreign_objects(deltas, ours, classes or ClassSettings(), kinds),
    )


def foreign_objects(
    deltas: Iterable[Delta], ours: Collection[ObjectRef], settings: ClassSettings, kinds: Kinds = ALL_KINDS
) -> dict[ObjectRef, str]:
    """Say of objects of a class that are not ours why they are not; all IngressClasses are among the objects."""
    present = [(delta.ref, delta.object) for delta in deltas if delta.object is not None]
    classes = [
        (ref.cluster, read_ingress_class(manifest))
        for ref, manifest in present
        if (ref.group, ref.resource) == (INGRESS_CLASS.group, INGRESS_CLASS.resource)
    ]

    def why(ref: ObjectRef, manifest: JsonObject) -> str:
        kind = kinds.find(ref.group, ref.resource)
        match kind.ownership if kind else Ownership.NONE:
            case Ownership.CLASS:
                known = [one for cluster, one in classes if cluster == ref.cluster]
                return why_foreign(class_name(manifest), known, settings)
            case Ownership.GATEWAY:
                return "its Gateway is of another controller; --controller-names adopts that"
            case Ownership.REFERENCE | Ownership.NONE:
                return ""

    return {ref: reason for ref, manifest in present if ref not in ours and (reason := why(ref, manifest))}
