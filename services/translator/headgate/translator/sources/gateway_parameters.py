"""Parameters of Gateways and GatewayClasses: what an object says that their `parametersRef` names."""

from typing import Final, NamedTuple

from headgate.common.status import LoadBalancerAddress
from headgate.common.table import PluginUse
from headgate.translator.sources.policies import ObjectTarget
from headgate.translator.world.attachments import AttachmentPoint


class GatewayParameters(NamedTuple):
    """What an object says of Gateways."""

    plugins: tuple[PluginUse, ...] = ()
    """For the requests of all their routes, before those of the routes."""
    addresses: tuple[LoadBalancerAddress, ...] | None = None
    """For their statuses; None where it says nothing of them."""
    fault: str = ""
    """Why it cannot be followed."""


GATEWAY_PARAMETERS: Final[AttachmentPoint[ObjectTarget, GatewayParameters | None]] = AttachmentPoint(
    "gateway parameters", None
)
"""None: there is no such object, or of a kind that has no parameters of Gateways."""
