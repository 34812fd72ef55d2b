"""The table as it is made of the inputs: translated, then committed and posted, or kept ready for our turn."""

from collections.abc import Callable

from headgate.common.service.telemetry import span_from
from headgate.common.stores import LogReplay
from headgate.translator.leading.inputs import Inputs
from headgate.translator.leading.output import Output
from headgate.translator.translation import Translation


class Build:
    """One revision after another of one table."""

    def __init__(
        self,
        new_translation: Callable[[], Translation],
        translation: Translation,
        inputs: Inputs,
        output: Output,
        leads: Callable[[], bool],
    ) -> None:
        """Begin with nothing published.

        Args:
            new_translation: makes an empty translation, for a log that begins again.
            translation: what the inputs are taken into.
            inputs: what was read.
            output: where revisions and statuses go.
            leads: whether it is our turn; asked before each step, as it may end between two.
        """
        self._new_translation = new_translation
        self.translation = translation
        """The translation of now; another one after the log began again."""
        self._inputs, self._output, self._leads = inputs, output, leads
        self.is_current = False
        """Whether a table was published, found to be current already, or would be if we led."""
        self.is_settled = False
        """Whether all that was read is translated, and published by us or found to be so."""
        self.known: frozenset[str] = frozenset()
        """Clusters of which everything has been translated once."""

    def begin(self, replay: LogReplay) -> None:
        """Read another log, or the same one from its beginning; the published table stays until that is read."""
        publisher, is_another = self._output.publisher, self._inputs.is_another_log(replay)
        if replay.went_back:
            publisher.outdate()
        if is_another:
            publisher.distrust()  # tables are lost with the log more often than not
        self.translation = self._new_translation()
        self._inputs.begin(replay, self.translation, publisher.manifest, is_current=self.is_current)
        self._output.begin_translation(is_board_lost=is_another)
        self.is_settled = False
        self.known = frozenset()

    async def publish(self) -> bool:
        """Bring the table up to date; return False if the log just got decisions again that have to be read first.

        Raises:
            Conflict: another translator committed.
            StoreError: not now.
        """
        inputs, output, translation = self._inputs, self._output, self.translation
        with span_from(inputs.causes.traceparent, "translate"):
            await output.serving.adopt(output.publisher, is_current=self.is_current, leads=self._leads())
            if self._leads() and output.publisher.is_behind:
                await inputs.confirmation.check(inputs.intake.last_read)
            if await inputs.write_back_decisions(output.publisher.manifest, leads=self._leads()):
                return False
            self.is_settled = False
            await output.translate(translation)
            if await output.recorder.recall(translation):
                await output.translate(translation)
            self.known = translation.active_clusters
            if self._leads():
                inputs.catch_up.end()
                await output.commit(translation, inputs)
                self._settle()
            else:
                output.stay_warm(translation, inputs)
                self._note_current()
        return True

    def _settle(self) -> None:
        """Report a revision that is committed."""
        self.is_settled = True
        self._note_current()
        traceparent = self._inputs.causes.traceparent
        self._inputs.begin_causes(self._output.publisher.manifest)
        self._output.recorder.look_after(self.translation.world)
        was_busy = self._output.may_judge
        self._output.post(self.translation, traceparent)
        if was_busy:  # changes that never pause would leave it no other time
            self.post_some()

    def _note_current(self) -> None:
        self.is_current = True
        self._inputs.end_recovery(self._output.publisher)
        self._output.measure(self.translation)

    def post_again(self) -> None:
        """Report again what was published last; what is not published yet is reported when it is."""
        if self._leads() and self.is_settled:
            self._output.post(self.translation, None)

    @property
    def has_unposted(self) -> bool:
        """Whether there is more to say of what was published last."""
        return self._leads() and self.is_settled and self._output.may_judge

    def post_some(self) -> None:
        """Report some more of it: a few milliseconds of work."""
        self._output.post_some(self.translation)
