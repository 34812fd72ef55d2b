"""The `ingress` dialect: Kubernetes Ingress v1, and the v1beta1 versions before it."""

from headgate.translator.classes import ClassSettings
from headgate.translator.dialects.ingress.dialect import IngressDialect

__all__ = ["ClassSettings", "IngressDialect"]
