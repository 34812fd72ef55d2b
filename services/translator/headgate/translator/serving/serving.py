"""What is served of a table, beside what it would be: the pinned table, or those of a rollout.

The state stands in the current revision's manifest: the leader takes it from there, and after each commit by another
one, or by hand. In memory are the tables as images that follow the endpoints of today.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from headgate.common.errors import DecodeError, NotFound, StoreError
from headgate.common.heartbeats import Heartbeat
from headgate.common.snapshot import (
    Chunk,
    ChunkName,
    Manifest,
    Pin,
    Rollout,
    RolloutMove,
    RolloutPhase,
    Version,
)
from headgate.common.stores import SnapshotStore
from headgate.common.stores.chunk_entries import changed_entries
from headgate.common.stores.reading import read_chunks
from headgate.common.table_image import TableImage
from headgate.operations.committing.held_table import HeldTable
from headgate.operations.committing.manual import ChangeRequest
from headgate.operations.committing.publisher import Draft, TablePublisher
from headgate.translator import metrics
from headgate.translator.serving.following import Following
from headgate.translator.serving.rollout.decision import Moved, Outcome, RolloutPolicy, Tables, advance
from headgate.translator.serving.rollout.observer import Observer
from headgate.translator.translation import Translation

logger = logging.getLogger(__name__)


class HeldState(NamedTuple):
    """The tables beside the live one; without any of it the live table is what all serve."""

    pin: Pin | None = None
    rollout: Rollout | None = None
    served: HeldTable | None = None
    """What all replicas serve, or all but the chosen ones. Known without a pin too where tables are rolled out."""
    next: HeldTable | None = None
    """What the chosen ones serve, or served before they went back."""

    @property
    def following(self) -> list[HeldTable]:
        """Tables that follow the endpoints of today."""
        is_frozen = self.pin is not None and self.pin.is_frozen
        return [table for table in (self.served, self.next) if table is not None and not is_frozen]


class CommitPlan(NamedTuple):
    """What is to be committed, and what holds once it is."""

    draft: Draft
    held: HeldState
    moves: tuple[Moved, ...] = ()


class FleetView(NamedTuple):
    """What is seen of gateways, and when."""

    beats: Sequence[Heartbeat]
    """Of all workers of the table."""
    now: datetime
    now_s: float
    """The same, of a clock that never goes back."""


class Serving:
    """Decides what is served of one table."""

    def __init__(self, store: SnapshotStore, table: str, policy: RolloutPolicy, name: str) -> None:
        """Prepare.

        Args:
            store: where the tables are.
            table: name of it.
            policy: how it is rolled out.
            name: who says so.
        """
        self._store = store
        self._table = table
        self._policy = policy
        self._name = name
        self._held = HeldState()
        self._version: Version | None = None
        """Revision as of which this holds."""
        self._must_read = False
        self._following = Following()
        self._observer = Observer()

    @property
    def pin(self) -> Pin | None:
        """What the table is pinned to."""
        return self._held.pin

    @property
    def is_stepping(self) -> bool:
        """Whether gateways have to be looked at often."""
        rollout = self._held.rollout
        return rollout is not None and rollout.phase is RolloutPhase.STEPPING

    def begin_turn(self) -> None:
        """Take nothing for known: another one may have committed."""
        self._must_read = True

    def begin_translation(self) -> None:
        """Follow the endpoints of another translation from now on."""
        self._following.begin(self._held.following)

    async def adopt(self, publisher: TablePublisher, *, is_current: bool, leads: bool) -> None:
        """Take over what the current revision says; what was lost, or came back from a backup, says nothing.

        Args:
            publisher: reads it.
            is_current: whether this translator knows better than a store that is behind.
            leads: whether it commits. A follower knows what is pinned or rolled out, in case the store is lost
                with the one that leads, but not the tables of every revision.

        Raises:
            StoreError: not now.
        """
        await publisher.refresh()
        current = publisher.manifest
        if current is None or (publisher.is_behind and is_current):
            return
        if current.version == self._version and not self._must_read:
            return
        self._held = await self._read(current, leads=leads)
        self._version, self._must_read = current.version, False
        self._following.begin(self._held.following)

    async def _read(self, current: Manifest, *, leads: bool) -> HeldState:
        pin, rollout, known = current.pin, current.rollout, self._held
        if (pin and pin.is_same(known.pin)) or (rollout and rollout.is_same(known.rollout)):
            return known._replace(rollout=rollout)
        if pin is not None:
            logger.warning(
                "the table is pinned", extra={"pinned": str(pin.version), "by": pin.by, "reason": pin.reason}
            )
            try:
                return HeldState(pin, served=await self._read_table(current.chunks))
            except (NotFound, DecodeError) as error:
                raise StoreError(f"the table is pinned to {pin.version} and cannot be read: {error}") from error
        if rollout is None and not (self._policy.shares and leads):
            return HeldState()
        try:
            served = await self._read_table(current.chunks)
            return HeldState(None, rollout, served, await self._read_table(rollout.next) if rollout else None)
        except (NotFound, DecodeError) as error:
            logger.warning("what is served cannot be read; all take the live table", extra={"reason": str(error)})
            return HeldState()

    async def _read_table(self, names: Iterable[ChunkName]) -> HeldTable:
        return HeldTable.of(await read_chunks(self._store, names))

    def settle(self, translation: Translation) -> Iterator[None]:
        """Bring the translation and all tables up to date; yields after each piece of work."""
        return self._following.settle(translation)

    def may_begin(self, draft: Draft) -> bool:
        """Whether a rollout may begin with a draft of the live table, so that gateways have to be looked at first."""
        return bool(self._policy.shares) and not self.is_stepping and not _is_same(self._held.served, draft)

    def plan(self, draft: Draft, live: TableImage, sight: FleetView) -> CommitPlan:
        """Say what is to be committed.

        Args:
            draft: of the live table.
            live: its image.
            sight: of the gateways.
        """
        held = self._held
        if held.pin is not None and held.served is not None:
            return CommitPlan(replace(draft, chunks=held.served.image.chunks(), live=draft.chunks, pin=held.pin), held)
        if held.rollout is None and not self._policy.shares:
            return CommitPlan(draft, HeldState())
        if held.served is None or self._version is None:
            return CommitPlan(draft, HeldState(served=HeldTable(live.copy())))
        tables = Tables(self._version, _is_same(held.served, draft), _is_same(held.next, draft))
        look = self._observer.look(held.rollout, sight.beats, self._policy, sight.now_s)
        outcome = advance(held.rollout, tables, look, self._policy, sight.now)
        return self._compose(draft, live, outcome, sight.now)

    def _compose(self, draft: Draft, live: TableImage, outcome: Outcome, now: datetime) -> CommitPlan:
        served, following, rollout = self._held.served, self._held.next, outcome.rollout
        for moved in outcome.moves:
            if moved.what is RolloutMove.DONE:
                served = following
            elif moved.what is RolloutMove.BEGUN:
                following = HeldTable(live.copy())
        request = ChangeRequest(self._name, now)
        causes = tuple(request.as_cause(self._table, moved.what, moved.note) for moved in outcome.moves)
        draft = replace(draft, causes=draft.causes + causes, cause_count=draft.cause_count + len(causes))
        if rollout is None or served is None or following is None:
            is_kept = served is not None and _is_same(served, draft)
            return CommitPlan(draft, HeldState(served=served if is_kept else HeldTable(live.copy())), outcome.moves)
        chunks, next_chunks = served.image.chunks(), following.image.chunks()
        if any(moved.what is RolloutMove.BEGUN for moved in outcome.moves):
            rollout = rollout.model_copy(update={"changed": changed_entries(chunks, next_chunks)})
        draft = replace(draft, chunks=chunks, rollout=rollout, next=next_chunks, live=draft.chunks)
        return CommitPlan(draft, HeldState(None, rollout, served, following), outcome.moves)

    def committed(self, plan: CommitPlan, current: Manifest | None) -> None:
        """Take a plan for what holds, which is the current revision now."""
        rollout = current.rollout if current else None
        self._held = plan.held._replace(rollout=rollout)
        self._version = current.version if current else None
        self._following.go_on(self._held.following)
        for moved in plan.moves:
            is_back = moved.what is RolloutMove.WENT_BACK
            logger.log(
                logging.WARNING if is_back else logging.INFO,
                "the fleet went back from a table that was rolled out" if is_back else "a table is rolled out",
                extra={"table": self._table, "move": moved.what, "note": moved.note, "version": str(self._version)},
            )
            metrics.ROLLOUT_MOVES.labels(moved.what).inc()


def show(current: Manifest | None) -> None:
    """Have the metrics say what the current revision does."""
    rollout = current.rollout if current else None
    is_stepping = rollout is not None and rollout.phase is RolloutPhase.STEPPING
    metrics.PINNED.set(current is not None and current.pin is not None)
    metrics.ROLLOUT_STEP.set(rollout.step + 1 if rollout and is_stepping else 0)
    metrics.HELD_BACK.set(rollout is not None and not is_stepping)


def _is_same(table: HeldTable | None, draft: Draft) -> bool:
    return table is not None and _digests(table.image.chunks()) == _digests(draft.chunks)


def _digests(chunks: Iterable[Chunk]) -> list[str]:
    return [chunk.digest for chunk in chunks]
