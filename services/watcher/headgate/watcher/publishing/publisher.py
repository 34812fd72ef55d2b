"""From a source to the delta log: publishes what differs, in the order of each object, for as long as it takes.

Two tasks: one takes in what the source reports and never waits for the log, the other makes the log agree. When the
log is away the present state of each object waits in memory; when it is back, or another one stands in its place, its
state is read and compared. A marker for a kind goes out only after everything that was listed with it.

Of two watchers of one cluster one publishes. The other takes in as much and keeps it, so that there is nothing to list
when its turn comes: it compares what it has with the log and publishes the difference. Where the log is ahead of what
it has seen, it lists the kind again before it says anything. While it waits it looks now and then whether the log has
what it saw, so that both know how old the oldest change is that is not published.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Literal

from nacl.public import PublicKey

from headgate.common.deltas import ClusterAnnouncement, EncodedDelta, KindName
from headgate.common.errors import Conflict, StoreError, StoreUnavailable
from headgate.common.leadership.leadership import Leadership, Sole, run_while_leading
from headgate.common.problems import Problem
from headgate.common.resources import NAMESPACE, ObjectRef, ResourceKind
from headgate.common.service.tasks import run_together
from headgate.common.service.telemetry import current_traceparent, span_from
from headgate.common.stores import DeltaLogReader, DeltaLogWriter, LogPosition
from headgate.watcher.metrics import DELTAS_PUBLISHED, OLDEST_UNPUBLISHED, PUBLISH_SECONDS, UNPUBLISHED
from headgate.watcher.publishing.intake import AuthorOf, Intake
from headgate.watcher.publishing.signs_of_life import SIGN_OF_LIFE_S, SignsOfLife
from headgate.watcher.sources import Source, SourceEvent

BULK = 16
"""A list that differs in this many objects or more goes to the log in batches, without a check of each."""
BATCH = 1000
WINDOW = 64
"""Changes of different objects that are on their way to the log at once."""
POSITION_S = 5.0
"""Between two looks at whether the log is still the same one."""
TROUBLES = 8
"""Most that are announced."""
SILENT_AFTER = timedelta(seconds=3 * SIGN_OF_LIFE_S)
"""A cluster of which nothing was announced for so long has no watcher."""
UNSURE = timedelta(seconds=30)
"""Namespaces that cannot be listed for longer than this hold back no other kind."""
_SIGN_OF_A_CLUSTER = "kube-system"
COMPARE_S = 600.0
"""Between two comparisons with a log that another watcher may write to."""
FOLLOW_S = 10.0
"""Between two looks of one that follows at whether what it saw is published."""
KEEP_DELETIONS = timedelta(minutes=5)
"""Longer than the cluster is without a watcher that publishes, when one takes over from another."""
_FIRST_WAIT_S, _LAST_WAIT_S = 0.05, 5.0

_log = logging.getLogger(__name__)

Relist = Callable[[ResourceKind], bool]
"""Asks the source to list a kind again; returns whether it will."""


class _Deposed(Exception):
    """Another watcher publishes by now."""


class DeltaPublisher:
    """Publishes one cluster's objects."""

    def __init__(
        self,
        source: Source,
        log_writer: DeltaLogWriter,
        cluster: str,
        recipients: Sequence[PublicKey],
        *,
        origin: Literal["kubernetes", "manifests"],
        instance: str = "",
        log_reader: DeltaLogReader | None = None,
        author_of: AuthorOf | None = None,
        leadership: Leadership | None = None,
        relist: Relist | None = None,
        troubles: Callable[[], Sequence[str]] = tuple,
        observe: Callable[[SourceEvent], Awaitable[None]] | None = None,
    ) -> None:
        """Prepare to publish.

        Args:
            source: what is read.
            log_writer: where it goes.
            cluster: name that the objects get in the log.
            recipients: public keys of the gateways, to which Secrets are sealed.
            origin: kind of source, for the announcement.
            instance: name of this watcher, for the announcement.
            log_reader: asked now and then whether the log is still the same one; without it only reconnections and
                errors show that.
            author_of: says who changed an object; its managedFields by default.
            leadership: whether this watcher is the one that publishes; None: it is the only one.
            relist: needed where another watcher may write too.
            observe: gets each event of the source too, whole.
            troubles: says what went wrong with the API server of late, for the announcement.
        """
        self._leadership = leadership or Sole()
        self._term = 0
        self._relist = relist
        self._troubles, self._observe = troubles, observe
        self._source, self._log_writer, self._log_reader = source, log_writer, log_reader
        self._cluster, self._origin, self._instance = cluster, origin, instance
        self._wake = asyncio.Event()
        self._intake = Intake(
            source.kinds, cluster, recipients, author_of, self._wake.set, others_write=relist is not None
        )
        self.ledger = self._intake.ledger
        """What the log should have, beside what it has."""
        self._must_compare = True
        self._must_announce = True
        self._marked: set[ResourceKind] = set()
        self._unsure_since: datetime | None = None
        """Since when the log may be another cluster's."""
        self._signs_of_life = SignsOfLife(
            log_writer, log_reader, self._leadership, self._announcement, lambda: not self._must_announce
        )
        OLDEST_UNPUBLISHED.set_function(self._oldest_unpublished_s)
        UNPUBLISHED.set_function(lambda: self.ledger.pending)

    async def run(self) -> None:
        """Publish until cancelled."""
        await run_together(
            self._take_in(),
            self._send_for_ever(),
            self._look_at_log(),
            self._look_whether_published(),
            run_while_leading(self._leadership, self._compare_now_and_then),
            self._signs_of_life.run(),
        )

    def compare_with_log(self) -> None:
        """Read what the log got since it was read, and publish what it lacks; call it after every reconnection."""
        self._must_compare = self._must_announce = True
        self._wake.set()

    def compare_with_all_of_log(self) -> None:
        """Read the whole state of the log again and publish what it lacks: somebody may have removed some of it."""
        self._log_writer.forget_state(self._cluster)
        self.compare_with_log()

    def readiness(self) -> str | None:
        """Readiness check: content once every kind was listed and is in the log, if it is for us to put it there."""
        if not self._leadership.is_leader:
            waiting = self._intake.unlisted()
            return f"not listed yet: {', '.join(map(str, waiting))}" if waiting else None
        waiting = [kind for kind in self._source.kinds if kind not in self._marked]
        return f"not published yet: {', '.join(map(str, waiting))}" if waiting else None

    @property
    def is_listed(self) -> bool:
        """Whether everything is known that there is to publish."""
        return not self._intake.unlisted()

    @property
    def refused(self) -> Sequence[tuple[ObjectRef, Problem]]:
        """Objects that could not be published; what was published of them before stays in force."""
        return self._intake.refused

    @property
    def unpublished_since(self) -> datetime | None:
        """When the oldest change was seen that is not in the log; None: all are."""
        return self.ledger.pending_since

    def _oldest_unpublished_s(self) -> float:
        since = self.unpublished_since
        return max(0.0, (_now() - since).total_seconds()) if since else 0.0

    async def _take_in(self) -> None:
        async for event in self._source.events():
            await self._intake.note(event)
            if self._observe is not None:
                await self._observe(event)
            if not self._leadership.is_leader:
                self._must_compare = True
            self._wake.set()

    # Sending

    async def _send_for_ever(self) -> None:
        wait_s, complaint = _FIRST_WAIT_S, ""
        while True:
            try:
                await self._send_once()
                if complaint:
                    _log.info("the log takes deltas again")
                wait_s, complaint = _FIRST_WAIT_S, ""
                await self._wake.wait()
            except _Deposed:
                if not self._leadership.is_leader:
                    await self._leadership.until_following()
                await self._leadership.until_leading()
            except StoreUnavailable as error:
                self._must_compare = True
                if not complaint:
                    complaint = str(error)
                    _log.warning("the log takes no deltas, trying on", extra={"reason": complaint})
                await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
                wait_s = min(_LAST_WAIT_S, wait_s * 2)

    async def _send_once(self) -> None:
        self._wake.clear()
        self._begin_turn()
        if self._must_compare:
            await self._compare()
        if not await self._is_our_log():
            return
        if self._must_announce:
            await self._announce()
        self._find_out(asked=self._intake.doubtful)
        due, self._intake.due = self._intake.due, set()
        is_list, self._intake.was_listed = self._intake.was_listed or self._intake.listing is not None, False
        try:
            await self._send(is_list=is_list)
            self._intake.due |= due & self._intake.doubtful
            for kind in sorted(due - self._intake.doubtful, key=self._source.kinds.index):
                self._check_turn()
                await self._log_writer.mark_synced(self._intake.marks[kind])
                self._marked.add(kind)
        except BaseException:
            self._intake.due |= due
            self._intake.was_listed |= is_list
            raise

    def _begin_turn(self) -> None:
        """A newly elected publisher reads what others wrote to the log since it looked last."""
        if self._leadership.is_leader and self._term != self._leadership.term:
            self._term = self._leadership.term
            self._must_compare = self._must_announce = True
            self._intake.doubtful.clear()
            self.ledger.begin_turn()
        self._check_turn()

    def _check_turn(self) -> None:
        """Go on only as the one that publishes, without a break.

        Raises:
            _Deposed: it is another one's turn, or was meanwhile.
        """
        if not self._leadership.is_leader or self._term != self._leadership.term:
            raise _Deposed

    async def _compare(self) -> None:
        self._must_compare = False
        try:
            state = await self._log_writer.read_state(self._cluster)
        except BaseException:
            self._must_compare = True
            raise
        lost = self.ledger.load(state)
        self._intake.was_listed |= not state
        self._find_out()
        if lost:
            _log.warning("the log has lost what it held: publishing everything again")
            self._must_announce = self._intake.was_listed = True
            self._wake.set()

    def _find_out(self, *, asked: Collection[ResourceKind] = ()) -> None:
        """Have kinds listed of which the log may know better than we do; those `asked` for are listed soon."""
        for name in self.ledger.doubt():
            kind = self._intake.kind_of(name)
            if kind is None or self._relist is None or (kind not in asked and not self._relist(kind)):
                self.ledger.trust(name)  # no service reads it any more
            else:
                self._intake.doubtful.add(kind)

    async def _is_our_log(self) -> bool:
        """Whether what the log has under our cluster's name is of our cluster; False: that is not known yet.

        A cluster is told by the uid of a namespace that all have. Under the name of another one everything that is
        there would be taken for deleted.

        Raises:
            StoreUnavailable: it is of another cluster, whose watcher is still there.
        """
        ref = ObjectRef(self._cluster, NAMESPACE.group, NAMESPACE.resource, "", _SIGN_OF_A_CLUSTER)
        logged, own = self.ledger.logged(ref), self.ledger.wanted(ref)
        if NAMESPACE not in self._source.kinds or logged is None or logged.is_deleted:
            return True
        if own is None:
            self._unsure_since = self._unsure_since or _now()
            return NAMESPACE in self._intake.marks or _now() - self._unsure_since > UNSURE
        if own.uid == logged.uid or self._log_reader is None:
            return True
        said = await self._log_reader.announcement(self._cluster)
        if said is None or _now() - said.announced_at > SILENT_AFTER:
            return True
        raise StoreUnavailable(
            f"cluster {self._cluster!r} is another one there, and its watcher {said.instance} is at work: "
            "give each cluster a name of its own (--cluster)"
        )

    async def _announce(self) -> None:
        await self._log_writer.announce(self._announcement())
        self._must_announce = False
        self._intake.due |= self._intake.marks.keys()

    def _announcement(self) -> ClusterAnnouncement:
        return ClusterAnnouncement(
            cluster=self._cluster,
            source=self._origin,
            instance=self._instance,
            kinds=tuple(KindName(group=kind.group, resource=kind.resource) for kind in self._source.kinds),
            announced_at=_now(),
            heard_at=self._source.heard_at,
            away_since=self._source.away_since,
            unpublished=self.ledger.pending,
            unpublished_since=self.unpublished_since,
            troubles=tuple(self._troubles())[:TROUBLES],
        )

    async def _send(self, *, is_list: bool) -> None:
        """Send what is pending now, and again what conflicts have left."""
        refs = self.ledger.take()
        try:
            if is_list and len(refs) >= BULK:
                # What is left, too large or overtaken by another watcher, is looked at one by one.
                refs = await self._append_all(refs)
            while refs:
                conflicts: list[EncodedDelta] = []
                for start in range(0, len(refs), WINDOW):
                    self._check_turn()
                    conflicts += await self._append_each(refs[start : start + WINDOW])
                await self._resolve(conflicts)
                refs = [delta.ref for delta in conflicts]
        except BaseException:
            self.ledger.put_back(refs)  # those that are in the log by now make no delta
            raise

    async def _append_all(self, refs: Sequence[ObjectRef]) -> list[ObjectRef]:
        """Append what differs of each object in batches; return those that the log's writer left out."""
        all_left_out: list[ObjectRef] = []
        with span_from(None, "publish list"):
            traceparent = current_traceparent()
            for start in range(0, len(refs), BATCH):
                self._check_turn()
                batch = refs[start : start + BATCH]
                deltas = [delta for ref in batch if (delta := self.ledger.delta(ref, traceparent))]
                expected = [self.ledger.expected(delta.ref) for delta in deltas]
                sequences = await self._log_writer.append_all(deltas, expected) if deltas else []
                left_out = [delta.ref for delta, sequence in zip(deltas, sequences, strict=True) if not sequence]
                counts: Counter[tuple[str, str]] = Counter()
                for delta, sequence in zip(deltas, sequences, strict=True):
                    if sequence:
                        self.ledger.confirm(delta, sequence)
                        counts[delta.ref.resource, delta.operation.value] += 1
                for labels, count in counts.items():
                    DELTAS_PUBLISHED.labels(*labels).inc(count)
                for ref in set(batch).difference(left_out):
                    self.ledger.settle(ref)
                all_left_out += left_out
        return all_left_out

    async def _append_each(self, refs: Sequence[ObjectRef]) -> list[EncodedDelta]:
        """Append what differs of each object, side by side; return what lost against another writer."""
        results = await asyncio.gather(*map(self._append, refs), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if isinstance(result, EncodedDelta)]

    async def _append(self, ref: ObjectRef) -> EncodedDelta | None:
        delta = self.ledger.delta(ref)
        if delta is not None:
            with span_from(delta.traceparent, f"publish {ref.resource}") as span:
                span.set_attribute("headgate.object", str(ref))
                delta = delta._replace(traceparent=current_traceparent())
                try:
                    self._confirm(delta, await self._log_writer.append(delta, self.ledger.expected(ref)))
                except Conflict:
                    return delta
                except StoreUnavailable:
                    raise
                except StoreError as error:
                    self._intake.refuse(ref, Problem(reason="NotPublished", message=str(error)))
        self.ledger.settle(ref)
        return None

    async def _resolve(self, conflicts: Sequence[EncodedDelta]) -> None:
        if conflicts:
            counted_on = {delta.ref: self.ledger.expected(delta.ref) for delta in conflicts}
            await self._compare()
            if any(self.ledger.expected(ref) == sequence for ref, sequence in counted_on.items()):
                self._log_writer.forget_state(self._cluster)  # a delta that we count on was removed
                await self._compare()
            self._wake.set()  # it may have found more than these
        for delta in conflicts:
            if self.ledger.yield_to_newer(delta):
                _log.debug("somebody else published a later state", extra={"object": str(delta.ref)})

    def _confirm(self, delta: EncodedDelta, sequence: int) -> None:
        self.ledger.confirm(delta, sequence)
        DELTAS_PUBLISHED.labels(delta.ref.resource, delta.operation.value).inc()
        PUBLISH_SECONDS.observe(max(0.0, (_now() - delta.observed_at).total_seconds()))

    # Looking after the log

    async def _look_at_log(self) -> None:
        """Notice a log that was lost or made again although the connection held."""
        known: LogPosition | None = None
        while self._log_reader is not None:
            try:
                position: LogPosition | None = await self._log_reader.position()
            except StoreError:
                position = None  # the sender hears of it too, and says so
            if known and position and _is_another(known, position):
                self.compare_with_log()
            known = position or known
            await asyncio.sleep(POSITION_S)
        await asyncio.Event().wait()

    async def _look_whether_published(self) -> None:
        """While another watcher publishes, learn from the log what of the changes seen here is published."""
        while True:
            await asyncio.sleep(FOLLOW_S * random.uniform(0.8, 1.2))  # noqa: S311 - not a secret
            if self._leadership.is_leader or not self.ledger.pending:
                continue
            with suppress(StoreError):  # what was read stays, and counts at the next look
                state = await self._log_writer.read_state(self._cluster)
                if not self._leadership.is_leader:
                    self.ledger.follow(state, _now() - KEEP_DELETIONS)

    async def _compare_now_and_then(self) -> None:
        """Notice what another watcher wrote that took itself for the one that publishes, as after standing still."""
        self._wake.set()
        while True:
            await asyncio.sleep(COMPARE_S * random.uniform(0.8, 1.2))  # noqa: S311 - not a secret
            if self._relist is not None:
                self._log_writer.forget_state(self._cluster)
                self._must_compare = True
                self._wake.set()


def _is_another(known: LogPosition, position: LogPosition) -> bool:
    return position.incarnation != known.incarnation or position.last_sequence < known.last_sequence


def _now() -> datetime:
    return datetime.now(UTC)
