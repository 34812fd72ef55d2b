"""A dialect as a value: the kinds that it translates, what it looks up, and what it says of others' objects.

A dialect is a folder in `dialects` with one such value. Its translations are pure functions from an object to a
`Fragment`; everything else that happens to an object is the same for all dialects (`life_cycle`). No dialect imports
another: what two need goes into the table's vocabulary, beside the dialects, or through an attachment point.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from headgate.common.resources import JsonObject, ObjectRef
from headgate.translator.annotations.vocabulary import Vocabulary
from headgate.translator.fragments.fragment import Fragment, Identity
from headgate.translator.manifests.verdicts import FieldVerdict
from headgate.translator.objects.definitions import Definition
from headgate.translator.objects.document import identify
from headgate.translator.objects.ownership import EVERY_OBJECT, Ownership
from headgate.translator.upstreams.held import ReadKey
from headgate.translator.world.attachments import Provider
from headgate.translator.world.documents import Document
from headgate.translator.world.graph import Lookups
from headgate.translator.world.settings import TranslationSettings
from headgate.translator.world.world import StoredKind

T = TypeVar("T")
D = TypeVar("D")


@dataclass(frozen=True, slots=True, eq=False)
class TranslatedKind(Generic[T, D]):
    """A kind whose objects become fragments; kept as `T`, translated as `D`."""

    stored: StoredKind[T]
    decode: Callable[[T], D]
    """Undoes `StoredKind.read` as far as translation needs it."""
    identify: Callable[[ObjectRef, D], Identity]
    translate: Callable[[ObjectRef, D, Lookups], Fragment]
    """Returns what an object contributes. Pure: what it depends on is looked up, so that a change of any of it
    translates the object again. Look-ups that are assumed (`Lookups.is_assumed`) show what is wrong with the object
    by itself."""
    ownership: Ownership = EVERY_OBJECT
    definition: Definition | None = None
    """Of kinds whose row says that we have a custom resource definition of them."""
    fields: Sequence[FieldVerdict] = ()
    """What becomes of fields of the spec, for audits. Fields that no row is about are followed."""
    concerns: Callable[[T], bool] = lambda _: True
    """Whether an object may contribute anything at all: a quick look, so that others cost nothing."""
    can_be_ours: Callable[[ObjectRef, TranslationSettings], bool] = lambda ref, settings: True
    """Whether an object of this name can be ours at all."""
    hosts: Callable[[D], Iterable[str]] = lambda _: ()
    """Hosts that stay the object's own if its translation fails, lest other objects take their requests."""
    yields_to: StoredKind[Any] | None = None
    """Kind in which a server may serve the same objects: an object that is there too counts there only."""


def translated_documents(
    stored: StoredKind[Document], translate: Callable[[ObjectRef, JsonObject, Lookups], Fragment], **rest: Any
) -> TranslatedKind[Document, JsonObject]:
    """Return a translated kind whose objects are kept as documents; `rest` as in `TranslatedKind`."""
    return TranslatedKind(stored, Document.decode, identify, translate, **rest)


class Dialect(NamedTuple):
    """One vocabulary of routing resources."""

    name: str
    kinds: tuple[TranslatedKind[Any, Any], ...]
    reads: tuple[StoredKind[Any], ...] = ()
    """Kinds that are looked up beside those that every table needs (Services and their endpoints).

    The translated kinds that other objects refer to are among them: of the rest nothing is kept that a table does not
    select.
    """
    provides: tuple[Provider[Any, Any], ...] = ()
    """What its objects say of the objects of other dialects."""
    vocabularies: tuple[Vocabulary, ...] = ()
    """Annotations that it reads, for audits."""
    upstreams: tuple[ReadKey, ...] = ()
    """Read the keys of the upstreams that it resolves by rules of its own."""
