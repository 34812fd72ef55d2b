"""The gateway's own listeners, of which objects of several clusters may say something: the oldest counts."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.table import Listener
from headgate.translator.fragments.fragment import Fragment, Identity
from headgate.translator.fragments.seniority import describe, seniority_of


class ListenerVerdict(NamedTuple):
    """The entries of own listeners, and what the losers hear."""

    entries: Mapping[str, Listener]
    lost: Mapping[ObjectRef, tuple[Problem, ...]]


NO_LISTENERS: Final = ListenerVerdict({}, {})


def award_listeners(fragments: Iterable[Fragment]) -> ListenerVerdict:
    """Decide what counts of the own listeners. Objects that say the same agree, whoever is older."""
    won: dict[str, tuple[Listener, Identity]] = {}
    lost: dict[ObjectRef, tuple[Problem, ...]] = {}
    for fragment in sorted(fragments, key=lambda each: each.identity.seniority):
        identity = fragment.identity
        rivals = []
        for listener in fragment.own_listeners:
            entry, owner = won.setdefault(listener.key, (listener, identity))
            if entry.model_copy(update={"provenance": listener.provenance}) != listener:
                rivals.append(_lost(listener, identity, owner))
        if rivals:
            lost[identity.ref] = tuple(rivals)
    return ListenerVerdict({key: entry for key, (entry, _) in won.items()}, lost)


def _lost(listener: Listener, loser: Identity, owner: Identity) -> Problem:
    return Problem(
        reason="ListenerConflict",
        field="data",
        message=f"clients' connections on the gateways' {listener.key} port are treated as {describe(owner)} says, "
        f"{seniority_of(owner, loser)}; say the same in both, or in one only",
    )
