"""One object that was applied to several clusters: it is served once, for all whose Services are shared."""

from typing import Any

from headgate.common.problems import Problem, Severity
from headgate.common.table import Route, StreamRoute
from headgate.translator.assembly.ownership import Sharing
from headgate.translator.fragments.fragment import Identity
from headgate.translator.fragments.seniority import describe, seniority_of
from headgate.translator.manifests.reading import shown

SERVED_BY_NAMESAKE = "ServedByNamesake"
AnyRoute = Route | StreamRoute
_OF_ONE_CLUSTER: Any = {"name": True, "key": True, "provenance": True, "plugins": {"__all__": {"secrets"}}}


def are_namesakes(one: Identity, other: Identity) -> bool:
    """Whether two objects are of one kind and name, in two clusters."""
    names = [(each.kind, each.ref.namespace, each.ref.name) for each in (one, other)]
    return names[0] == names[1] and one.ref.cluster != other.ref.cluster


def is_for_both(won: AnyRoute, owner: Identity, lost: AnyRoute, loser: Identity, sharing: Sharing) -> bool:
    """Whether a route is served for another cluster too: one object, applied to both, of Services that both export."""
    if not are_namesakes(owner, loser) or _without_cluster(won, owner) != _without_cluster(lost, loser):
        return False
    both = {owner.ref.cluster, loser.ref.cluster}
    pairs = zip(_upstreams(won), _upstreams(lost), strict=True)
    # The upstreams of an object that is only proposed were not looked at yet; its namesake's are shared by the same.
    return all(both.issubset(sharing.get(one) or sharing.get(other, ())) for one, other in pairs)


def _upstreams(route: AnyRoute) -> list[str]:
    return [backend.upstream for backend in route.backends]


def _without_cluster(route: AnyRoute, identity: Identity) -> str:
    """Return a route as it would be written in any cluster: keys of upstreams begin with the cluster's name.

    What is sealed differs each time, and is left out.
    """
    content = route.model_dump_json(exclude=_OF_ONE_CLUSTER, exclude_defaults=True)
    return content.replace(f'"{identity.ref.cluster}/', '"/')


def by_namesake(field: str, value: str, what: str, owner: Identity, loser: Identity) -> Problem:
    """Say that what an object claims is served as its namesake's."""
    return Problem(
        severity=Severity.INFO,
        reason=SERVED_BY_NAMESAKE,
        field=field,
        value=shown(value),
        message=f"{what} is served by its namesake {describe(owner)}, {seniority_of(owner, loser)}",
    )
