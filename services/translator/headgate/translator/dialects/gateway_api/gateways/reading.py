"""Gateways and ListenerSets as others see them. Each of their routes asks, so they are read once for all."""

from functools import lru_cache
from typing import NamedTuple

from headgate.translator.dialects.gateway_api.gateways.listeners import GatewayListener, read_listeners
from headgate.translator.dialects.gateway_api.gateways.whole import fault_of_gateway
from headgate.translator.dialects.gateway_api.models.gateway import AllowedListeners, GatewaySettings
from headgate.translator.manifests.reading import as_text, metadata
from headgate.translator.manifests.specs import Spec
from headgate.translator.world.documents import Document


class ReadGateway(NamedTuple):
    """A Gateway, read."""

    listeners: tuple[GatewayListener, ...]
    """Its own."""
    allowed: AllowedListeners
    is_accepted: bool
    """As a whole; its listeners stand for themselves."""


@lru_cache(maxsize=1024)
def read_gateway(document: Document, place: str = "") -> ReadGateway:
    """Return what others have to know of a Gateway; its mistakes are its own.

    Args:
        document: the Gateway.
        place: as `own_place` gives it.
    """
    manifest = document.decode()
    settings = Spec(manifest.get("spec"), []).rest(GatewaySettings, "listeners")
    is_accepted = settings is not None and fault_of_gateway(settings, has_own_addresses=bool(place)) is None
    allowed = settings.allowed_listeners if settings is not None else AllowedListeners()
    return ReadGateway(read_listeners(manifest, [], place), allowed, is_accepted)


@lru_cache(maxsize=1024)
def read_set(document: Document, place: str = "") -> tuple[GatewayListener, ...]:
    """Return the listeners of a ListenerSet; `place` is that of its Gateway."""
    manifest = document.decode()
    meta = metadata(manifest)
    owner = f"{as_text(meta.get('namespace'))}/{as_text(meta.get('name'))}"
    return read_listeners(manifest, [], place, owner)
