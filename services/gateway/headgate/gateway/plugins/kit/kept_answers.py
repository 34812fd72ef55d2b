"""Answers that one worker keeps, and which of them goes first when there are too many."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from headgate.gateway.plugins.interface.headers import Headers

MAX_BYTES: Final = 64 << 20
"""Of all answers that a worker keeps; beyond them some of an owner's not asked for longest are dropped."""
MAX_ANSWER: Final = 4 << 20
"""Bytes of one answer's body; longer ones are not kept."""
OVERHEAD: Final = 512
"""Bytes that an answer takes beside its head and its body."""


class HasSize(Protocol):
    """What can be kept."""

    @property
    def size(self) -> int:
        """Bytes that it takes, roughly."""


A = TypeVar("A", bound=HasSize)


class KeptAnswer(NamedTuple):
    """One answer."""

    status: int
    headers: Headers
    body: bytes
    kept_at: float
    """Monotonic seconds."""
    expires: float

    @property
    def size(self) -> int:
        """Bytes that it takes, roughly."""
        return len(self.body) + len(self.headers.to_lines()) + OVERHEAD


class KeptAnswers(Generic[A]):
    """The answers of all owners, each a cluster and namespace, or what stands for them.

    When there are too many, an owner that has more than an equal share of the room parts with some: the one that keeps
    another answer, else the one that has most. Room that others do not need is everybody's.

    Args:
        limit: bytes of all.
        on_forget: told of each that is kept no longer.
    """

    def __init__(self, limit: int = MAX_BYTES, on_forget: Callable[[A], None] = lambda answer: None) -> None:
        self._limit = limit
        self._on_forget = on_forget
        self._shelves: dict[str, _Shelf[A]] = {}
        """By owner; none is empty."""
        self.size = 0

    def get(self, owner: str, key: str, headers: Headers) -> A | None:
        """Return what is kept for a request with these headers."""
        shelf = self._shelves.get(owner)
        return None if shelf is None else shelf.get(key, headers)

    def put(self, owner: str, key: str, headers: Headers, vary: Iterable[str], answer: A) -> None:
        """Keep an answer to a request with these headers."""
        shelf = self._shelves.setdefault(owner, _Shelf(self._on_forget))
        self.size += shelf.put(key, headers, vary, answer)
        while self.size > self._limit:
            self._make_room(owner)

    def drop(self, owner: str, key: str) -> bool:
        """Forget all of a key; False: there was nothing."""
        shelf = self._shelves.get(owner)
        before = 0 if shelf is None else shelf.size
        if shelf is None or not shelf.drop(key):
            return False
        self.size -= before - shelf.size
        self._clear(owner)
        return True

    def _make_room(self, owner: str) -> None:
        shelves = self._shelves
        if shelves[owner].size * len(shelves) <= self._limit:
            owner = max(shelves, key=lambda each: shelves[each].size)
        self.size -= shelves[owner].drop_oldest()
        self._clear(owner)

    def _clear(self, owner: str) -> None:
        if not self._shelves[owner].size:
            del self._shelves[owner]


class _Shelf(Generic[A]):
    """The answers of one owner by key, and by the headers that they vary with."""

    def __init__(self, on_forget: Callable[[A], None]) -> None:
        self._on_forget = on_forget
        self._answers: OrderedDict[tuple[str, str], A] = OrderedDict()
        """Those not asked for longest come first."""
        self._variants: dict[str, tuple[tuple[str, ...], set[str]]] = {}
        """By key: names of headers, and the variants that are kept."""
        self.size = 0

    def get(self, key: str, headers: Headers) -> A | None:
        """Return what is kept for a request with these headers."""
        known = self._variants.get(key)
        if known is None:
            return None
        place = key, variant_of(known[0], headers)
        answer = self._answers.get(place)
        if answer is not None:
            self._answers.move_to_end(place)
        return answer

    def put(self, key: str, headers: Headers, vary: Iterable[str], answer: A) -> int:
        """Keep an answer to a request with these headers; return by how many bytes all have grown."""
        before = self.size
        names = tuple(sorted(vary))
        known = self._variants.get(key)
        if known is not None and known[0] != names:
            self.drop(key)
        variant = variant_of(names, headers)
        self._forget((key, variant))
        self._variants.setdefault(key, (names, set()))[1].add(variant)
        self._answers[key, variant] = answer
        self.size += answer.size
        return self.size - before

    def drop(self, key: str) -> bool:
        """Forget all of a key; False: there was nothing."""
        known = self._variants.get(key)
        for variant in tuple(known[1]) if known is not None else ():
            self._forget((key, variant))
        return known is not None

    def drop_oldest(self) -> int:
        """Forget the answer not asked for longest; return its size."""
        before = self.size
        self._forget(next(iter(self._answers)))
        return before - self.size

    def _forget(self, place: tuple[str, str]) -> None:
        answer = self._answers.pop(place, None)
        if answer is None:
            return
        self.size -= answer.size
        variants = self._variants[place[0]][1]
        variants.discard(place[1])
        if not variants:
            del self._variants[place[0]]
        self._on_forget(answer)


def variant_of(names: Iterable[str], headers: Headers) -> str:
    """Return what tells a request apart from others by these headers."""
    return joined(joined(headers.get_all(name)) for name in names)


def joined(parts: Iterable[str]) -> str:
    """Join texts so that other texts give another one: each with its length, as a text may hold any separator."""
    return "".join(f"{len(part)}:{part}" for part in parts)
