"""Networks as settings and routes name them."""

from collections.abc import Collection
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network


def parse_networks(texts: Collection[str]) -> tuple[Network, ...]:
    """Read networks in CIDR notation, host bits allowed. Raises ValueError with the wrong one."""
    return tuple(ip_network(text, strict=False) for text in texts)


def is_within(address: str, networks: Collection[Network]) -> bool:
    """Tell whether an address is in one of the networks."""
    parsed = ip_address(address.partition("%")[0])
    return any(parsed in network for network in networks)
