"""The `traefik` dialect: Traefik's custom resources."""

from headgate.translator.dialects.traefik.dialect import TRAEFIK

__all__ = ["TRAEFIK"]
