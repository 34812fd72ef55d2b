"""`real-ip`: take the client's address from where another proxy has put it.

Plugins behind it, keys, hashing and the access log go by the new address, and the upstream learns it in `X-Real-IP`. A
gateway that is always behind the same proxies better names them once, in its setting `trusted_proxies`.
"""

from headgate.common.plugins.traffic.real_ip import RealIpConfig
from headgate.gateway.model.addresses import NetworkSet, is_address
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request
from headgate.gateway.plugins.interface.variables import variable

_CHAIN = "http_x_forwarded_for"


class RealIp(Plugin[RealIpConfig]):
    """Replaces the client's address."""

    name = "real-ip"
    order = 23000
    Config = RealIpConfig
    preview = "with-client"
    is_shareable = True

    def __init__(self, config: RealIpConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._trusted = NetworkSet(config.trusted_addresses)

    def on_request(self, request: Request) -> None:
        """Look for the address."""
        if self._trusted and request.client not in self._trusted:
            return
        address, port = _split_port(self._find(request) or "")
        if is_address(address):
            request.variables.setdefault("realip_remote_addr", request.client)
            request.variables["remote_port"] = port if port.isascii() and port.isdigit() and len(port) <= 5 else ""
            request.client = address
            request.headers.set("X-Real-IP", address)

    def _find(self, request: Request) -> str | None:
        source = self.config.source.removeprefix("$")
        claimed = request.claims.get(source[5:].lower().replace("_", "-").encode("latin-1", "replace"))
        if not source.startswith("http_") or claimed is None:
            return variable(request, source)
        if source.lower() != _CHAIN:
            return claimed.decode("latin-1")
        chain = [member.strip() for member in claimed.decode("latin-1").split(",") if member.strip()]
        if self.config.recursive:
            strangers = [member for member in chain if _split_port(member)[0] not in self._trusted]
            chain = strangers or chain[:1]
        return chain[-1] if chain else None


def _split_port(text: str) -> tuple[str, str]:
    """Take the port off an address: `[::1]:80`, `192.0.2.1:80`; empty if it has none."""
    text = text.strip()
    if text.startswith("["):
        address, _, rest = text[1:].partition("]")
        return address, rest.removeprefix(":")
    address, _, port = text.partition(":") if text.count(":") == 1 else (text, "", "")
    return address, port
