"""The `services` dialect: Services with `headgate.dev/*` annotations, and the stream ports that they ask for."""

from headgate.translator.dialects.services.dialect import ANNOTATED_SERVICES

__all__ = ["ANNOTATED_SERVICES"]
