"""The addresses that an accepted object's status shows."""

import ipaddress
from collections.abc import Iterable

from headgate.common.heartbeats import Heartbeat
from headgate.common.status import LoadBalancerAddress
from headgate.translator.world.attachments import AttachmentPoint

CLASS_ADDRESSES: AttachmentPoint[str | None, tuple[LoadBalancerAddress, ...] | None] = AttachmentPoint(
    "addresses of a class", None
)
"""Addresses that are configured for the objects of a class, by its name; None: those of the gateways."""


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
