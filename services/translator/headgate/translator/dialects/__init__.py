"""Dialects: the resources that people route with, each translated into fragments of one vocabulary.

A dialect is a folder here. It names the kinds that it translates and all that it looks up, and is otherwise one pure
function from an object to a `Fragment`. None imports another; what two need goes into the table's vocabulary or beside
this folder.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.manifests.verdicts import FieldVerdict
from headgate.translator.world.graph import Lookups
from headgate.translator.world.world import StoredKind


class Dialect(Protocol):
    """One vocabulary of routing resources."""

    @property
    def name(self) -> str:
        """The dialect's name."""
        ...

    @property
    def roots(self) -> Sequence[StoredKind[Any]]:
        """Kinds whose objects become fragments."""
        ...

    @property
    def fields(self) -> Mapping[str, Sequence[FieldVerdict]]:
        """What becomes of fields, for audits: by plural. Fields that no row is about are followed."""
        ...

    @property
    def reads(self) -> Sequence[StoredKind[Any]]:
        """Kinds that are looked up beside those that every table needs (Services and their endpoints).

        Those of `roots` are among them that other objects refer to: of the rest nothing is kept that a table does not
        select.
        """
        ...

    def check(self, ref: ObjectRef, manifest: JsonObject, stored: Any) -> Iterable[Problem]:
        """Return what is wrong with an object of `roots` by itself, with everything that it refers to in place.

        A version with errors leaves the last good one in force; see `standing`.
        """
        ...

    def concerns(self, stored: Any) -> bool:
        """Whether an object may contribute anything at all: a quick look, so that others cost nothing."""
        ...

    def translate(self, ref: ObjectRef, lookups: Lookups) -> Fragment | None:
        """Return what an object contributes; None where it is gone or another controller's.

        Pure: what it depends on is looked up through `lookups`, so that a change of any of it runs this again. Which
        version of the object is translated, and what is said of the present one, goes by its `lookups.standing`.
        """
        ...

    def refuse(self, ref: ObjectRef, stored: Any, error: Exception) -> Fragment:
        """Return the fragment that stands in for an object whose translation failed for a reason of ours."""
        ...
