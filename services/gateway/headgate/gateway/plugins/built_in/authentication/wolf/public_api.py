"""`public-api`: show a page of the gateway's own at a route: its metrics, where users of wolf log in, or for batches.

`/apisix/prometheus/metrics` are the metrics; `/apisix/plugin/wolf-rbac/login` (POST), `.../change_pwd` (PUT) and
`.../user_info` (GET) are for users of `wolf-rbac`, with the consumers of this gateway.
`/apisix/batch-requests` (POST) serves the requests of a `pipeline` one after the other, and answers with their answers.
"""

from collections.abc import Awaitable

from headgate.common.plugins.observability.prometheus import PublicApiConfig
from headgate.gateway.plugins.built_in.authentication.wolf.pages import find_wolf_page, show_wolf_page
from headgate.gateway.plugins.built_in.traffic.batch_requests import BATCH_PAGE, show_batch_page
from headgate.gateway.plugins.interface import Foreseen, Plugin, Request, Response
from headgate.gateway.plugins.interface.errors import Unforeseeable

_METRICS = "/apisix/prometheus/metrics"


class PublicApi(Plugin[PublicApiConfig]):
    """Answers with a page."""

    name = "public-api"
    order = 501
    Config = PublicApiConfig
    is_shareable = True
    is_of_owner = True
    unforeseen = "asks another service"

    def on_request(self, request: Request) -> Response | Awaitable[Response]:
        """Answer."""
        page = self.config.uri or request.path
        if page == _METRICS:
            return self.services.metrics()
        if page == BATCH_PAGE:
            return show_batch_page(request)
        wolf = find_wolf_page(page)
        if wolf:
            return show_wolf_page(wolf, self.services, request)
        return Response.refusal(404, f"there is no such page of the gateway's own: {_METRICS} is one")

    def foresee(self, request: Request) -> Foreseen | Awaitable[Foreseen]:
        """Say which page it would be."""
        page = self.config.uri or request.path
        if page == _METRICS:
            return Response(200, reason="the metrics of the gateway")
        if page == BATCH_PAGE or find_wolf_page(page):
            raise Unforeseeable(self.unforeseen)
        return self.on_request(request)
