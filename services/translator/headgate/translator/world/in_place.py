"""A world in which everything that an object refers to is there and as it should be.

Translated in it, an object shows what is wrong with itself and nothing else.
"""

from typing import Any, TypeVar

from headgate.common.resources import ObjectRef
from headgate.translator.world.attachments import AttachmentPoint
from headgate.translator.world.graph import Argument, Lookups, Rule
from headgate.translator.world.last_good import ObjectVersions
from headgate.translator.world.settings import TranslationSettings
from headgate.translator.world.world import Index, StoredKind

T = TypeVar("T")
A = TypeVar("A", bound=Argument)
K = TypeVar("K")
V = TypeVar("V")


class InPlace:
    """`Lookups` that find a sample of every kind that has one (`StoredKind.sample`), and nothing else."""

    cluster = ""
    is_assumed = True

    def __init__(self, settings: TranslationSettings) -> None:
        """Take the settings, which hold in this world too."""
        self.settings = settings

    def get(self, stored: StoredKind[T], namespace: str, name: str) -> T | None:
        """Return the sample of the kind."""
        return stored.sample

    def versions(self, stored: StoredKind[Any], namespace: str, name: str) -> ObjectVersions | None:
        """Return None: how objects stand says nothing of what refers to them."""
        return None

    def find(self, stored: StoredKind[T], index: Index[T], value: str = "", *, namespace: str = "") -> tuple[T, ...]:
        """Return nothing."""
        return ()

    def find_everywhere(
        self, stored: StoredKind[T], index: Index[T], value: str = ""
    ) -> tuple[tuple[ObjectRef, T], ...]:
        """Return nothing."""
        return ()

    def derive(self, rule: Rule[A, T], argument: A) -> T:
        """Refuse: values that are derived from a world say nothing here, and the caller has to know."""
        raise NotImplementedError(rule.name)

    def attached(self, point: AttachmentPoint[K, V], target: K) -> V:
        """Return that nothing is attached."""
        return point.nothing

    def sharers(self, stored: StoredKind[Any], namespace: str, name: str) -> tuple[str, ...]:
        """Return nothing."""
        return ()

    def elsewhere(self, cluster: str) -> Lookups:
        """Return itself: every cluster is as this one."""
        return self
