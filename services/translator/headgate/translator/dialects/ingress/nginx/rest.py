"""What an Ingress of ingress-nginx says of the paths of its hosts that no Ingress has.

The oldest Ingress of a host decides of these there, as its annotations count for the location `/` that every server
has: who may come in, redirects, limits, headers. What comes through is a 404. An Ingress that says nothing of the kind
claims the rest all the same, so that no younger one has it, and nothing of such a claim is in the table.

Where the settings name a default backend, the rest goes there instead.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from headgate.common.plugins.transformation.fault_injection import Abort, FaultInjectionConfig
from headgate.common.table import ANY_HOST, Backend, PathMatch, PathType, PluginUse, Provenance, Rank, Route
from headgate.translator.annotations.reading import Reading
from headgate.translator.fragments.fragment import RouteClaim
from headgate.translator.fragments.upstream_refs import UpstreamRef

_EVERYTHING: Final = PathMatch(type=PathType.PREFIX, value="/")
_GROUPS: Final = ("login", "asking", "networks", "redirects", "cors", "limits", "custom_headers")
"""Annotations of which an answer shows whether they are followed."""
_LAST: Final = -10_000
NOT_FOUND: Final = PluginUse.of(FaultInjectionConfig(abort=Abort(http_status=404, body="404 Not Found\n"))).model_copy(
    update={"order": _LAST}
)
_LEAST: Final = -(2**31)
"""A priority below all that annotations and ApisixRoutes may say."""
_NOTHING_SAID: Final = Route(
    name="rest",
    path=_EVERYTHING,
    rank=Rank(is_default=True, priority=_LEAST),
    provenance=Provenance(cluster="", kind="", namespace="", name=""),
)


def rest_of_hosts(
    reading: Reading,
    claims: Iterable[RouteClaim],
    with_policy: Callable[[RouteClaim], RouteClaim],
    answering: UpstreamRef | None,
) -> Iterator[RouteClaim]:
    """Yield a claim for what no route takes, for each host.

    Args:
        reading: the annotations.
        claims: those of the rules.
        with_policy: has the annotations hold for a claim.
        answering: the default backend of the settings.
    """
    first: dict[str, RouteClaim] = {}
    for claim in claims:
        if _is_everything(claim.route.path):
            first[claim.host] = claim
        first.setdefault(claim.host, claim)
    found = {host: claim for host, claim in first.items() if host != ANY_HOST and not _is_everything(claim.route.path)}
    says_something = bool(found) and (answering is not None or any(map(reading.written, _GROUPS)))
    for host, claim in found.items():
        if not says_something:
            yield RouteClaim(host, _NOTHING_SAID, claim.field, is_rest=True)
            continue
        owner = claim.route.provenance
        name = f"{owner.cluster}/{owner.namespace}/{owner.name} rest"
        route = _NOTHING_SAID.model_copy(update={"name": name, "provenance": owner})
        held = with_policy(claim._replace(route=route, is_rest=True))
        yield _not_found(held) if answering is None else _answered(held, answering)


def _is_everything(path: PathMatch) -> bool:
    return path.type is PathType.PREFIX and path.value == "/"


def _answered(claim: RouteClaim, by: UpstreamRef) -> RouteClaim:
    """Return such a claim with a backend for what comes through."""
    change = {"rank": _NOTHING_SAID.rank, "backends": (Backend(upstream=by.key),)}
    return claim if claim.is_refused else claim._replace(route=claim.route.model_copy(update=change))


def _not_found(claim: RouteClaim) -> RouteClaim:
    """Return such a claim with a 404 for what comes through."""
    route = claim.route.model_copy(
        update={"plugins": (*claim.route.plugins, NOT_FOUND), "rank": _NOTHING_SAID.rank, "backends": ()}
    )
    return claim if claim.is_refused else claim._replace(route=route)
