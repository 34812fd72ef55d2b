"""What objects of one dialect say of the objects of another, found by what they are about.

A policy, a bundle of plugins or the parameters of a class belong to one dialect and hold for objects of others. An
attachment point names one such sort of statement and the target by which it is looked up. Dialects provide statements
for points, others ask for those of a target (`Lookups.attached`), and neither knows the other. The look-ups of a
provider are recorded with those of the caller, so a changed policy translates what it is about again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from headgate.translator.world.graph import Lookups

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True, eq=False)
class AttachmentPoint(Generic[K, V]):
    """One sort of statement, by its target of type `K`. `eq=False`: a point is itself only."""

    name: str
    nothing: V
    """The value for a target without attachments."""


class Provider(NamedTuple, Generic[K, V]):
    """Finds the statements of one dialect at one point."""

    point: AttachmentPoint[K, V]
    find: Callable[["Lookups", K], V]
    """Returns what holds for a target; the point's `nothing` if the dialect says nothing of it. Pure."""


class Providers:
    """The providers of all dialects, by their points."""

    def __init__(self, providers: Iterable[Provider[Any, Any]] = ()) -> None:
        """Take providers; of several for one point the first that says anything counts."""
        found: dict[AttachmentPoint[Any, Any], list[Callable[[Lookups, Any], Any]]] = {}
        for point, find in providers:
            found.setdefault(point, []).append(find)
        self._found: Mapping[AttachmentPoint[Any, Any], tuple[Callable[[Lookups, Any], Any], ...]] = {
            point: tuple(several) for point, several in found.items()
        }

    def find(self, point: AttachmentPoint[K, V], lookups: "Lookups", target: K) -> V:
        """Return what holds for a target at a point."""
        for find in self._found.get(point, ()):
            said: V = find(lookups, target)
            if said != point.nothing:
                return said
        return point.nothing
