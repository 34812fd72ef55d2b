"""`opentelemetry`: which requests of a route are traced, and what their spans say besides.

Trace context that a request comes with decides for itself with the sampler `parent_base` only. Where traces go is a
setting of the gateway (`docs/tracing.md`).
"""

from headgate.common.plugins.observability.opentelemetry import OpentelemetryConfig
from headgate.gateway.plugins.interface import Plugin


class Opentelemetry(Plugin[OpentelemetryConfig]):
    """Has no hook: routes have what it says as a field, `Route.tracing`."""

    name = "opentelemetry"
    order = 12009
    Config = OpentelemetryConfig
    is_shareable = True
