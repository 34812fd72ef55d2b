"""What objects' authors are told: gathers what is known of each object, and says when it is worth telling.

The loop says which objects may stand differently, and what gateways serve. An object whose present state is in a new
revision is told of when all live replicas serve it, or when that takes too long; what is wrong with it, at once.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum, auto
from typing import NamedTuple

from headgate.common.problems import Severity, worst
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import Manifest, Rollout, Version
from headgate.common.status import LoadBalancerAddress
from headgate.common.stores import StatusBoard
from headgate.translator.assembly.conditions import ObjectStatus, judge
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.serving.fleet import Fleet
from headgate.translator.status.conditions import Facts
from headgate.translator.status.desired import DesiredStatus, disown, has_news, report
from headgate.translator.status.poster import StatusPoster
from headgate.translator.translation import Translation

PATIENCE_S = 5.0
"""Replicas that need longer for a revision are told of as lagging."""
FEW = 32
"""Objects that were touched at once, up to this many, are taken for a change that somebody made."""
SLICE_S = 0.003
"""Work at most this long before other tasks get their turn."""


class Published(NamedTuple):
    """What is served, as far as the store knows."""

    version: Version | None
    pinned: Version | None
    """Old revision that the table is pinned to."""
    rollout: Rollout | None = None

    @classmethod
    def of(cls, version: Version | None, manifest: Manifest | None) -> "Published":
        """Take it from the current revision."""
        if manifest is None:
            return cls(version, None)
        return cls(version, manifest.pin.version if manifest.pin else None, manifest.rollout)

    @property
    def held_at(self) -> Version | None:
        """Revision whose routes all replicas have, or all but those that a rollout names; None: the current one."""
        return self.rollout.base if self.rollout else self.pinned

    def stands_as(self, other: "Published") -> bool:
        """Whether what is rolled out stands as before."""
        if self.rollout is None or other.rollout is None:
            return self.rollout is other.rollout
        return self.rollout.is_same(other.rollout)


class Standing(NamedTuple):
    """How an object that is ours stands in one revision of the table. A hundred thousand wait after a start."""

    fragment: Fragment
    condition: ObjectStatus
    content: str
    """Digest of what is served of it."""
    published: Published

    def facts(self) -> Facts:
        """Return what its status is made of."""
        fragment = self.fragment
        return Facts(
            *(fragment.identity, self.condition, fragment.stand_in, self.content),
            *self.published,
            parts=fragment.parts,
            listeners=fragment.listener_reports,
            addresses=fragment.addresses,
            leaves_addresses=fragment.leaves_addresses,
            said=fragment.said,
            features=fragment.features,
            attached_listener_sets=fragment.attached_listener_sets,
        )


class Absence(Enum):
    """Why nothing is said of how an object stands."""

    UNKNOWN = auto()
    """Its cluster is not translated now: its status stays as it is."""
    DISOWNED = auto()
    """It is not ours, or no longer."""
    GONE = auto()


Wish = Standing | Absence


class _Awaited(NamedTuple):
    """An object that not all replicas serve as it is."""

    revision: Version
    until: float
    """When it is to be told of all the same."""
    told: tuple[str, ...] | None
    """Replicas that were behind when that was told; None: nothing was told."""


class Statuses:
    """The statuses of all objects of one table."""

    def __init__(
        self,
        board: StatusBoard,
        table: str,
        on_board: Callable[[Iterable[ObjectRef]], Awaitable[None]],
        *,
        may_post: Callable[[], bool] = lambda: True,
        calm: asyncio.Event | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; `run` does the work.

        Args:
            board: where statuses go.
            table: of which they are.
            on_board: told of every object that has a status from before; `touch` has to follow.
            may_post: whether this translator is the one that posts.
            calm: set while no revision is being made: statuses wait for that.
            clock: seconds.
        """
        self._poster: StatusPoster[Wish] = StatusPoster(board, table, self._desire, on_board, may_post, calm)
        self._addresses: tuple[LoadBalancerAddress, ...] | None = None
        self._fleet = Fleet()
        self._published = Published(None, None)
        self._clock = clock
        self._touched: dict[ObjectRef, None] = {}
        self._unjudged: dict[ObjectRef, None] = {}
        self._awaited: dict[ObjectRef, _Awaited] = {}
        self._severities: dict[ObjectRef, Severity] = {}

    async def run(self) -> None:
        """Post what is wanted, for ever."""
        await self._poster.run()

    @property
    def pending(self) -> int:
        """Objects whose status is not posted yet."""
        return self._poster.pending + len(self._unjudged)

    @property
    def known(self) -> Iterable[ObjectRef]:
        """Objects that have a status."""
        return self._poster.known

    @property
    def is_awaiting(self) -> bool:
        """Whether something is told as soon as gateways serve it."""
        return bool(self._awaited and self._fleet.replicas)

    def counts(self) -> dict[Severity, int]:
        """Return how many objects have problems, by the worst of each."""
        worst = list(self._severities.values())
        return {severity: worst.count(severity) for severity in Severity}

    def touch(self, refs: Iterable[ObjectRef]) -> None:
        """Say that objects may stand differently."""
        self._touched.update(dict.fromkeys(refs))

    def forget_touched(self) -> None:
        """Say nothing of what was touched: another one does, and this one begins again when its turn comes."""
        self._touched.clear()
        self._unjudged.clear()

    def begin(self, *, is_board_lost: bool = False) -> None:
        """Say that the world begins again: whatever has a status may stand differently.

        Args:
            is_board_lost: whether what was posted may be there no more, or in an older version.
        """
        if is_board_lost:
            self._poster.doubt_board()
        self._severities.clear()
        self._unjudged.clear()
        self.touch(self._poster.known)

    def observe(self, fleet: Fleet, addresses: tuple[LoadBalancerAddress, ...] | None) -> None:
        """Take what gateways serve and announce."""
        if addresses is not None and addresses != self._addresses:
            self._addresses = addresses
            self.touch(self._poster.known)
        least = fleet.least
        if fleet != self._fleet and least is not None and (self._fleet.least is None or least < self._fleet.least):
            self.touch(self._served_after(least))
        if fleet.closed != self._fleet.closed:
            self.touch(self._poster.known)
        self._fleet = fleet
        self.touch(self._awaited_news())

    def _awaited_news(self) -> list[ObjectRef]:
        """Objects that are served by all now, or by others than was told. After a start all are awaited: of most there
        is nothing to say, look after look. One whose status is on its way is judged by what is known by then.
        """
        now, fleet, waiting = self._clock(), self._fleet, self._poster.waiting
        lacking = {revision: fleet.lacking(revision) for revision in {each.revision for each in self._awaited.values()}}

        def is_news(awaited: _Awaited) -> bool:
            lagging = lacking[awaited.revision]
            is_served = bool(fleet.replicas) and not lagging
            return is_served or (now >= awaited.until and lagging != awaited.told)

        return [ref for ref, awaited in self._awaited.items() if ref not in waiting and is_news(awaited)]

    def _served_after(self, version: Version) -> list[ObjectRef]:
        """Objects that were said to be served everywhere, in a revision that a replica does not have."""
        found = ((ref, self._poster.posted(ref)) for ref in list(self._poster.known))
        return [ref for ref, wanted in found if wanted and wanted.revision and wanted.revision > version]

    def post(self, translation: Translation, published: Published, traceparent: str | None) -> None:
        """Say what is wanted for the objects that were touched. Everything that was translated is published.

        Of many that were touched at once, as after a start, `judge_some` says it later.
        """
        if published.pinned != self._published.pinned:
            self.touch(self._poster.known)
        elif not published.stands_as(self._published):
            self.touch((*self._awaited, *self._poster.waiting))  # what all serve stays so, whatever is rolled out
        self._published = published
        for cluster in sorted(translation.active_clusters | translation.left_out):
            self._poster.watch(cluster)
        refs, self._touched = self._touched, {}
        if len(refs) > FEW:
            self._unjudged.update(refs)
            return
        for ref in refs:
            self._unjudged.pop(ref, None)
            self._poster.want(ref, self._wish(ref, translation), traceparent, is_urgent=True)

    @property
    def unjudged(self) -> int:
        """Objects of which `judge_some` has to say what is wanted."""
        return len(self._unjudged)

    def judge_some(self, translation: Translation) -> None:
        """Say what is wanted for some of the objects that were touched with many others: 10 ms of work at most.

        To be called while everything that was translated is published. Objects with something wrong go first to the
        board, as what is changed meanwhile does.
        """
        end = time.perf_counter() + SLICE_S
        while self._unjudged:
            ref, _ = self._unjudged.popitem()
            wish = self._wish(ref, translation)
            self._poster.want(ref, wish, is_urgent=self._severities.get(ref) is Severity.ERROR)
            if time.perf_counter() >= end:
                return

    def _wish(self, ref: ObjectRef, translation: Translation) -> Wish:
        self._severities.pop(ref, None)
        fragment = translation.assembly.fragments.get(ref)
        if not translation.selection.selects(ref):
            self._awaited.pop(ref, None)
            return Absence.DISOWNED
        if ref.cluster not in translation.active_clusters:
            return Absence.UNKNOWN
        if fragment is None:
            self._awaited.pop(ref, None)
            return Absence.GONE if translation.world.get(ref) is None else Absence.DISOWNED
        condition = judge(fragment, translation.assembly)
        if condition.problems:
            self._severities[ref] = worst(condition.problems)
        return Standing(fragment, condition, translation.world.digest(ref), self._published)

    def _desire(self, ref: ObjectRef, wish: Wish, before: DesiredStatus | None) -> DesiredStatus | None:
        match wish:
            case Absence.UNKNOWN:
                return before
            case Absence.DISOWNED:
                return disown(before) if before else None
            case Absence.GONE:
                return None
        return self._report(ref, wish.facts(), before)

    def _report(self, ref: ObjectRef, facts: Facts, before: DesiredStatus | None) -> DesiredStatus | None:
        wanted = report(facts, self._addresses, self._fleet, before)
        if wanted.revision is None or wanted.is_programmed:
            self._awaited.pop(ref, None)
            return wanted
        known = self._awaited.get(ref)
        until = known.until if known else self._clock() + PATIENCE_S
        is_told = not self._is_worth_waiting(facts, wanted) or self._clock() >= until or has_news(wanted, before)
        lacking = self._fleet.lacking(wanted.revision)
        self._awaited[ref] = _Awaited(wanted.revision, until, lacking if is_told else None)
        return wanted if is_told else before

    def _is_worth_waiting(self, facts: Facts, wanted: DesiredStatus) -> bool:
        held_at = self._published.held_at
        is_held_back = held_at is not None and wanted.revision is not None and held_at < wanted.revision
        return bool(self._fleet.replicas) and not is_held_back
