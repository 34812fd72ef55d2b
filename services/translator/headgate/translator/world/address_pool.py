"""Addresses that Gateways may have: networks of which each Gateway gets one address or more of its own.

Addresses are counted, not listed, so a pool may be as large as an IPv6 network.
"""

import hashlib
import ipaddress
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
MAX_NETWORKS: Final = 64
_REMEDY: Final = "write networks such as 10.248.0.0/24, or addresses such as 10.248.0.7"


class _Range(NamedTuple):
    """Consecutive addresses of one network."""

    network: _Network
    first: int
    size: int

    @classmethod
    def of(cls, network: _Network) -> Self:
        """Return those that a host may have: not the address of an IPv4 network nor its broadcast address, and not the
        one that any router of an IPv6 network answers to (RFC 4291, 2.6.1).
        """
        first, size = int(network.network_address), network.num_addresses
        if size > 2:
            first, size = first + 1, size - (2 if network.version == 4 else 1)
        return cls(network, first, size)

    def has(self, address: _Address) -> bool:
        """Whether an address is one of them."""
        return address.version == self.network.version and 0 <= int(address) - self.first < self.size

    def address(self, number: int) -> str:
        """Return one of them."""
        return str(type(self.network.network_address)(self.first + number))


@dataclass(frozen=True, slots=True)
class AddressPool:
    """Addresses that Gateways may have, as the operator's settings name them."""

    ranges: tuple[_Range, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there are none: Gateways have the addresses of the gateways then."""
        return not self.ranges

    def __contains__(self, address: str) -> bool:
        """Whether a Gateway may have an address, which is written as `normal_address` does."""
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(each.has(found) for each in self.ranges)

    def first_free(self, seed: str, taken: Collection[str]) -> str | None:
        """Return the first free address of a sequence that begins at a place which `seed` determines; None if all are
        taken. Networks are used up one after another.
        """
        start = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16])
        for each in self.ranges:
            # Of one more address than are taken one is free.
            for number in range(min(each.size, len(taken) + 1)):
                address = each.address((start + number) % each.size)
                if address not in taken:
                    return address
        return None

    def __str__(self) -> str:
        return ", ".join(str(each.network) if each.size > 1 else each.address(0) for each in self.ranges)


NO_POOL: Final = AddressPool()


def normal_address(text: str) -> str:
    """Return an address in its one normal form; what is none as it is."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text


def read_pool(written: Iterable[str]) -> AddressPool:
    """Return the pool that a setting names.

    Raises:
        ValueError: an entry is no network of addresses that a host may have, or two of them overlap; says what is
            right.
    """
    networks: list[_Network] = []
    for text in written:
        network = _read(text)
        if other := next(
            (each for each in networks if each.version == network.version and each.overlaps(network)), None
        ):
            raise ValueError(f"{text!r} overlaps {other}; write each address once")
        networks.append(network)
    if len(networks) > MAX_NETWORKS:
        raise ValueError(f"{len(networks)} entries, at most {MAX_NETWORKS}; write a network instead of its addresses")
    return AddressPool(tuple(map(_Range.of, networks)))


def _read(text: str) -> _Network:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no network: {error}; {_REMEDY}") from None
    is_scoped = network.version == 6 and network.is_link_local
    if network.is_multicast or network.network_address.is_unspecified or is_scoped:
        raise ValueError(f"{text!r} has addresses that no host can have; {_REMEDY}")
    return network
