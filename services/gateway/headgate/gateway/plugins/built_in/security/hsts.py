"""`hsts`: tell browsers to ask a host over HTTPS only (RFC 6797)."""

from headgate.common.plugins.security.hsts import HstsConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response


class Hsts(Plugin[HstsConfig]):
    """Adds `Strict-Transport-Security`, over whatever the upstream says."""

    name = "hsts"
    order = 880
    Config = HstsConfig
    preview = "passes"
    is_shareable = True

    def __init__(self, config: HstsConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        parts = [f"max-age={config.max_age}"]
        parts += ["includeSubDomains"] if config.include_subdomains else []
        parts += ["preload"] if config.preload else []
        self._value = "; ".join(parts)

    def on_response(self, request: Request, response: Response) -> None:
        """Add the header to answers over HTTPS; over plain HTTP browsers do not read it."""
        if self.config.force or request.scheme == "https":
            response.headers.set("Strict-Transport-Security", self._value)
