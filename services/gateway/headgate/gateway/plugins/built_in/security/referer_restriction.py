"""`referer-restriction`: from which pages requests may come, by the host in `Referer`."""

from urllib.parse import urlsplit

from headgate.common.plugins.security.restrictions import RefererRestrictionConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response


class _Hosts:
    """Hosts, and ends of hosts."""

    def __init__(self, listed: tuple[str, ...]) -> None:
        folded = [host.lower() for host in listed]
        self._exact = frozenset(host for host in folded if not host.startswith("*"))
        self._ends = tuple(host[1:] for host in folded if host.startswith("*"))

    def __contains__(self, host: str) -> bool:
        return host in self._exact or host.endswith(self._ends)

    def __bool__(self) -> bool:
        return bool(self._exact or self._ends)


class RefererRestriction(Plugin[RefererRestrictionConfig]):
    """Refuses requests by the page that they come from."""

    name = "referer-restriction"
    order = 2990
    Config = RefererRestrictionConfig
    preview = "yes"
    is_shareable = True
    waits_for_consumer = True

    def __init__(self, config: RefererRestrictionConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._allowed = _Hosts(config.whitelist)
        self._denied = _Hosts(config.blacklist)

    def on_request(self, request: Request) -> Response | None:
        """Refuse a request that may not come."""
        host = _host_of(request.headers.get("Referer") or "")
        if self._may_pass(host) if host else self.config.bypass_missing:
            return None
        return Response.json(403, {"message": self.config.message}, reason=self.config.message)

    def _may_pass(self, host: str) -> bool:
        return host not in self._denied and (not self._allowed or host in self._allowed)


def _host_of(referer: str) -> str:
    try:
        parts = urlsplit(referer)
    except ValueError:
        return ""
    return parts.hostname or "" if parts.scheme in ("http", "https") else ""
