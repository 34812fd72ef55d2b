"""Groups of backends, to which routes and other groups refer by key: four that balance, and one that goes by rules."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Self

from pydantic import Field, model_validator

from headgate.common.table.backend import Backend
from headgate.common.table.base import Entry, Provenance
from headgate.common.table.match import Condition
from headgate.common.table.mirror import Mirror
from headgate.common.table.sending import Stickiness
from headgate.common.table.upstream import HashKey

MAX_DEPTH: Final = 16
"""Groups on the way from a group to an upstream, itself included."""
MAX_BACKENDS: Final = 1024
"""Backends of a group and of all groups within it; each counts once for each way that leads to it."""


class Weighted(Entry):
    """Backends that share the requests by their weights.

    One that has no endpoint fails its share: the others would get more than they were given.
    """

    backends: tuple[Backend, ...] = Field(min_length=1)


class Hashed(Entry):
    """Backends of which a request's keys choose one: that with the highest random weight (rendezvous hashing).

    One that has no healthy endpoint is passed over, and only its keys move. A request without any key goes by weights.
    """

    backends: tuple[Backend, ...] = Field(min_length=1)
    keys: tuple[HashKey, ...] = Field(default=(HashKey(source="client"),), min_length=1)


class Mirroring(Entry):
    """A backend that gets all requests, and mirrors that get copies of some."""

    main: Backend
    mirrors: tuple[Mirror, ...]


class Failover(Entry):
    """A backend, and another one in its place.

    The fallback gets the requests while the main one has no healthy endpoint, and those again that the main one answers
    with one of the statuses, as far as they can be sent again (see `Retries`): with the path and the headers that they
    had before the main one's plugins, and with the body that the main one got.
    """

    main: Backend
    fallback: Backend
    statuses: tuple[int, ...] = ()
    """502, 503 and 504 also where the gateway says so itself for a main one that it does not reach."""
    unsafe: bool = False
    """Requests whose method is not idempotent too, though the main one may have acted on them."""


class Choice(Entry):
    """A backend, and the requests that it takes."""

    when: Condition | None = None
    """None: all."""
    backend: Backend


class FirstMatch(Entry):
    """Backends of which the first takes a request whose condition it satisfies; the answer to all others is 404.

    Conditions look at the request as the plugins on the way to the group have made it.
    """

    choices: tuple[Choice, ...] = Field(min_length=1)


class BackendGroup(Entry):
    """One of five ways to choose among backends."""

    key: str
    """Unique in the table."""
    weighted: Weighted | None = None
    hashed: Hashed | None = None
    mirroring: Mirroring | None = None
    failover: Failover | None = None
    first_match: FirstMatch | None = None
    stickiness: Stickiness | None = None
    """Keeps a client with the backend that served it first, and with its endpoint. Of nested groups that have it the
    outermost that knows the client decides."""
    provenance: Provenance

    @model_validator(mode="after")
    def _has_one_way(self) -> Self:
        ways = (self.weighted, self.hashed, self.mirroring, self.failover, self.first_match)
        if sum(each is not None for each in ways) != 1:
            raise ValueError("a group needs one of weighted, hashed, mirroring, failover and first_match")
        if self.first_match is not None and self.stickiness is not None:
            raise ValueError("what a request is decides in a group of first_match: it has no stickiness")
        return self

    @property
    def backends(self) -> tuple[Backend, ...]:
        """All that requests may go to; the main one first."""
        if self.mirroring is not None:
            return (self.mirroring.main,)
        if self.failover is not None:
            return (self.failover.main, self.failover.fallback)
        if self.first_match is not None:
            return tuple(choice.backend for choice in self.first_match.choices)
        split = self.weighted or self.hashed
        assert split is not None
        return split.backends

    @property
    def mirrors(self) -> tuple[Mirror, ...]:
        """Those of a mirroring group."""
        return self.mirroring.mirrors if self.mirroring is not None else ()


class Nested(NamedTuple):
    """What a group consists of."""

    groups: Sequence[str]
    """Keys, each as often as it is named."""
    upstreams: int


def nested_in(group: BackendGroup) -> Nested:
    """Return what a group consists of."""
    keys = [backend.group for backend in group.backends if backend.group]
    return Nested(keys, len(group.backends) - len(keys))


FindNested = Callable[[str], Nested | None]


def upstreams_within(key: str, find: Callable[[str], BackendGroup | None]) -> tuple[str, ...]:
    """Return the keys of all upstreams that a group leads to, each once."""
    found: dict[str, None] = {}
    seen, waiting = {key}, [key]
    while waiting:
        group = find(waiting.pop())
        for backend in group.backends if group is not None else ():
            if not backend.group:
                found[backend.upstream] = None
            elif backend.group not in seen:
                seen.add(backend.group)
                waiting.append(backend.group)
    return tuple(found)


class _Extent(NamedTuple):
    """How far a group reaches; groups within it that refuse their requests count as one backend."""

    backends: int
    depth: int

    @property
    def fault(self) -> str:
        if self.backends > MAX_BACKENDS:
            return f"has more than {MAX_BACKENDS} backends, with those of the groups within it"
        return f"is nested deeper than {MAX_DEPTH} groups" if self.depth > MAX_DEPTH else ""


def fault_of_nesting(key: str, find: FindNested) -> str:
    """Say why a group refuses its requests for what it consists of; empty if it does not.

    A fault of a group within it is that group's own: a circle is one of the groups on it, and not of those that lead
    to it.
    """
    parents: dict[str, str] = {}
    extents: dict[str, _Extent] = {}
    waiting = [(key, False)]
    while waiting:
        each, is_known = waiting.pop()
        nested = find(each) or _NOTHING
        if is_known:
            within = [extents.get(one, _ONE) for one in nested.groups]
            within = [_ONE if one.fault else one for one in within]
            depth = 1 + max((one.depth for one in within), default=0)
            extents[each] = _Extent(nested.upstreams + sum(one.backends for one in within), depth)
            continue
        if key in nested.groups:
            return f"nests itself: {_way(each, parents)} -> {key}"
        waiting.append((each, True))
        for one in nested.groups:
            if one != key and one not in parents:
                parents[one] = each
                waiting.append((one, False))
        if len(parents) > MAX_BACKENDS:
            return _Extent(len(parents), 1).fault
    return extents[key].fault


_NOTHING = Nested((), 0)
_ONE = _Extent(1, 0)


def _way(to: str, parents: Mapping[str, str]) -> str:
    """Return the keys of the groups that lead to one."""
    keys = [to]
    while keys[-1] in parents:
        keys.append(parents[keys[-1]])
    return " -> ".join(reversed(keys))
