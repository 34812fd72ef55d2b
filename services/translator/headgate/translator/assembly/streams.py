"""Who gets a port of the gateways, or a server name on it: the oldest object, as with routes.

TLS routes share a port as long as their server names differ; of others a port has one. On the HTTPS port they go before
HTTP, so that a server name there is for the owner of the host of this name.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.table import StreamRoute
from headgate.translator.assembly.namesakes import by_namesake, is_for_both
from headgate.translator.assembly.ownership import Sharing
from headgate.translator.fragments.fragment import Fragment, Identity, StreamClaim, StreamPort
from headgate.translator.fragments.seniority import describe, seniority_of
from headgate.translator.manifests.reading import shown


class StreamVerdict(NamedTuple):
    """The stream routes of a port, and what the losers hear."""

    routes: tuple[StreamRoute, ...]
    lost: dict[ObjectRef, tuple[Problem, ...]]


Refuse = Callable[[StreamClaim, Fragment], Problem | None]
"""Says why a claim is not the object's to make; None where it is."""


def award_port(port: StreamPort, fragments: Iterable[Fragment], sharing: Sharing, refuse: Refuse) -> StreamVerdict:
    """Decide which claims of one port are served; `sharing` is as for `merge_host`."""
    claims = [
        (fragment.identity.seniority, claim, fragment)
        for fragment in fragments
        for claim in fragment.streams
        if claim.port == port
    ]
    claims.sort(key=lambda each: each[0])
    winners: list[tuple[StreamClaim, Identity]] = []
    lost: dict[ObjectRef, tuple[Problem, ...]] = {}
    for _, claim, fragment in claims:
        identity = fragment.identity
        if (refused := refuse(claim, fragment)) is not None:
            lost[identity.ref] = (*lost.get(identity.ref, ()), refused)
            continue
        rival = next((each for each in winners if _collide(each[0].route, claim.route)), None)
        if rival is None:
            winners.append((claim, identity))
        else:
            lost[identity.ref] = (*lost.get(identity.ref, ()), _lost_port(claim, identity, *rival, sharing))
    return StreamVerdict(tuple(claim.route for claim, _ in winners), lost)


def _collide(one: StreamRoute, other: StreamRoute) -> bool:
    if one.protocol != "tls" or other.protocol != "tls":
        return True
    return bool({*(one.server_names or ("",))} & {*(other.server_names or ("",))})


def _lost_port(claim: StreamClaim, loser: Identity, winner: StreamClaim, owner: Identity, sharing: Sharing) -> Problem:
    names = sorted({*claim.route.server_names} & {*winner.route.server_names})
    what = f"port {claim.route.port}" if claim.route.port else "the HTTPS port"
    if names:
        what = f"server name {names[0]} on {what}"
    value = str(claim.route.port) if claim.route.port else ", ".join(claim.route.server_names)
    if is_for_both(winner.route, owner, claim.route, loser, sharing):
        return by_namesake(claim.field, value, what, owner, loser)
    return Problem(
        reason="StreamConflict",
        field=claim.field,
        value=shown(value),
        message=f"{what} belongs to {describe(owner)}, {seniority_of(owner, loser)}",
    )
