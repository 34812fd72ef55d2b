"""What of a Gateway is about it as a whole, beside its listeners."""

from collections.abc import Iterator

from headgate.common.problems import Problem
from headgate.translator.dialects.gateway_api.gateways.frontend import fault_of_frontend
from headgate.translator.dialects.gateway_api.models.gateway import IP_ADDRESS, GatewaySettings
from headgate.translator.manifests.specs import refuse, warn


def fault_of_gateway(settings: GatewaySettings, *, has_own_addresses: bool) -> Problem | None:
    """Return why a Gateway is not accepted, whatever its listeners are; None if it is.

    Args:
        settings: the Gateway.
        has_own_addresses: Gateways have addresses of a pool, and not those of the gateways.
    """
    for index, address in enumerate(settings.addresses):
        field = f"spec.addresses[{index}]"
        if has_own_addresses and address.type != IP_ADDRESS:
            message = f"must be {IP_ADDRESS}: the pool of HEADGATE_GATEWAY_ADDRESSES has no others"
            return refuse("UnsupportedAddress", f"{field}.type", message, address.type)
        if address.value and not has_own_addresses:
            message = "a Gateway has the addresses of the gateways, which its status shows; take this one away"
            return refuse("UnsupportedAddress", f"{field}.value", message, address.value)
    return fault_of_frontend(settings.tls, has_own_addresses=has_own_addresses)


def ignored_fields(settings: GatewaySettings, *, have_infrastructure: bool) -> Iterator[Problem]:
    """Yield warnings of fields that a Gateway is served without."""
    infrastructure = settings.infrastructure
    is_labelled = infrastructure is not None and (infrastructure.labels or infrastructure.annotations)
    if is_labelled and not have_infrastructure:
        message = (
            "nothing is made for a Gateway that could have labels or annotations, unless gateway_infrastructure is on"
        )
        yield warn("UnsupportedField", "spec.infrastructure", message)
    if settings.default_scope:
        yield warn("UnsupportedField", "spec.defaultScope", "routes have to name their Gateway")
