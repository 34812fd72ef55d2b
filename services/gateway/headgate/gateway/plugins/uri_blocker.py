"""`uri-blocker`: refuse requests by path and query."""

from headgate.common.patterns import compile_pattern
from headgate.common.plugins.restrictions import UriBlockerConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response


class UriBlocker(Plugin[UriBlockerConfig]):
    """Refuses requests by what they ask for."""

    name = "uri-blocker"
    order = 2900
    Config = UriBlockerConfig

    def __init__(self, config: UriBlockerConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._rules = [compile_pattern(rule, ignore_case=config.case_insensitive) for rule in config.block_rules]

    def on_request(self, request: Request) -> Response | None:
        """Refuse a request that a rule matches."""
        target = request.original_target.encode("latin-1")
        if not any(rule.search(target) is not None for rule in self._rules):
            return None
        config, reason = self.config, "blocked by a rule for its path or query"
        if config.rejected_msg is None:
            return Response.refusal(config.rejected_code, reason)
        return Response.json(config.rejected_code, {"error_msg": config.rejected_msg}, reason=reason)
