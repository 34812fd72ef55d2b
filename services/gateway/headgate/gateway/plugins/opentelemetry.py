"""`opentelemetry`: which requests of a route begin a trace.

It sets the share for its route; requests that come with a sampled trace context are traced in any case, those with an
unsampled one never. Where traces go is a setting of the gateway (`docs/tracing.md`).
"""

from headgate.common.plugins.opentelemetry import OpentelemetryConfig
from headgate.gateway.plugins.interface import Plugin


class Opentelemetry(Plugin[OpentelemetryConfig]):
    """Has no hook: the share is read when the route is compiled (`table.policies`)."""

    name = "opentelemetry"
    order = 12009
    Config = OpentelemetryConfig
