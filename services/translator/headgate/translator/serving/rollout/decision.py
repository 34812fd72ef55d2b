"""What becomes of a rollout, as of one look at the fleet; pure.

    nothing ──differs──> step 1 ──window──> step 2 ... ──window──> everywhere
                            └──worse──> held ──another table──> step 1

A rollout takes one table through its steps. What comes of routes meanwhile waits and is rolled out together afterwards,
so that changes that never pause cannot keep a rollout from its end.
"""

import hashlib
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple

from headgate.common.snapshot import THIS_REVISION, Rollout, RolloutMove, RolloutPhase, Version
from headgate.operations.rollouts.analysis import RolloutVerdict, Thresholds
from headgate.operations.rollouts.figures import name_some

ENDINGS = 2
"""So many ends of chosen replicas without a word are put down to the table; one may be chance."""
TAKING_S = 15.0
"""Least time that replicas have to take a table, however short the window is."""


class RolloutPolicy(NamedTuple):
    """How tables are rolled out."""

    shares: tuple[float, ...] = ()
    """Percents of the replicas; empty: all at once."""
    window_s: float = 60.0
    """How long each step lasts."""
    thresholds: Thresholds = Thresholds()


class Observation(NamedTuple):
    """What is seen of the fleet and of a rollout."""

    live: tuple[str, ...] = ()
    """Replicas that serve the table, sorted."""
    ended: tuple[str, ...] = ()
    """Chosen ones that ended without a word since the look before."""
    refusal: str = ""
    """Why a chosen one does not take the table."""
    waited_s: float = 0.0
    """Since the step was first seen."""
    served_s: float = 0.0
    """Since all chosen ones serve it."""
    alone_s: float = 0.0
    """Since there is but one replica."""
    verdict: RolloutVerdict = RolloutVerdict(is_judged=False)
    figures: str = ""
    """How the chosen ones did, in words."""


class Moved(NamedTuple):
    """Something that happens to a rollout."""

    what: RolloutMove
    note: str = ""


class Outcome(NamedTuple):
    """What becomes of a rollout."""

    rollout: Rollout | None
    """None: all replicas serve the live table."""
    moves: tuple[Moved, ...] = ()
    """In order; nothing happens without one, unless a table changes at once."""


class Tables(NamedTuple):
    """How the tables compare, endpoints aside."""

    base: Version
    """Revision whose routes all serve while nothing is rolled out."""
    is_live_served: bool
    """Whether the live table is the one of all replicas."""
    is_live_next: bool
    """Whether it is the one that is rolled out."""


def advance(
    current: Rollout | None, tables: Tables, look: Observation, policy: RolloutPolicy, now: datetime
) -> Outcome:
    """Say what becomes of a rollout, or whether one begins."""
    if not policy.shares:
        return Outcome(None, (Moved(RolloutMove.DONE, "rollouts are turned off"),) if current else ())
    if current is None:
        return Outcome(None) if tables.is_live_served else _begin(tables.base, look, policy, now)
    if tables.is_live_served:
        return Outcome(None, (Moved(RolloutMove.WITHDRAWN, "what all serve is wanted again"),))
    if current.phase is RolloutPhase.HELD:
        # What did harm is in the live table still, perhaps: while nothing can be compared, nothing is tried.
        may_begin = not tables.is_live_next and len(look.live) > 1
        return _begin(current.base, look, policy, now) if may_begin else Outcome(current)
    outcome = _go_on(current, look, policy, now)
    if outcome.rollout is None and not tables.is_live_next:
        further = _begin(current.target, look, policy, now)
        return further._replace(moves=outcome.moves + further.moves)
    return outcome


def _begin(base: Version, look: Observation, policy: RolloutPolicy, now: datetime) -> Outcome:
    """Begin with the first step; with one replica there is nothing to compare."""
    if len(look.live) < 2:
        return Outcome(None)
    replicas = choose((), look.live, policy.shares[0], base)
    rollout = Rollout(base=base, shares=policy.shares, since=now, replicas=replicas)
    return Outcome(rollout, (Moved(RolloutMove.BEGUN, _describe_step(rollout, look)),))


def _go_on(current: Rollout, look: Observation, policy: RolloutPolicy, now: datetime) -> Outcome:
    ended = (*current.ended, *look.ended)
    if reason := _fault(current, ended, look, policy):
        return Outcome(current.gone_back(now, reason), (Moved(RolloutMove.WENT_BACK, reason),))
    if look.alone_s >= policy.window_s and not ended:
        return Outcome(None, (Moved(RolloutMove.DONE, "one replica is left"),))
    gone = [name for name in current.replicas if name not in look.live]
    if gone and len(look.live) > 1:
        replicas = choose(current.replicas, look.live, current.shares[current.step], current.base)
        again = {"replicas": replicas, "begun": THIS_REVISION, "since": now, "ended": ended}
        rollout = current.model_copy(update=again)
        how = "ended" if look.ended else "left"
        note = f"{name_some(gone)} {how}; {_describe_step(rollout, look)}"
        return Outcome(rollout, (Moved(RolloutMove.STEPPED, note),))
    if look.ended:
        note = f"{name_some(look.ended)} ended without a word"
        return Outcome(current.model_copy(update={"ended": ended}), (Moved(RolloutMove.STEPPED, note),))
    is_over = look.served_s >= policy.window_s and not gone
    return _take_step(current, look, now) if is_over else Outcome(current)


def _fault(current: Rollout, ended: Collection[str], look: Observation, policy: RolloutPolicy) -> str:
    if look.verdict.worse:
        return look.verdict.worse
    if look.refusal:
        return look.refusal
    if len(ended) >= ENDINGS:
        return f"{name_some(dict.fromkeys(ended))} ended {len(ended)} times without a word after taking it"
    waited_s = max(policy.window_s, TAKING_S)
    if look.served_s == 0.0 and look.waited_s > waited_s and set(current.replicas) <= set(look.live):
        return f"{name_some(current.replicas)} did not take it within {waited_s:g} s"
    return ""


def _take_step(current: Rollout, look: Observation, now: datetime) -> Outcome:
    for step in range(current.step + 1, len(current.shares)):
        replicas = choose(current.replicas, look.live, current.shares[step], current.base)
        if len(replicas) > len(current.replicas):
            update = {"step": step, "replicas": replicas, "begun": THIS_REVISION, "since": now}
            rollout = current.model_copy(update=update)
            note = f"{_describe_step(rollout, look)}; before: {look.figures}"
            return Outcome(rollout, (Moved(RolloutMove.STEPPED, note),))
    return Outcome(None, (Moved(RolloutMove.DONE, f"everywhere; before: {look.figures}"),))


def choose(before: Iterable[str], live: Collection[str], percent: float, base: Version) -> tuple[str, ...]:
    """Return which replicas serve the next table: those that do, and others up to a share; at least one, never all.

    Which others is drawn by their names and the revision: each translator comes to the same, and it is not always the
    first one that tries what is new.
    """
    wanted = max(1, min(len(live) - 1, int(len(live) * percent / 100 + 0.5)))
    kept = [name for name in before if name in live]
    drawn = sorted((name for name in live if name not in kept), key=lambda name: _draw(base, name))
    return tuple(sorted((kept + drawn)[: max(wanted, min(len(kept), len(live) - 1))]))


def _draw(base: Version, name: str) -> str:
    return hashlib.sha256(f"{base} {name}".encode()).hexdigest()


def _describe_step(rollout: Rollout, look: Observation) -> str:
    steps = f"step {rollout.step + 1} of {len(rollout.shares) + 1}"
    return f"{steps}: {name_some(rollout.replicas)}, {len(rollout.replicas)} of {len(look.live)} replicas"
