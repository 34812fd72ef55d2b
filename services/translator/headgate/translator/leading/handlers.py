"""What each arrival changes: of the log, of the surroundings, of the pointer, and of whose turn it is."""

from headgate.common.snapshot import Pointer
from headgate.common.stores import LogBatch, LogReplay
from headgate.translator.leading.build import Build
from headgate.translator.leading.feeds import Item, Remembered
from headgate.translator.leading.inputs import Inputs
from headgate.translator.leading.leadership import Turn, Turns
from headgate.translator.leading.output import Output
from headgate.translator.leading.schedule import Schedule
from headgate.translator.leading.surroundings import Surroundings


class Handlers:
    """Take in what arrives, and say when a revision is due for it. They translate, commit and post nothing new."""

    def __init__(self, inputs: Inputs, build: Build, output: Output, schedule: Schedule, turns: Turns) -> None:
        self._inputs, self._build, self._output = inputs, build, output
        self._schedule, self._turns = schedule, turns

    def handle(self, item: Item) -> None:
        """Take in one arrival; statuses that were posted are posted again where they may have been lost.

        - `LogReplay`: the log begins again, at the start or because it was lost. The published table stays.
        - `LogBatch`: messages of the log. The first change is due at once, further ones after a rest.
        - `Surroundings`: what gateways and store say. A store that was lost or went back is due at once.
        - `Remembered`: objects have a status from before.
        - `Pointer`: another translator moved it, or a person who pins or unpins the table.
        - `Turn`: it is our turn to commit and to post. Nothing that was known of the store counts any more.
        """
        match item:
            case LogReplay():
                self._build.begin(item)
                self._schedule.clear()
            case LogBatch():
                if self._inputs.receive(item):
                    self._build.is_settled = False
                    self._schedule.add()
            case Surroundings():
                self.take_surroundings(item)
                self._build.post_again()
            case Remembered():
                self._output.statuses.touch(item.refs)
                self._build.post_again()
            case Pointer():
                self._take_pointer(item)
            case Turn():
                self._take_turn()
                self._build.post_again()

    def take_surroundings(self, found: Surroundings) -> None:
        """Compare what is known with what gateways and store say."""
        inputs, output, leads = self._inputs, self._output, self._turns.leads
        found = found.seen_by(output.publisher.pointer)
        known, seen = output.publisher.version, found.pointer.version if found.pointer else None
        inputs.compare(found)
        output.observe(found)
        if leads and known is not None and seen is not None and seen > known:
            self.stand_back()  # the watch says nothing of a pointer that is known from here already
        if inputs.catch_up.is_waiting:
            inputs.catch_up.look()
            self._schedule.add()
        if inputs.confirmation.is_open or output.publisher.is_behind or output.serving.is_stepping or not leads:
            self._schedule.add()

    def _take_pointer(self, pointer: Pointer) -> None:
        publisher = self._output.publisher
        self._inputs.confirmation.saw(pointer.version)
        # A translator that follows looks at the pointer now and then, and again when its turn comes.
        if self._turns.leads and pointer.version != publisher.version:
            publisher.observe(pointer, None)
            self.stand_back()

    def _take_turn(self) -> None:
        if not self._turns.begin():
            return
        self._build.is_settled = False
        self._output.publisher.distrust()
        self._output.serving.begin_turn()
        self._inputs.catch_up.begin()
        self._schedule.add_at_once()

    def stand_back(self) -> None:
        """Another one committed: go on only when we have read of the log what it may have read."""
        self._inputs.catch_up.begin()
        self._schedule.stand_back()
