"""`ua-restriction`: which clients may come, by what they call themselves (`User-Agent`)."""

from headgate.common.patterns import Pattern, compile_pattern
from headgate.common.plugins.security.restrictions import UaRestrictionConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response


class UaRestriction(Plugin[UaRestrictionConfig]):
    """Refuses clients by name."""

    name = "ua-restriction"
    order = 2999
    Config = UaRestrictionConfig
    preview = "yes"
    is_shareable = True
    waits_for_consumer = True

    def __init__(self, config: UaRestrictionConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._allowed = [compile_pattern(pattern) for pattern in config.allowlist]
        self._denied = [compile_pattern(pattern) for pattern in config.denylist]

    def on_request(self, request: Request) -> Response | None:
        """Refuse a client that may not come."""
        agents = [agent.encode("latin-1") for agent in request.headers.get_all("User-Agent")]
        if self._may_pass(agents) if agents else self.config.bypass_missing:
            return None
        return Response.json(403, {"message": self.config.message}, reason=self.config.message)

    def _may_pass(self, agents: list[bytes]) -> bool:
        if any(_matches(self._denied, agent) for agent in agents):
            return False
        return not self._allowed or any(_matches(self._allowed, agent) for agent in agents)


def _matches(patterns: list[Pattern], agent: bytes) -> bool:
    return any(pattern.search(agent) is not None for pattern in patterns)
