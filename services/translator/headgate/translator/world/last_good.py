"""How one object stands: what it says now, and what is served of it where that cannot be used.

An object's versions are folded one after the other. A version that has errors of its own does not take the place of
the last one that had none; that one, the *last good*, goes on being served until the object is mended, deleted or
made again. What an object refers to is no part of this: whether a version is good depends on nothing but itself, so
every reader of the same log comes to the same end, whatever else was in the world at that time.

Rejected: keeping the last good translation instead of the last good object. It would depend on when its look-ups were
made, and could not follow the Services and Secrets behind it.
"""

from typing import Any, NamedTuple

from headgate.common.problems import Problem


class VersionId(NamedTuple):
    """Which version of an object something is."""

    uid: str
    resource_version: str
    generation: int
    """`metadata.generation`; 0 where versions are not counted."""
    sequence: int
    """Of the delta that told of it."""

    def __str__(self) -> str:
        """As messages name it."""
        if self.generation:
            return f"generation {self.generation}, resourceVersion {self.resource_version}"
        return f"resourceVersion {self.resource_version}"


class JudgedVersion(NamedTuple):
    """One version of an object, read and judged by itself."""

    form: Any | None
    """Its stored form; None where it could not even be read."""
    version: VersionId
    errors: tuple[Problem, ...] = ()
    """What is wrong with it by itself; empty for a good version."""


class ObjectVersions(NamedTuple):
    """Where an object's versions have led."""

    present: JudgedVersion
    """Its last version."""
    good: JudgedVersion | None = None
    """Served in place of a last version that has errors; None also where no version was good."""

    @property
    def errors(self) -> tuple[Problem, ...]:
        """What is wrong with the present version by itself."""
        return self.present.errors

    @property
    def last_good(self) -> JudgedVersion | None:
        """The version that would stand in for a next one."""
        return self.good if self.present.errors else self.present


def succeed(before: ObjectVersions | None, new: JudgedVersion) -> ObjectVersions:
    """Return how an object stands after one more version. One of another uid is another object."""
    good = before.last_good if before and new.errors else None
    return ObjectVersions(new, good if good and _is_same_object(good, new) else None)


def support(versions: ObjectVersions, found: JudgedVersion) -> ObjectVersions:
    """Return how an object stands when a version is heard of out of order: the newest good one stands in."""
    present, good = versions
    if not present.errors or found.errors or not _is_same_object(found, present):
        return versions
    least = good.version.sequence if good else -1
    return ObjectVersions(present, found) if least < found.version.sequence < present.version.sequence else versions


def _is_same_object(one: JudgedVersion, other: JudgedVersion) -> bool:
    return one.version.uid == other.version.uid
