"""`public-api`: show a page of the gateway's own at a route: `/apisix/prometheus/metrics`, its metrics."""

from collections.abc import Awaitable

from headgate.common.plugins.prometheus import PublicApiConfig
from headgate.gateway.plugins.interface import Plugin, Request, Response

_METRICS = "/apisix/prometheus/metrics"


class PublicApi(Plugin[PublicApiConfig]):
    """Answers with a page."""

    name = "public-api"
    order = 501
    Config = PublicApiConfig

    def on_request(self, request: Request) -> Response | Awaitable[Response]:
        """Answer."""
        if (self.config.uri or request.path) == _METRICS:
            return self.services.metrics()
        return Response.refusal(404, f"there is no such page of the gateway's own: {_METRICS} is the only one")
