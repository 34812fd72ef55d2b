"""The `apisix` dialect: the resources of Apache APISIX' ingress controller."""

from headgate.translator.dialects.apisix.dialect import APISIX

__all__ = ["APISIX"]
