"""The `ingress` dialect: Kubernetes Ingress v1, and the v1beta1 versions before it."""

from headgate.translator.dialects.ingress.dialect import INGRESSES

__all__ = ["INGRESSES"]
