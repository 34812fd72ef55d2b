"""`client-control`: the longest body that clients may send."""

from headgate.common.plugins.limits.client_control import ClientControlConfig
from headgate.gateway.plugins.interface import Plugin, Request, Response


class ClientControl(Plugin[ClientControlConfig]):
    """Bounds bodies of requests."""

    name = "client-control"
    order = 22000
    Config = ClientControlConfig
    preview = "yes"
    is_shareable = True

    def on_request(self, request: Request) -> Response | None:
        """Refuse a body that is announced to be too long; one that turns out so is refused as it comes."""
        limit = self.config.max_body_size
        if not limit:
            return None
        if request.content_length is not None and request.content_length > limit:
            return Response.refusal(413, f"the body may have {limit} bytes")
        request.max_body = limit
        return None
