"""How many there are of each key at a time, in all workers of a gateway."""

from headgate.gateway.counting.peers import FOR_EVER, Peers


class _Count:
    __slots__ = ("number", "place")

    def __init__(self, place: int) -> None:
        self.number = 0
        self.place = place


class Tally:
    """Counts by key; a key without any takes no memory.

    Whoever enters is shown before the others are counted: a bound is never exceeded. Two that enter at the same
    instant, in two workers, for the last place see each other, and may both find it taken.

    Args:
        peers: how other workers are heard; None: there are none.
        name: of what is counted, the same in all workers and that of nothing else.
    """

    __slots__ = ("__weakref__", "_counts", "_name", "_peers")

    def __init__(self, peers: Peers | None = None, name: str = "") -> None:
        self._counts: dict[str, _Count] = {}
        self._peers = peers
        self._name = name

    def __len__(self) -> int:
        return len(self._counts)

    def count(self, key: str) -> int:
        """Return how many there are."""
        count, peers = self._counts.get(key), self._peers
        own = count.number if count is not None else 0
        if peers is None:
            return own
        place = count.place if count is not None else self._place(peers, key)
        return own + sum(int(numbers[0]) for numbers in peers.read(place))

    def enter(self, key: str) -> int:
        """Count one more; return how many there are with it."""
        count, peers = self._counts.get(key), self._peers
        if count is None:
            count = self._counts[key] = _Count(self._place(peers, key) if peers is not None else 0)
        count.number += 1
        if peers is None:
            return count.number
        peers.write(count.place, count.number, 0.0, 0.0, FOR_EVER)
        return count.number + sum(int(numbers[0]) for numbers in peers.read(count.place))

    def leave(self, key: str) -> None:
        """Count one less."""
        count, peers = self._counts[key], self._peers
        count.number -= 1
        if not count.number:
            del self._counts[key]
            if peers is not None:
                peers.withdraw(count.place)
        elif peers is not None:
            peers.write(count.place, count.number, 0.0, 0.0, FOR_EVER)

    def _place(self, peers: Peers, key: str) -> int:
        return peers.place(f"{self._name}\0{key}")
