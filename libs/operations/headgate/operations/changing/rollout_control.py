"""Taking a rollout's table everywhere, or back, by hand."""

from headgate.common.snapshot import Manifest, Rollout, RolloutMove, RolloutPhase, Version
from headgate.common.stores import SnapshotStore
from headgate.common.stores.reading import read_chunks
from headgate.operations.committing.manual import ChangeRequest, ManualCommits, next_of
from headgate.operations.committing.publisher import Draft
from headgate.operations.errors import NothingToDo


class RolloutControl:
    """Decides a rollout of one table in the translator's place."""

    def __init__(self, store: SnapshotStore, table: str, served: Version | None) -> None:
        """Prepare; takes what `ManualCommits` does."""
        self._hand = ManualCommits(store, table, served)
        self._store = store
        self._table = table

    async def promote(self, request: ChangeRequest) -> Manifest:
        """Serve the next table everywhere, also one that the fleet went back from.

        Raises:
            NothingToDo: nothing is rolled out.
            NotFound: the table was never published, or a chunk is gone.
            Conflict: others commit all the time.
            StoreError: the store did not do it.
        """

        async def compose(current: Manifest) -> Draft:
            rollout = self._rollout_of(current)
            cause = request.as_cause(self._table, RolloutMove.PROMOTED, f"of {rollout.target} everywhere")
            return next_of(current, cause, Draft(await read_chunks(self._store, rollout.next)))

        return await self._hand.commit(compose)

    async def go_back(self, request: ChangeRequest) -> Manifest:
        """Have all replicas serve what the others do, until another table is wanted; raises what `promote` does."""

        async def compose(current: Manifest) -> Draft:
            rollout = self._rollout_of(current)
            if rollout.phase is RolloutPhase.HELD:
                raise NothingToDo(f"table {self._table} went back from {rollout.target} already: {rollout.reason}")
            cause = request.as_cause(self._table, RolloutMove.WENT_BACK, f"from {rollout.target}")
            served, following, live = [
                await read_chunks(self._store, names) for names in (current.chunks, rollout.next, current.live)
            ]
            back = rollout.gone_back(request.at, request.reason or "no reason was given", request.by)
            return next_of(current, cause, Draft(served, rollout=back, next=following, live=live))

        return await self._hand.commit(compose)

    def _rollout_of(self, current: Manifest) -> Rollout:
        if current.rollout is None:
            raise NothingToDo(f"nothing of table {self._table} is rolled out: all replicas serve one table")
        return current.rollout
