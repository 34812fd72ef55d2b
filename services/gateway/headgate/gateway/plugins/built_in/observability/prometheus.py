"""`prometheus`: a switch that is always on here.

Every route, endpoint and connection is counted anyway, and served at `/metrics` of the admin port; `docs/metrics.md`
says which metric is which of Apache APISIX. The plugin is taken so that configurations work as they stand; it costs
nothing.
"""

from headgate.common.plugins.observability.prometheus import PrometheusConfig
from headgate.gateway.plugins.interface import Plugin


class Prometheus(Plugin[PrometheusConfig]):
    """Does nothing."""

    name = "prometheus"
    order = 500
    Config = PrometheusConfig
    is_shareable = True
