"""A translation that follows a log kept in a list, as the loop does with the real one."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from headgate.common.deltas import Delta, LastGood
from headgate.common.resources import ObjectRef
from headgate.translator.assembly.conditions import ObjectStatus
from headgate.translator.composition import DIALECTS
from headgate.translator.objects.dialect import Dialect
from headgate.translator.translation import Translation


class ListedLog:
    """What a log keeps: the last few deltas of each object, and the last record of it."""

    def __init__(self, history: int = 8) -> None:
        self._kept = history
        self._sequence = 0
        self._deltas: defaultdict[ObjectRef, list[Delta]] = defaultdict(list)
        self._records: dict[ObjectRef, LastGood] = {}

    def append(self, delta: Delta) -> Delta:
        """Append a delta; return it with its sequence."""
        self._sequence += 1
        delta = delta.model_copy(update={"sequence": self._sequence})
        deltas = self._deltas[delta.ref]
        deltas.append(delta)
        del deltas[: -self._kept]
        return delta

    def write(self, record: LastGood) -> LastGood:
        """Write a record; return it with its sequence."""
        self._sequence += 1
        self._records[record.ref] = record.model_copy(update={"sequence": self._sequence})
        return self._records[record.ref]

    def history(self, ref: ObjectRef) -> Sequence[Delta]:
        """Return what is kept of an object."""
        return tuple(self._deltas[ref])

    def replay(self) -> list[Delta | LastGood]:
        """Return the last message of each subject, in order."""
        last: list[Delta | LastGood] = [deltas[-1] for deltas in self._deltas.values() if deltas]
        return sorted([*last, *self._records.values()], key=lambda message: message.sequence)


class Follower:
    """A translation, and what the loop does around it."""

    def __init__(
        self, log: ListedLog, clusters: Iterable[str] = ("a", "b"), dialects: Sequence[Dialect] = DIALECTS
    ) -> None:
        self.log = log
        self.translation = Translation(dialects)
        for cluster in clusters:
            self.translation.activate(cluster)

    def replay(self) -> None:
        """Begin with the log as it is now."""
        for message in self.log.replay():
            self.take(message)
        self.settle()

    def take(self, message: Delta | LastGood) -> None:
        """Take in a message."""
        if isinstance(message, Delta):
            self.translation.apply(message)
        else:
            self.translation.remember(message)

    def settle(self) -> None:
        """Bring everything up to date, and again with what is found out of what was unsure."""
        self._settle()
        for ref in list(self.translation.world.tracker.unsure):
            self.translation.recall(ref, self.log.history(ref))
        self._settle()

    def _settle(self) -> None:
        for _ in self.translation.settle():
            pass

    def write_records(self) -> None:
        """Write down what is not written yet, and hear of it as everybody does."""
        world = self.translation.world
        for ref in list(world.tracker.unwritten):
            if (record := world.record(ref)) is not None:
                self.take(self.log.write(record))

    @property
    def image(self) -> list[tuple[str, str, str]]:
        """The table's chunks by their digests."""
        return [(chunk.kind, chunk.prefix, chunk.digest) for chunk in self.translation.assembly.image.chunks()]

    @property
    def conditions(self) -> dict[ObjectRef, ObjectStatus | None]:
        """How all objects stand."""
        return {ref: self.translation.condition(ref) for ref in self.translation.assembly.fragments}
