"""What one matcher asks of a request, in words of the table."""

from typing import Final, NamedTuple

from headgate.common.table import AllOf, AnyOf, Compare, Condition, Not, PathMatch

ALWAYS: Final = AllOf(all_of=())
NEVER: Final = AnyOf(any_of=())


def keep_semicolons(condition: Condition) -> Condition:
    """Return a condition for requests in whose queries `;` separates no parameters."""
    match condition:
        case AllOf():
            return AllOf(all_of=tuple(map(keep_semicolons, condition.all_of)))
        case AnyOf():
            return AnyOf(any_of=tuple(map(keep_semicolons, condition.any_of)))
        case Not():
            return Not(negated=keep_semicolons(condition.negated))
        case Compare():
            return condition.model_copy(update={"semicolons": False})


class RequestTest(NamedTuple):
    """One question to a request.

    A question about the host or the path also says which host or path of the table it is. A route may have it there,
    where it is found by an index, in the place of the condition.
    """

    condition: Condition
    host: str = ""
    """A host pattern (`headgate.common.table.hosts`) that takes all requests which satisfy the condition."""
    is_whole_host: bool = False
    """Whether the host pattern takes no others, so that a route there needs no condition."""
    path: PathMatch | None = None
    """Takes the same requests as the condition."""

    @property
    def has_place(self) -> bool:
        """Whether it is about the host or the path."""
        return bool(self.host) or self.path is not None
