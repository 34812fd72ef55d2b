"""What no route of an HTTPS listener takes: 404, or 421 where the connection was made for another listener."""

from collections.abc import Iterator, Sequence
from typing import Final

from headgate.common.plugins.transformation.fault_injection import Abort, FaultInjectionConfig
from headgate.common.resources import ObjectRef
from headgate.common.table import PathMatch, PathType, PluginUse, Provenance, Rank, Route
from headgate.translator.dialects.gateway_api.gateways.listeners import GatewayListener, kind_of
from headgate.translator.dialects.gateway_api.gateways.misdirected import other_listeners
from headgate.translator.dialects.gateway_api.gateways.standing import Standing
from headgate.translator.dialects.gateway_api.hosts import HostKeys
from headgate.translator.fragments.fragment import RouteClaim

_LAST: Final = -10_000
_NOT_FOUND: Final = PluginUse.of(FaultInjectionConfig(abort=Abort(http_status=404))).model_copy(update={"order": _LAST})
_LEAST: Final = -(2**31)


def rest_of_listeners(
    ref: ObjectRef, standings: Sequence[Standing], accepted: Sequence[GatewayListener]
) -> Iterator[RouteClaim]:
    """Yield a claim for what no route takes, for each HTTPS listener that shares its port with others.

    Args:
        ref: the Gateway or the ListenerSet.
        standings: of its listeners.
        accepted: all listeners of the Gateway that are accepted.
    """
    kind = kind_of(ref)
    for listener in (one.listener for one in standings if one.is_accepted):
        others = other_listeners(listener, accepted)
        if others is None:
            continue
        hosts = HostKeys()
        hosts.add(listener.hostname, listener.key)
        provenance = Provenance(
            cluster=ref.cluster, kind=kind, namespace=ref.namespace, name=ref.name, rule=listener.field
        )
        route = Route(
            name=f"{ref.cluster}/{ref.namespace}/{kind.lower()}:{ref.name} {listener.spec.name}",
            path=PathMatch(type=PathType.PREFIX, value="/"),
            rank=Rank(is_default=True, priority=_LEAST),
            plugins=(others.refusal(), _NOT_FOUND),
            provenance=provenance,
        )
        for host in hosts:
            yield RouteClaim(host, route, f"{listener.field}.hostname", is_rest=True)
