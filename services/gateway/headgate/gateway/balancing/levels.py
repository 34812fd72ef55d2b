"""How much of the load each level of endpoints gets: failover levels, and nearness within them.

As Envoy's priority levels: a level can carry 1.4 times the share of its endpoints that is healthy, at most all of the
load; what it cannot carry goes to the next. So a level keeps all from 72 % healthy on. Nearness makes levels of its
own within each failover level, by the same rule.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

OVERPROVISIONING = 1.4
"""Envoy's `overprovisioning_factor`."""
_ENOUGH = 1.0 - 1e-9


class Place(NamedTuple):
    """Where a gateway or an endpoint is; empty where that is unknown."""

    zone: str = ""
    cluster: str = ""


NOWHERE = Place()


class LevelLoad(NamedTuple):
    """What a level gets."""

    share: float
    """Of the requests, 0 to 1."""
    ignores_health: bool = False
    """It panics: too few are healthy to tell health from a mistake."""


def nearness(own: Place, other: Place, locality: Literal["zone", "cluster"]) -> int:
    """Return how far an endpoint is, 0 for the nearest.

    For `zone`: the own zone, the rest of the own cluster, the rest. For `cluster`: the own cluster, the rest. Zones of
    one name in two clusters that are both known are two zones.
    """
    is_own_cluster = bool(own.cluster) and own.cluster == other.cluster
    if locality == "cluster":
        return 0 if is_own_cluster or not own.cluster else 1
    may_be_own = is_own_cluster or not (own.cluster and other.cluster)
    if own.zone and own.zone == other.zone and may_be_own:
        return 0
    return 1 if is_own_cluster else 2


def share_load(levels: Sequence[tuple[int, int]], panic_threshold: float) -> list[LevelLoad]:
    """Share the load among levels, given their numbers of endpoints and of healthy ones; the first is preferred.

    While the levels together can carry everything none of them panics. Otherwise those with less than the threshold
    healthy do; if all do, each gets load by its number of endpoints. All shares are 0 if nobody is healthy and the
    threshold is 0.
    """
    capacities = [min(1.0, OVERPROVISIONING * healthy / total) if total else 0.0 for total, healthy in levels]
    together = sum(capacities)
    if together >= _ENOUGH:
        return _fill_in_order(capacities)
    panics = [total > 0 and healthy / total < panic_threshold for total, healthy in levels]
    if all(panicking for panicking, (total, _) in zip(panics, levels, strict=True) if total):
        endpoints = sum(total for total, _ in levels) or 1
        return [LevelLoad(total / endpoints, ignores_health=True) for total, _ in levels]
    if not together:
        return [LevelLoad(0.0) for _ in levels]
    return [
        LevelLoad(capacity / together, ignores_health=panicking)
        for capacity, panicking in zip(capacities, panics, strict=True)
    ]


def _fill_in_order(capacities: Sequence[float]) -> list[LevelLoad]:
    left = 1.0
    loads = []
    for capacity in capacities:
        share = min(capacity, left)
        left = max(0.0, left - share)
        loads.append(LevelLoad(share))
    return loads
