"""The addresses that an accepted object's status shows."""

import ipaddress
from collections.abc import Callable, Iterable

from headgate.common.heartbeats import Heartbeat
from headgate.common.status import LoadBalancerAddress
from headgate.translator.world.graph import Lookups

FindAddresses = Callable[[Lookups, str | None], tuple[LoadBalancerAddress, ...] | None]
"""Finds the addresses that are said for the objects of a class; None: none are."""


def no_addresses(lookups: Lookups, class_name: str | None) -> tuple[LoadBalancerAddress, ...] | None:
    """Stand in where nobody says any."""
    return None


def parse_address(text: str) -> LoadBalancerAddress:
    """Return an address for `status.loadBalancer.ingress`, where addresses and host names have different fields."""
    try:
        return LoadBalancerAddress(ip=str(ipaddress.ip_address(text)))
    except ValueError:
        return LoadBalancerAddress(hostname=text)


def announced(heartbeats: Iterable[Heartbeat], table: str) -> tuple[LoadBalancerAddress, ...] | None:
    """Return what the live gateways of a table announce, sorted.

    None where no gateway is heard of: their silence is more often an outage of the bus than of all gateways, and
    emptied statuses would make DNS controllers delete records.
    """
    texts = {address for heartbeat in heartbeats if heartbeat.table == table for address in heartbeat.addresses}
    return tuple(map(parse_address, sorted(texts))) or None
