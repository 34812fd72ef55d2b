"""`consumer-restriction`: which consumers or groups may use a route, or which routes a consumer may use."""

import json
from collections.abc import Collection

from headgate.common.plugins.security.consumer_restriction import ConsumerRestrictionConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response


class ConsumerRestriction(Plugin[ConsumerRestrictionConfig]):
    """Lets in whom its lists let in."""

    name = "consumer-restriction"
    order = 2400
    preview = "yes"
    Config = ConsumerRestrictionConfig
    is_shareable = True
    waits_for_consumer = True
    decides_by_consumer = True

    def __init__(self, config: ConsumerRestrictionConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._whitelist = frozenset(config.whitelist)
        self._blacklist = frozenset(config.blacklist)
        self._methods = {allowed.user: frozenset(allowed.methods) for allowed in config.allowed_by_methods}

    def on_request(self, request: Request) -> Response | None:
        """Let the request pass, or refuse it."""
        names = self._names(request)
        if not names:
            kind = self.config.type
            return Response.refusal(401, f"The request is rejected, please check the {kind} for this request")
        return None if self._allows(names, request.method) else self._refusal()

    def _names(self, request: Request) -> Collection[str]:
        """Return what the request is, in the words of the lists."""
        match self.config.type:
            case "consumer_name":
                return {request.consumer.name} if request.consumer is not None else ()
            case "consumer_group_id":
                return {request.consumer.group} if request.consumer is not None and request.consumer.group else ()
            case "route_id":
                return {request.route, request.route.partition("|")[2]}
            case "service_id":
                return set(request.upstreams.split(","))

    def _allows(self, names: Collection[str], method: str) -> bool:
        if not self._blacklist.isdisjoint(names):
            return False
        if self._whitelist:
            return not self._whitelist.isdisjoint(names)
        return all(method in self._methods[name] for name in names if name in self._methods)

    def _refusal(self) -> Response:
        config = self.config
        reason = f"The {config.type} is forbidden."
        if config.rejected_msg is None:
            return Response.refusal(config.rejected_code, reason)
        text = json.dumps({"message": config.rejected_msg}) + "\n"
        return Response.text(config.rejected_code, text, reason=reason, content_type="application/json")
