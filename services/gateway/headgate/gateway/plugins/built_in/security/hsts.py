"""`hsts`: tell browsers to ask a host over HTTPS only (RFC 6797)."""

from typing import ClassVar, Literal

from headgate.common.plugins.security.hsts import HstsConfig
from headgate.gateway.plugins.interface import Plugin, PluginConfig, PluginServices, Request, Response


class Hsts(Plugin[HstsConfig]):
    """Adds `Strict-Transport-Security`, over whatever the upstream says."""

    name: ClassVar[str] = "hsts"
    order: ClassVar[int] = 880
    Config: ClassVar[type[PluginConfig]] = HstsConfig
    preview: ClassVar[Literal["no", "yes", "with-client", "passes"]] = "passes"
    is_shareable: ClassVar[bool] = True

    def __init__(self, config: HstsConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        parts = [f"max-age={config.max_age}"]
        parts += ["includeSubDomains"] if config.include_subdomains else []
        parts += ["preload"] if config.preload else []
        self._value = "; ".join(parts)

    def on_response(self, request: Request, response: Response) -> None:
        """Add the header to answers over HTTPS; over plain HTTP browsers do not read it."""
        if self.config.force or request.scheme == "https" or self._is_said_to_be_secure(request):
            response.headers.set("Strict-Transport-Security", self._value)

    def _is_said_to_be_secure(self, request: Request) -> bool:
        return any(request.headers.get(name) == value for name, value in self.config.secure_headers.items())
