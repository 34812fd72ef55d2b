"""Which objects are ours: those of a class of ours, those that an object of ours refers to, or all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headgate.common.resources import JsonObject, ObjectRef
from headgate.translator.sources.classes import CLASS_IS_OURS, ClassQuestion, IngressClass, is_class_ours, why_foreign
from headgate.translator.sources.namespaces import is_namespace_watched
from headgate.translator.world.graph import Lookups
from headgate.translator.world.settings import TranslationSettings

Owns = Callable[[ObjectRef, Any, Lookups], bool]
"""Whether an object is ours, by its decoded form."""


class Ownership(Protocol):
    """Decides whether an object is ours. Objects of other controllers are neither served nor given a status."""

    def owns(self, ref: ObjectRef, decoded: Any, lookups: Lookups) -> bool:
        """Whether an object is ours."""
        ...

    def why_not(self, manifest: JsonObject, classes: Sequence[IngressClass], settings: TranslationSettings) -> str:
        """Return why an object is not ours and what would make it ours; empty if that needs no explanation."""
        ...


@dataclass(frozen=True, slots=True)
class ByClass:
    """Ownership by IngressClass; see `classes`."""

    class_name: Callable[[JsonObject], str | None]
    """Returns the class that an object names; None if it names none."""
    is_referred_to: bool = False
    """As in `ClassQuestion`."""
    by_namespace: bool = False
    """Whether objects of namespaces that the settings do not select are others'."""

    def owns(self, ref: ObjectRef, decoded: JsonObject, lookups: Lookups) -> bool:
        """Whether the class of an object is ours."""
        question = ClassQuestion(lookups.cluster, self.class_name(decoded), self.is_referred_to)
        if self.by_namespace and not is_namespace_watched(lookups, ref.namespace):
            return False
        return lookups.derive(CLASS_IS_OURS, question)

    def why_not(self, manifest: JsonObject, classes: Sequence[IngressClass], settings: TranslationSettings) -> str:
        """Return whose class it is, or that there is none."""
        name, selector = self.class_name(manifest), settings.nginx.namespace_selector
        if self.by_namespace and selector and is_class_ours(name, classes, settings):
            return f"its namespace does not have the labels {selector} (nginx_watch_namespace_selector)"
        return why_foreign(name, classes, settings)


@dataclass(frozen=True, slots=True)
class ByRule:
    """Ownership by a rule of the dialect: the object's Gateway, its targets, or the objects that name it."""

    rule: Owns
    reason: str = ""
    """Why an object is not ours, and what would make it so."""

    def owns(self, ref: ObjectRef, decoded: Any, lookups: Lookups) -> bool:
        """Whether the rule says so."""
        return self.rule(ref, decoded, lookups)

    def why_not(self, manifest: JsonObject, classes: Sequence[IngressClass], settings: TranslationSettings) -> str:
        """Return the reason of the rule."""
        return self.reason


EVERY_OBJECT = ByRule(lambda ref, decoded, lookups: True)
"""Ownership of kinds that no other controller reads, or whose objects only matter to those who name them."""
