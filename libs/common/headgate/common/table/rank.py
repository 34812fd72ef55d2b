"""Which of several routes that take a request goes first.

A dialect says by a `Rank` what its rules of precedence say of a route. Assembly, the gateways' compiler and
explanations compare ranks by `before_path`, `within_path` and `within_match`, and by nothing of their own. The age and
the name of the object, which decide last, are no part of it: assembly orders routes of equal rank by them, so that
their position stands for both. A table with the ages of its objects would differ after every restore of a cluster.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic.aliases import AliasChoices

from headgate.common.table.base import Entry
from headgate.common.table.match import AllOf, AnyOf, Condition, PathType

_CLASSES = {PathType.EXACT: 0, PathType.REGEX: 1, PathType.PREFIX: 2, PathType.STRING_PREFIX: 2}

BeforePath = tuple[int, int, int]
WithinMatch = tuple[bool, int, int, int]
WithinPath = tuple[int, int, bool, int, int, int, bool]


class Rank(Entry):
    """What decides between routes besides their paths; the fields are in the order in which they are compared."""

    priority: int = 0
    """The higher goes first, whatever the path."""
    path_priority: int = 0
    """The higher goes first among routes for one path (the `priority` of Apache APISIX)."""
    written_length: int = Field(default=0, ge=0)
    """Characters of the path as the object has it, wildcards included, where a dialect compares these; longer goes
    first."""
    has_method: bool = False
    """A route that asks for a method goes first, in dialects that look at this before headers (Gateway API)."""
    headers: int = Field(default=0, ge=0)
    """Headers that are asked for, in such dialects; more go first."""
    query_parameters: int = Field(default=0, ge=0)
    """Query parameters that are asked for, in such dialects; more go first."""
    comparisons: int = Field(default=0, ge=0)
    """Comparisons of any kind that are asked for, in dialects that count all alike; more go first."""
    is_default: bool = False
    """A default backend: goes last, and leaves equal matches to routes that are none, whatever the objects' age."""
    is_unreadable: bool = False
    """It cannot be read which requests the route is meant for: treated as a default backend's, lest it take others."""

    @property
    def gives_way(self) -> bool:
        """Whether routes for the same requests that do not give way go before this one, whatever the objects' age."""
        return self.is_default or self.is_unreadable

    def before_path(self, path_type: PathType, length: int) -> BeforePath:
        """Return the sort key among all routes of a host; `length` is that of the path or pattern.

        Kubernetes says longest first, then exact before prefix. As an exact path is the whole request's, that is the
        same but for exact `/foo` and prefix `/foo/`, where the slash is ignored by the prefix's own rule.
        """
        return -self.priority, _CLASSES[path_type], -length

    @property
    def within_match(self) -> WithinMatch:
        """Sort key among routes that take the same requests, of which one is served: they ask for the same."""
        return self.gives_way, -self.priority, -self.path_priority, -self.written_length

    @property
    def within_path(self) -> WithinPath:
        """Sort key among routes for one path."""
        return (
            -self.path_priority,
            -self.written_length,
            not self.has_method,
            -self.headers,
            -self.query_parameters,
            -self.comparisons,
            self.gives_way,
        )


def count_comparisons(condition: Condition | None) -> int:
    """Return how many comparisons a request has to satisfy; of alternatives the one with the most counts."""
    match condition:
        case None:
            return 0
        case AllOf():
            return sum(map(count_comparisons, condition.all_of))
        case AnyOf():
            return max(map(count_comparisons, condition.any_of), default=0)
        case _:
            return 1


def _from_schema_6(value: Any) -> Any:
    return {"priority": value} if isinstance(value, int) else value


RouteRank = Annotated[Rank, BeforeValidator(_from_schema_6), Field(validation_alias=AliasChoices("rank", "priority"))]
"""A field `rank`, which tables up to schema 6 have as a number `priority`."""
