"""The `apisix` dialect: the resources of Apache APISIX' ingress controller."""

from headgate.translator.dialects.apisix.backend_policy import find_backend_policy
from headgate.translator.dialects.apisix.dialect import ApisixDialect
from headgate.translator.dialects.apisix.route_policy import find_route_policy

__all__ = ["ApisixDialect", "find_backend_policy", "find_route_policy"]
