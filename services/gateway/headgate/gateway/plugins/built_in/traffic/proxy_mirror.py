"""`proxy-mirror`: send a copy of some requests elsewhere, and never look at the answers.

The original waits for nothing: its body is collected as it passes, and the copy goes out once it is whole. Copies that
would be too many or too large are dropped, not queued.
"""

from headgate.common.plugins.traffic.proxy_mirror import ProxyMirrorConfig
from headgate.gateway.plugins.interface import BodyFilter, Plugin, PluginServices, Request
from headgate.gateway.plugins.kit.mirroring import MIRROR, ORDER, Mirroring


class ProxyMirror(Plugin[ProxyMirrorConfig]):
    """Mirrors requests where routes do not have it as a field: for consumers, global rules, and under a `_meta`."""

    name = MIRROR
    order = ORDER
    Config = ProxyMirrorConfig

    def __init__(self, config: ProxyMirrorConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self.mirroring = Mirroring(config.as_mirror(), services)

    def request_body_filter(self, request: Request) -> BodyFilter | None:
        """Copy the request."""
        return self.mirroring.filter(request)
