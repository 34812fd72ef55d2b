"""`bandwidth`: how fast an answer's body goes out (nginx `limit_rate`)."""

from pydantic import Field

from headgate.gateway.plugins.interface import Pacing, Plugin, PluginConfig, Request, Response


class BandwidthConfig(PluginConfig):
    """Fields of `bandwidth`."""

    rate: int = Field(gt=0)
    """Bytes in a second, for each request."""
    after: int = Field(default=0, ge=0)
    """Bytes that go out at full speed before."""


class Bandwidth(Plugin[BandwidthConfig]):
    """Slows answers down."""

    name = "bandwidth"
    order = 890
    Config = BandwidthConfig

    def on_response(self, request: Request, response: Response) -> None:
        """Set the pace; the proxy keeps it."""
        response.pacing = Pacing(self.config.rate, self.config.after, self.services.clock())
