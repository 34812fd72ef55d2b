"""Addresses of clients."""

import re
from ipaddress import IPv6Network, ip_network
from typing import Final

_MAPPED: Final = 96
"""Bits before an IPv4 address within an IPv6 one."""
_MASK: Final = re.compile(r"[^/%]+(?:/[0-9]{1,3})?")


def read_network(value: str) -> str:
    """Return an address or network as the table has it. Raises ValueError: it is neither."""
    try:
        if not _MASK.fullmatch(value):
            raise ValueError("a mask is a number of bits, and an address has no zone")
        network = ip_network(value, strict=False)
    except ValueError as error:
        raise ValueError(f"{value!r} is neither an address nor a network such as 10.0.0.0/8") from error
    if isinstance(network, IPv6Network) and network.prefixlen >= _MAPPED:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            return str(ip_network((mapped, network.prefixlen - _MAPPED)))
    return str(network)
