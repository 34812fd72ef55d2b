"""From an upstream's entry to its balancer."""

from collections.abc import Mapping, Sequence

from headgate.common.table import Balancing, BalancingPolicy, Upstream
from headgate.gateway.balancing.detours import find_detours
from headgate.gateway.balancing.endpoints import EndpointDirectory, EndpointSlot
from headgate.gateway.balancing.levels import NOWHERE, Place
from headgate.gateway.balancing.planning import Marks, Planner, level_members
from headgate.gateway.balancing.round_robin import SmoothRoundRobin
from headgate.gateway.balancing.seats import HOPS, EndpointState, Seat, Seating, usable_endpoints, why_unavailable
from headgate.gateway.balancing.upstream import UpstreamBalancer
from headgate.gateway.model.connection import PLAIN, ConnectionSpec
from headgate.gateway.model.steps import Steps, finish

_NO_SEATS: Sequence[Seat] = ()


def compile_upstream(
    upstream: Upstream,
    directory: EndpointDirectory,
    offset: int,
    place: Place = NOWHERE,
    previous: UpstreamBalancer | None = None,
    spec: ConnectionSpec = PLAIN,
    named: Mapping[tuple[str, int], ConnectionSpec] | None = None,
    hops: Mapping[str, ConnectionSpec] = HOPS,
) -> UpstreamBalancer:
    """Make the balancer of an upstream at once.

    Args:
        upstream: its entry.
        directory: where slots are found.
        offset: how many turns it begins with.
        place: where this gateway is.
        previous: the revision before.
        spec: how its endpoints are connected to.
        named: the same for those that have a DNS name, by address and port.
        hops: the same for gateways of other clusters, by what they speak.
    """
    seats = Seating(upstream.balancing, directory, place, spec, named, hops).seat(upstream.endpoints)
    return finish(balance(upstream, seats, directory, offset, previous))


def balance(
    upstream: Upstream,
    seats: Sequence[Seat],
    directory: EndpointDirectory,
    offset: int,
    previous: UpstreamBalancer | None,
) -> Steps[UpstreamBalancer]:
    """Make the balancer of an upstream, whose endpoints have these seats."""
    standings = {standing for _, standing in seats}
    taking = frozenset(standing for standing in usable_endpoints(list(standings)) if standing.weight)
    chosen, others = seats, _NO_SEATS
    if len(taking) < len(standings):
        chosen = [seat for seat in seats if seat[1] in taking]
        others = [seat for seat in seats if seat[1] not in taking and seat[1].is_reached]
    balancing, marks = upstream.balancing, Marks()
    turns: SmoothRoundRobin[EndpointSlot] | Planner
    if _is_plain(balancing, taking):
        turns = SmoothRoundRobin.of_equals([slot for slot, _ in chosen], offset)
    else:
        levels = yield from level_members(chosen)
        turns = Planner(balancing, levels, marks, directory.clock, directory.chance, offset)
    balancer = UpstreamBalancer(
        upstream.key,
        balancing,
        turns,
        marks,
        [slot for slot, standing in others if standing.may_finish_sessions],
        [slot for slot, standing in others if not standing.may_finish_sessions],
        "" if chosen else upstream.unavailable or _why_unavailable(upstream.key, seats),
        directory.clock,
        directory.chance,
        find_detours(seats, standings),
    )
    yield from balancer.prepare(previous)
    return balancer


def _why_unavailable(key: str, seats: Sequence[Seat]) -> str:
    standings = [standing for _, standing in seats]
    return why_unavailable(key, standings, [standing for standing in standings if standing.is_reached])


def _is_plain(balancing: Balancing, taking: frozenset[EndpointState]) -> bool:
    """Tell whether a ring is all that it takes while everybody is healthy."""
    return (
        balancing.policy is BalancingPolicy.ROUND_ROBIN
        and balancing.slow_start_s is None
        and balancing.locality == "none"
        and len({(standing.rank, standing.weight) for standing in taking}) < 2
    )
