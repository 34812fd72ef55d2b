"""Changes of a table by hand: a new revision, committed by the process that a person asks.

What is wanted stands in the manifest, so it is as atomic and as lasting as the table, moves with a compare-and-set
against whatever the translator commits at that moment, and needs no translator to be running. The translator finds it
there and keeps it from then on.

Rejected: asking the translator. Going back must work above all when something is wrong with the translator.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NamedTuple

from headgate.common.errors import Conflict, NotFound
from headgate.common.snapshot import TABLE_KIND, Cause, Manifest, Version
from headgate.common.stores import SnapshotStore
from headgate.operations.committing.publisher import Draft, TablePublisher
from headgate.operations.committing.retention import Retention

ATTEMPTS = 20
"""A translator that follows a busy cluster commits ten times a second; it loses some of these races."""


class ChangeRequest(NamedTuple):
    """A change of a table that a person asks for: who, when, and why."""

    by: str
    at: datetime
    reason: str = ""

    def as_cause(self, table: str, operation: str, what: str = "") -> Cause:
        """Return it as the cause of a revision."""
        note = ": ".join(part for part in (what, self.reason) if part)
        return Cause(
            cluster="",
            kind=TABLE_KIND,
            namespace="",
            name=table,
            operation=operation,
            sequence=0,
            by=self.by,
            at=self.at,
            note=note,
        )


class ManualCommits:
    """Commits to one table."""

    def __init__(self, store: SnapshotStore, table: str, served: Version | None) -> None:
        """Prepare.

        Args:
            store: where the table is.
            table: its name.
            served: greatest version in the gateways' heartbeats, read before anything of the store.
        """
        self.store = store
        self.table = table
        self._served = served

    async def current(self) -> Manifest:
        """Return the current revision.

        Raises:
            NotFound: the table was never published.
            StoreUnavailable: not now.
        """
        return (await self._begin())[1]

    async def commit(self, compose: Callable[[Manifest], Awaitable[Draft]]) -> Manifest:
        """Make what is composed of the current revision the next one, as often as it takes; return that.

        Raises:
            NotFound: the table was never published, or a chunk that is needed is gone.
            Conflict: others commit all the time.
            StoreError: the store did not do it.
        """
        for _ in range(ATTEMPTS):
            publisher, current = await self._begin()
            draft = await compose(current)
            try:
                done = await publisher.publish(draft)
            except Conflict:
                continue
            if done is not None and publisher.manifest is not None:
                return publisher.manifest
        raise Conflict(f"table {self.table}: others commit all the time; try again")

    async def _begin(self) -> tuple[TablePublisher, Manifest]:
        publisher = TablePublisher(self.store, self.table, Retention())
        await publisher.read()
        publisher.observe(publisher.pointer, self._served)
        if publisher.manifest is None:
            raise NotFound(f"table {self.table} was never published")
        return publisher, publisher.manifest


def next_of(current: Manifest, cause: Cause, draft: Draft) -> Draft:
    """Return a draft that follows a revision for this cause."""
    return Draft(
        draft.chunks,
        causes=(cause,),
        cause_count=1,
        inputs=current.inputs,
        log=current.log,
        last_read=current.last_read,
        selection=current.selection,
        pin=draft.pin,
        rollout=draft.rollout,
        next=draft.next,
        live=draft.live,
        decisions=current.decisions,
    )
