"""The addresses of a Gateway's own, where the operator's settings have a pool of them."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote

from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.translator.dialects.gateway_api.gateways.allocation import ANY, Allotment, Claimant, allot
from headgate.translator.dialects.gateway_api.models.gateway import IP_ADDRESS, GatewayAddress, GatewaySettings
from headgate.translator.fragments.fragment import Seniority
from headgate.translator.manifests.reading import creation_time
from headgate.translator.manifests.specs import Spec, warn
from headgate.translator.sources.gateways import EVERYWHERE, GATEWAYS, owns_gateway
from headgate.translator.world.address_pool import normal_address
from headgate.translator.world.documents import Document
from headgate.translator.world.graph import Level, Lookups, Rule

NOT_USABLE: Final = "AddressNotUsable"
NOT_ASSIGNED: Final = "AddressNotAssigned"
_NOTHING: Final = Allotment()


class _EveryGateway(NamedTuple):
    cluster: str = ""


class _Question(NamedTuple):
    cluster: str
    namespace: str
    name: str


def own_place(lookups: Lookups, namespace: str, name: str) -> str:
    """Return what stands in keys of listeners for the addresses of a Gateway's own; empty if it has none."""
    if lookups.settings.gateway_addresses.is_empty:
        return ""
    return "/".join(("gateway-api", *(quote(each, safe="") for each in (lookups.cluster, namespace, name))))


def allotment_of(lookups: Lookups, ref: ObjectRef) -> Allotment | None:
    """Return the addresses of a Gateway's own; None if Gateways share those of the gateways."""
    if lookups.settings.gateway_addresses.is_empty:
        return None
    return lookups.derive(_ALLOTMENT, _Question(ref.cluster, ref.namespace, ref.name))


def problems_of(allotted: Allotment) -> Iterator[Problem]:
    """Yield what of the addresses that a Gateway asks for it has not got. The others are served."""
    for one in allotted.refused:
        if one.value == ANY:
            message = f"{one.why}; the operator's setting HEADGATE_GATEWAY_ADDRESSES of the translator has to name more"
            yield warn(NOT_ASSIGNED, "spec.addresses", message)
        else:
            yield warn(NOT_USABLE, f"spec.addresses[{one.number}].value", one.why, one.value)


def _allot_all(lookups: Lookups, _: _EveryGateway) -> Mapping[ObjectRef, Allotment]:
    return allot(lookups.settings.gateway_addresses, _claimants(lookups))


def _claimants(lookups: Lookups) -> Iterator[Claimant]:
    for ref, gateway in lookups.find_everywhere(GATEWAYS, EVERYWHERE):
        if lookups.settings.selection.selects(ref) and owns_gateway(gateway, lookups.elsewhere(ref.cluster)):
            wish = _wish(gateway.document)
            seniority = Seniority(wish.created_at, ref.namespace, ref.name, ref.cluster)
            yield Claimant(seniority, ref, wish.asked, gateway.held)


class _Wish(NamedTuple):
    created_at: str
    asked: tuple[str, ...]


@lru_cache(maxsize=1024)
def _wish(document: Document) -> _Wish:
    """Return what a Gateway asks for; one that cannot be read, or names addresses of other types, asks for none."""
    manifest = document.decode()
    settings = Spec(manifest.get("spec"), []).rest(GatewaySettings, "listeners")
    written = () if settings is None else settings.addresses or (GatewayAddress(),)
    is_usual = all(each.type == IP_ADDRESS for each in written)
    asked = tuple(normal_address(each.value) for each in written) if is_usual else ()
    return _Wish(creation_time(manifest), asked)


def _find(lookups: Lookups, question: _Question) -> Allotment:
    return lookups.derive(_ALLOTMENTS, _EveryGateway()).get(GATEWAYS.ref(*question), _NOTHING)


_ALLOTMENTS: Final[Rule[_EveryGateway, Mapping[ObjectRef, Allotment]]] = Rule(
    "addresses of all Gateways", Level.CLUSTER, _allot_all, lambda *_: {}, is_memo=True
)
_ALLOTMENT: Final[Rule[_Question, Allotment]] = Rule(
    "addresses of a Gateway", Level.SHARED, _find, lambda *_: _NOTHING, is_memo=True
)
"""Apart from the former, so that a Gateway that changes has others translated again only if their addresses change."""
