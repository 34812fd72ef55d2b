"""`traffic-split`: share requests out among upstreams by rules.

The first rule that takes a request chooses among its upstreams by their weights, in turn; one without `upstream_id` is
the route's own. Requests that no rule takes go there too. An upstream that the table lacks answers its share with 503.
"""

from collections.abc import Awaitable

from headgate.common.plugins.expressions import looks_at_body
from headgate.common.plugins.traffic.traffic_split import SplitRule, TrafficSplitConfig
from headgate.gateway.balancing.round_robin import SmoothRoundRobin
from headgate.gateway.plugins.interface import Foreseen, Passes, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.interface.targets import Endpoints
from headgate.gateway.plugins.kit.conditions import Takes, compile_expressions, with_body


class _Rule:
    """One rule; each worker counts its turns by itself."""

    def __init__(self, rule: SplitRule, services: PluginServices) -> None:
        cases = [compile_expressions(match.vars) for match in rule.match]
        self._cases: list[Takes] = [case for case in cases if case is not None]
        self._takes_all = len(self._cases) < len(cases) or not cases
        self._upstreams: list[Endpoints | None] = [
            services.find_upstream(one.upstream_id) if one.upstream_id is not None else None
            for one in rule.weighted_upstreams
        ]
        self.weights = {one.upstream_id: one.weight for one in rule.weighted_upstreams}
        """By upstreams; None: the route's own."""
        self._turns = SmoothRoundRobin([(index, one.weight) for index, one in enumerate(rule.weighted_upstreams)])

    def takes(self, request: Request) -> bool:
        """Tell whether the rule is for a request."""
        return self._takes_all or any(case(request, None) for case in self._cases)

    def choose(self) -> Endpoints | None:
        """Return whose turn it is; None: the route's own."""
        turn = self._turns.choose()
        return None if turn is None else self._upstreams[turn]


class TrafficSplit(Plugin[TrafficSplitConfig]):
    """Chooses upstreams."""

    name = "traffic-split"
    order = 966
    Config = TrafficSplitConfig

    def __init__(self, config: TrafficSplitConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._rules = [_Rule(rule, services) for rule in config.rules]
        self._needs_body = any(looks_at_body(match.vars) for rule in config.rules for match in rule.match)

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Choose."""
        return with_body(request, self._choose, is_guard=False) if self._needs_body else self._choose(request)

    def foresee(self, request: Request) -> Foreseen | Awaitable[Foreseen]:
        """Say among which upstreams it chooses."""
        return with_body(request, self._foresee, is_guard=False) if self._needs_body else self._foresee(request)

    def _foresee(self, request: Request) -> Foreseen:
        for rule in self._rules:
            if rule.takes(request):
                total = sum(rule.weights.values()) or 1
                shares = (
                    f"{weight / total:.0%} to {key or 'the backends of the route'}"
                    for key, weight in rule.weights.items()
                    if weight
                )
                return Passes(f"sends {', '.join(shares)}")
        return Passes("no rule takes the request: it goes to the backends of the route")

    def _choose(self, request: Request) -> Response | None:
        for rule in self._rules:
            if rule.takes(request):
                request.endpoints = rule.choose()
                break
        return None
