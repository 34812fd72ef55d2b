"""What a Gateway and a ListenerSet alike contribute: hosts, ports, certificates, and how each listener stands."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from headgate.common.resources import ObjectRef
from headgate.common.status import ListenerRef, ListenerReport
from headgate.translator.dialects.gateway_api.gateways.allocation import Allotment
from headgate.translator.dialects.gateway_api.gateways.listeners import GatewayListener
from headgate.translator.dialects.gateway_api.gateways.placing import place_listeners
from headgate.translator.dialects.gateway_api.gateways.ports import Transport
from headgate.translator.dialects.gateway_api.gateways.rest import rest_of_listeners
from headgate.translator.dialects.gateway_api.gateways.standing import Standing
from headgate.translator.dialects.gateway_api.hosts import HostKeys
from headgate.translator.fragments.fragment import RouteClaim
from headgate.translator.fragments.status_part import StatusPart


class Contribution(NamedTuple):
    """Fields of a fragment, as it has them."""

    hosts: tuple[str, ...]
    routes: tuple[RouteClaim, ...]
    parts: tuple[StatusPart, ...]
    placed: Mapping[str, Any]
    """What goes into the table's listeners: further fields by name."""


def contribute(
    ref: ObjectRef, standings: Sequence[Standing], accepted: Sequence[GatewayListener], allotted: Allotment | None
) -> Contribution:
    """Return what some listeners contribute.

    Args:
        ref: the Gateway or the ListenerSet.
        standings: of its listeners.
        accepted: all listeners of the Gateway that are accepted, those of others too.
        allotted: addresses of the Gateway, as `allotment_of` gives them.
    """
    if allotted is not None and not allotted.addresses:
        standings = [each.without_address() for each in standings]
    hosts = HostKeys()
    for one in standings:
        if one.is_accepted and one.listener.transport in get_args(Transport):
            hosts.add(one.listener.hostname, one.listener.key)
    return Contribution(
        tuple(hosts),
        tuple(rest_of_listeners(ref, standings, accepted)),
        tuple(StatusPart(ListenerRef(one.listener.spec.name), one.listener.field, one.said) for one in standings),
        place_listeners(ref, standings, allotted)._asdict(),
    )


def report_listeners(
    listeners: Iterable[GatewayListener], attached: Mapping[str, int], allotted: Allotment | None
) -> tuple[ListenerReport, ...]:
    """Return what a status says of listeners beside their conditions; `attached` is the number of routes by name."""
    addresses = allotted.addresses if allotted is not None else ()
    return tuple(
        ListenerReport(
            name=each.spec.name,
            supported_kinds=each.kinds,
            attached_routes=attached.get(each.spec.name, 0),
            port=each.own_port,
            is_udp=each.transport == "udp",
            addresses=addresses if each.has_own_address else (),
        )
        for each in listeners
    )
