"""`maintenance`: refuse writes while a service is being maintained; reads go on."""

from pydantic import Field

from headgate.gateway.plugins.interface import HeaderName, Plugin, PluginConfig, Request, Response, SecretText


class MaintenanceConfig(PluginConfig):
    """Fields of `maintenance`."""

    retry_after_s: int = Field(default=300, ge=1)
    """Sent as `Retry-After`."""
    allowed_methods: tuple[str, ...] = ("GET", "HEAD", "OPTIONS")
    pass_header: HeaderName = "X-Maintenance-Pass"
    pass_value: SecretText | None = None
    """Requests with this value in `pass_header` go on; put it into the use's `secrets`."""


class Maintenance(Plugin[MaintenanceConfig]):
    """Refuses writes."""

    name = "maintenance"
    order = 5000
    Config = MaintenanceConfig

    def on_request(self, request: Request) -> Response | None:
        """Answer with 503 what would write, unless the client has the pass."""
        config = self.config
        given = request.headers.get(config.pass_header)
        request.headers.remove(config.pass_header)
        if request.method in config.allowed_methods:
            return None
        if config.pass_value is not None and given == config.pass_value.reveal():
            return None
        response = Response.text(503, "Down for maintenance, please try again.\n", reason="maintenance")
        response.headers.set("Retry-After", str(config.retry_after_s))
        return response
