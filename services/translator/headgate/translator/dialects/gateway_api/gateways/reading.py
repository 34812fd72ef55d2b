"""A Gateway as its routes see it. Each of them asks, so it is read once for all."""

from functools import lru_cache
from typing import NamedTuple

from headgate.translator.dialects.gateway_api.gateways.listeners import GatewayListener, read_listeners
from headgate.translator.dialects.gateway_api.gateways.whole import fault_of_gateway
from headgate.translator.dialects.gateway_api.models.gateway import GatewaySettings
from headgate.translator.manifests.specs import Spec
from headgate.translator.world.documents import Document


class ReadGateway(NamedTuple):
    """A Gateway, read."""

    listeners: tuple[GatewayListener, ...]
    is_accepted: bool
    """As a whole; its listeners stand for themselves."""


@lru_cache(maxsize=1024)
def read_gateway(document: Document, place: str = "") -> ReadGateway:
    """Return what routes have to know of a Gateway; its mistakes are its own.

    Args:
        document: the Gateway.
        place: as `own_place` gives it.
    """
    manifest = document.decode()
    settings = Spec(manifest.get("spec"), []).rest(GatewaySettings, "listeners")
    is_accepted = settings is not None and fault_of_gateway(settings, has_own_addresses=bool(place)) is None
    return ReadGateway(read_listeners(manifest, [], place), is_accepted)
