"""What of a Gateway's listeners goes into the table: ports that all Gateways share, or listeners at its own addresses.

At addresses of its own a Gateway presents its certificates itself, and they are no other port's. At shared ports they
are presented by server name, and of several Gateways with a name the oldest counts.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from headgate.common.resources import ObjectRef
from headgate.common.table import Listener, Provenance
from headgate.translator.dialects.gateway_api.gateways.allocation import Allotment
from headgate.translator.dialects.gateway_api.gateways.listeners import kind_of
from headgate.translator.dialects.gateway_api.gateways.ports import port_listener
from headgate.translator.dialects.gateway_api.gateways.standing import Standing
from headgate.translator.dialects.gateway_api.hostnames import table_host
from headgate.translator.fragments.fragment import CertificateRef, NameClaim


class PlacedListeners(NamedTuple):
    """What a fragment says of listeners, in its own words."""

    own_listeners: tuple[Listener, ...] = ()
    names: tuple[NameClaim, ...] = ()
    entries: tuple[Listener, ...] = ()
    certificates: tuple[CertificateRef, ...] = ()


def place_listeners(ref: ObjectRef, standings: Sequence[Standing], allotted: Allotment | None) -> PlacedListeners:
    """Return what of a Gateway's listeners goes into the table; `allotted` as `allotment_of` gives it."""
    provenance = Provenance(cluster=ref.cluster, kind=kind_of(ref), namespace=ref.namespace, name=ref.name)
    accepted = [one for one in standings if one.is_accepted]
    if allotted is None:
        shared = {listener.key: listener for listener in _shared(accepted, provenance)}
        return PlacedListeners(tuple(shared.values()), tuple(claim for one in standings for claim in one.names))
    if not allotted.addresses:
        return PlacedListeners()
    return PlacedListeners(
        entries=tuple(_at(allotted.addresses, accepted, provenance)),
        certificates=tuple(dict.fromkeys(each for one in accepted for each in one.certificates)),
    )


def _shared(accepted: Sequence[Standing], provenance: Provenance) -> Iterator[Listener]:
    for one in accepted:
        transport = one.listener.transport
        if (transport == "http" or transport == "https") and (
            found := port_listener(transport, one.listener.spec.port, provenance)
        ):
            yield found


def _at(addresses: tuple[str, ...], accepted: Sequence[Standing], provenance: Provenance) -> Iterator[Listener]:
    for one in accepted:
        listener = one.listener
        if listener.transport is not None:
            yield Listener(
                key=listener.key,
                address=addresses[0],
                further_addresses=addresses[1:],
                port=listener.spec.port,
                protocol=listener.transport,
                host=table_host(listener.hostname),
                tls=one.tls,
                certificates=tuple(each.key for each in one.certificates),
                provenance=provenance,
            )
