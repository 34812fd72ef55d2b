"""`bandwidth`: how fast an answer's body goes out (nginx `limit_rate`)."""

from headgate.common.plugins.limits.bandwidth import BandwidthConfig
from headgate.gateway.plugins.interface import Pacing, Plugin, Request, Response


class Bandwidth(Plugin[BandwidthConfig]):
    """Slows answers down."""

    name = "bandwidth"
    order = 890
    Config = BandwidthConfig

    def on_response(self, request: Request, response: Response) -> None:
        """Set the pace; the proxy keeps it."""
        response.pacing = Pacing(self.config.rate, self.config.after, self.services.clock())
