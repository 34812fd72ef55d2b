"""Networks that a user lists, and whether an address is in one of them: one look-up for each length of prefix."""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from headgate.common.plugins.fields import read_network


@lru_cache(8192)
def _read_address(text: str) -> tuple[int, int] | None:
    """Return version and number of an address; IPv4 in IPv6 counts as IPv4."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.version, int(address)


def is_address(text: str) -> bool:
    """Tell whether a text is an IP address."""
    return _read_address(text) is not None


class NetworkSet:
    """Several networks."""

    __slots__ = ("_by_shift",)

    def __init__(self, networks: Iterable[str]) -> None:
        by_shift: dict[tuple[int, int], set[int]] = {}
        for text in networks:
            version, shift, head = read_network(text)
            by_shift.setdefault((version, shift), set()).add(head)
        self._by_shift = tuple((version, shift, frozenset(heads)) for (version, shift), heads in by_shift.items())

    def __contains__(self, address: str) -> bool:
        read = _read_address(address)
        if read is None:
            return False
        version, number = read
        return any(version == of and number >> shift in heads for of, shift, heads in self._by_shift)

    def __bool__(self) -> bool:
        return bool(self._by_shift)
