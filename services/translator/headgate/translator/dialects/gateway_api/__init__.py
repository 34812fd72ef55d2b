"""Gateway API: GatewayClass, Gateway and their routes, with ReferenceGrant."""

from headgate.translator.dialects.gateway_api.dialect import GATEWAY_API

__all__ = ["GATEWAY_API"]
