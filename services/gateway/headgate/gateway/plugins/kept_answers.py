"""Answers that one worker keeps in memory, and which of them goes first when there are too many."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from headgate.gateway.plugins.headers import Headers

MAX_BYTES: Final = 64 << 20
"""Of all answers that a worker keeps; beyond them the one not asked for longest is dropped."""
MAX_ANSWER: Final = 4 << 20
"""Bytes of one answer's body; longer ones are not kept."""
_OVERHEAD = 512


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
        return len(self.body) + len(self.headers.to_lines()) + _OVERHEAD


class KeptAnswers:
    """Answers by key, and by the headers that they vary with."""

    def __init__(self, limit: int = MAX_BYTES) -> None:
        self._limit = limit
        self._answers: OrderedDict[tuple[str, str], KeptAnswer] = OrderedDict()
        self._variants: dict[str, tuple[tuple[str, ...], set[str]]] = {}
        """By key: names of headers, and the variants that are kept."""
        self.size = 0

    def get(self, key: str, headers: Headers) -> KeptAnswer | None:
        """Return what is kept for a request with these headers."""
        known = self._variants.get(key)
        if known is None:
            return None
        place = key, _variant(known[0], headers)
        answer = self._answers.get(place)
        if answer is not None:
            self._answers.move_to_end(place)
        return answer

    def put(self, key: str, headers: Headers, vary: Iterable[str], answer: KeptAnswer) -> None:
        """Keep an answer to a request with these headers."""
        names = tuple(sorted(vary))
        known = self._variants.get(key)
        if known is not None and known[0] != names:
            self.drop(key)
        variant = _variant(names, headers)
        self._forget((key, variant))
        self._variants.setdefault(key, (names, set()))[1].add(variant)
        self._answers[key, variant] = answer
        self.size += answer.size
        while self.size > self._limit:
            self._forget(next(iter(self._answers)))

    def drop(self, key: str) -> bool:
        """Forget all of a key; False: there was nothing."""
        known = self._variants.get(key)
        for variant in tuple(known[1]) if known is not None else ():
            self._forget((key, variant))
        return known is not None

    def _forget(self, place: tuple[str, str]) -> None:
        answer = self._answers.pop(place, None)
        if answer is None:
            return
        self.size -= answer.size
        variants = self._variants[place[0]][1]
        variants.discard(place[1])
        if not variants:
            del self._variants[place[0]]


def _variant(names: tuple[str, ...], headers: Headers) -> str:
    return joined(joined(headers.get_all(name)) for name in names)


def joined(parts: Iterable[str]) -> str:
    """Join texts so that other texts give another one: each with its length, as a text may hold any separator."""
    return "".join(f"{len(part)}:{part}" for part in parts)
