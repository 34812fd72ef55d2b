"""`uri-blocker`: refuse requests by path and query.

Rules are held against the path as it was sent and as servers read it, so that `/%61dmin` and `//admin` are `/admin`.
"""

from headgate.common.patterns import compile_pattern
from headgate.common.plugins.security.restrictions import UriBlockerConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.decoded_paths import decoded


class UriBlocker(Plugin[UriBlockerConfig]):
    """Refuses requests by what they ask for."""

    name = "uri-blocker"
    order = 2900
    Config = UriBlockerConfig
    preview = "yes"
    is_shareable = True

    def __init__(self, config: UriBlockerConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._rules = [compile_pattern(rule, ignore_case=config.case_insensitive) for rule in config.block_rules]

    def on_request(self, request: Request) -> Response | None:
        """Refuse a request that a rule matches."""
        if self.config.only_path:
            targets = {request.path.encode("latin-1")}
        else:
            path, target = request.original_path, request.original_target.encode("latin-1")
            targets = {target, decoded(path) + target[len(path) :]}
        if not any(rule.search(target) is not None for target in targets for rule in self._rules):
            return None
        config, reason = self.config, "blocked by a rule for its path or query"
        if config.rejected_msg is None:
            return Response.refusal(config.rejected_code, reason)
        return Response.json(config.rejected_code, {"error_msg": config.rejected_msg}, reason=reason)
