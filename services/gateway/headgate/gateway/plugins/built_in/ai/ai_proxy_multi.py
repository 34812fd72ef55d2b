"""`ai-proxy-multi`: send requests to one of several large language models, and to another one if that fails.

Requests and answers are those of `ai-proxy`. Instances of the greatest priority are asked first, by their weights.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Collection

from headgate.common.plugins.ai.proxy import AiBalancer, AiNamedInstance, AiProxyMultiConfig
from headgate.gateway.balancing.round_robin import SmoothRoundRobin
from headgate.gateway.plugins.built_in.ai.asking import ModelFailed
from headgate.gateway.plugins.built_in.ai.model_requests import ModelPlugin, first_refusal
from headgate.gateway.plugins.interface import PluginServices, Request, Response
from headgate.gateway.plugins.interface.variables import cookie_value, variable
from headgate.gateway.plugins.kit.patterns import Template


class AiProxyMulti(ModelPlugin[AiProxyMultiConfig]):
    """Asks one of several providers."""

    name = "ai-proxy-multi"
    order = 2
    Config = AiProxyMultiConfig

    def __init__(self, config: AiProxyMultiConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self.keep_tokens(config.instances)
        levels: defaultdict[int, list[AiNamedInstance]] = defaultdict(list)
        for instance in config.instances:
            levels[instance.priority].append(instance)
        self._instances = {instance.name: instance for instance in config.instances}
        self._levels = [_Level(levels[priority], config.balancer) for priority in sorted(levels, reverse=True)]
        self._has_other_limits = config.falls_back("rate_limiting", "instance_health_and_rate_limiting")

    async def on_request(self, request: Request) -> Response:
        """Answer with what a model says."""
        asked = await self.read(request)
        if isinstance(asked, Response):
            return asked
        tried: set[str] = set()
        failures = 0
        while (instance := self._choose(request, tried)) is not None:
            tried.add(instance.name)
            refusal = await first_refusal(request, instance.name)
            if refusal is not None:
                if self._has_other_limits and len(self._instances) > 1:
                    continue
                return refusal
            began = self.services.clock()
            try:
                return await self.ask(instance, instance.name, asked, request)
            except ModelFailed as failure:
                failures += 1
                self.services.logger.warning("ai-proxy-multi of %s: %s: %s", request.route, instance.name, failure)
                if not self._asks_another(failure.response.status, self.services.clock() - began, failures):
                    return failure.response
        if failures:
            return Response.refusal(502, "none of the models that were asked has answered")
        return Response.text(503, "all servers tried", reason="no model takes the request now")

    def fails(self, status: int) -> bool:
        """Tell whether a provider's status is a failure."""
        return super().fails(status) or status in self.config.fallback_http_statuses

    def _asks_another(self, status: int, seconds: float, failures: int) -> bool:
        config = self.config
        is_reason = (
            (status == 429 and config.falls_back("http_429"))
            or (status >= 500 and config.falls_back("http_5xx"))
            or status in config.fallback_http_statuses
        )
        if not is_reason or len(self._instances) == 1:
            return False
        within_ms = config.retry_on_failure_within_ms
        if within_ms is not None and seconds * 1000 > within_ms:
            return False
        return config.max_retries is None or failures <= config.max_retries

    def _choose(self, request: Request, tried: Collection[str]) -> AiNamedInstance | None:
        for level in self._levels:
            name = level.choose(request, tried)
            if name is not None:
                return self._instances[name]
        return None


class _Level:
    """Instances of one priority."""

    def __init__(self, instances: list[AiNamedInstance], balancer: AiBalancer) -> None:
        self._weights = {instance.name: instance.weight for instance in instances if instance.weight > 0}
        self._turns = SmoothRoundRobin(list(self._weights.items()))
        self._balancer = balancer
        self._template = Template(balancer.key or "")

    def choose(self, request: Request, tried: Collection[str]) -> str | None:
        """Return an instance that was not tried; None: there is none."""
        left = [name for name in self._weights if name not in tried]
        if not left:
            return None
        if self._balancer.algorithm == "roundrobin":
            return self._turns.choose(tried.__contains__ if tried else None)
        hashed = self._hashed(request)
        return min(left, key=lambda name: _distance(hashed, name) / self._weights[name])

    def _hashed(self, request: Request) -> str:
        """Return what instances are chosen by; the client's address if the request has nothing of it."""
        key = self._balancer.key or ""
        match self._balancer.hash_on:
            case "vars":
                found = variable(request, key.removeprefix("$"))
            case "header":
                found = request.headers.get(key)
            case "cookie":
                found = cookie_value("; ".join(request.headers.get_all("Cookie")), key)
            case "consumer":
                found = request.consumer.name if request.consumer is not None else None
            case "vars_combinations":
                found = self._template.render(request)
        return found or request.client


def _distance(hashed: str, name: str) -> float:
    """Return a number that is drawn by both, for weighted rendezvous hashing: the least of them has the key."""
    digest = hashlib.blake2b(f"{name}\n{hashed}".encode("utf-8", "replace"), digest_size=8).digest()
    return -math.log((int.from_bytes(digest) + 1) / (1 << 64))
