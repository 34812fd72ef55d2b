"""Which Gateway has which addresses of the pool: a function of all Gateways that share it.

A Gateway keeps the addresses that its status shows. Others get theirs in the order of their age, so that a newcomer
takes nothing from an older one: those that they name, or the first free one of a sequence which the Gateway's name
determines. So addresses stay mostly the same also where nothing keeps a status, as with manifests in files.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from headgate.common.resources import ObjectRef
from headgate.translator.fragments.fragment import Seniority
from headgate.translator.world.address_pool import AddressPool

ANY: Final = ""
"""Asks for any address of the pool."""


class Claimant(NamedTuple):
    """A Gateway that is to have addresses."""

    seniority: Seniority
    ref: ObjectRef
    asked: tuple[str, ...]
    """Addresses that it names, in normal form; `ANY` for each that it leaves open."""
    held: tuple[str, ...]
    """That its status shows."""

    @property
    def seed(self) -> str:
        """Determines which addresses are tried first. A uid would be another one after a restore from a backup."""
        return f"{self.ref.cluster}/{self.ref.namespace}/{self.ref.name}"

    def __str__(self) -> str:
        return f"{self.ref.namespace}/{self.ref.name}"


class Refused(NamedTuple):
    """An address that a Gateway asks for and cannot have."""

    number: int
    """In its list, from 0."""
    value: str
    """`ANY`: the pool is used up."""
    why: str


class Allotment(NamedTuple):
    """What a Gateway gets."""

    addresses: tuple[str, ...] = ()
    """In the order of its list."""
    refused: tuple[Refused, ...] = ()


def allot(pool: AddressPool, claimants: Iterable[Claimant]) -> Mapping[ObjectRef, Allotment]:
    """Give the addresses of a pool to Gateways."""
    ordered = sorted(claimants)
    owners: dict[str, Claimant] = {}
    given: dict[ObjectRef, dict[int, str]] = {}
    for one in ordered:
        given[one.ref] = dict(_kept(pool, one, owners))
    refused: dict[ObjectRef, list[Refused]] = {one.ref: [] for one in ordered}
    for one in ordered:
        mine = given[one.ref]
        # What is left open must not take what the Gateway names itself.
        for index, value in sorted(enumerate(one.asked), key=lambda each: each[1] == ANY):
            if index in mine:
                continue
            address = pool.first_free(one.seed, owners) if value == ANY else value
            if address is None or (why := _why_not(pool, address, owners)):
                text = f"all addresses of the pool are taken: {pool}" if address is None else why
                refused[one.ref].append(Refused(index, value, text))
            else:
                owners[address], mine[index] = one, address
    return {
        ref: Allotment(tuple(address for _, address in sorted(mine.items())), tuple(refused[ref]))
        for ref, mine in given.items()
    }


def _kept(pool: AddressPool, one: Claimant, owners: dict[str, Claimant]) -> Iterable[tuple[int, str]]:
    """Yield what a Gateway asks for and has already, unless an older one has it too."""
    spare = [each for each in dict.fromkeys(one.held) if each in pool and each not in owners]
    spare_for_any = iter([each for each in spare if each not in one.asked])
    for index, value in enumerate(one.asked):
        address = next(spare_for_any, None) if value == ANY else value
        if address is not None and address in spare and address not in owners:
            owners[address] = one
            yield index, address


def _why_not(pool: AddressPool, address: str, owners: Mapping[str, Claimant]) -> str:
    if address not in pool:
        return f"is none of the addresses that Gateways may have: {pool}"
    return f"is an address of Gateway {owners[address]}" if address in owners else ""
