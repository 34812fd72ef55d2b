"""`limit-req`: a steady rate by key, with bursts: the leaky bucket of nginx's `limit_req`.

Each request fills the bucket of its key by one, and it empties at the rate. What is in it beyond the burst is refused;
what is within waits for its turn, unless `nodelay` lets it through at once (ingress-nginx `limit-rps`: a burst of five
times the rate, no delay).
"""

import asyncio
from collections.abc import Awaitable

from headgate.common.errors import StoreError
from headgate.common.plugins.limits.limits import LimitReqConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.keyed import Keyed, KeyReader, exempted, not_counted, rejection


class _Bucket:
    __slots__ = ("at", "excess")

    def __init__(self, at: float) -> None:
        self.at = at
        self.excess = 0.0


class LimitReq(Plugin[LimitReqConfig]):
    """Keeps requests to a rate."""

    name = "limit-req"
    order = 1001
    unforeseen = "counts requests"
    Config = LimitReqConfig

    def __init__(self, config: LimitReqConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._exempted = exempted(config)
        self._key = KeyReader(config.key, config.key_type)
        self._shared = services.find_counters(config)
        state_key = (self.name, services.scope, config.rate, config.burst, config.key)
        self._buckets: Keyed[_Bucket] = services.shared.get(state_key, Keyed)

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Refuse what is over rate and burst, delay what is over the rate."""
        if self._exempted is not None and request.client in self._exempted:
            return None
        key = self._key.read(request) or request.client
        if self._shared is not None:
            return self._pour_together(request, key)
        excess = self._pour(key)
        if excess is None:
            return rejection(self.config, "over the rate of requests")
        if excess <= 0 or self.config.nodelay:
            return None
        return asyncio.sleep(excess / self.config.rate)

    async def _pour_together(self, request: Request, key: str) -> Response | None:
        config = self.config
        assert self._shared is not None
        place = f"headgate:limit-req:{self.services.scope}|{config.rate:g}|{config.burst:g}|{key}"
        try:
            excess = await self._shared.pour(place, config.rate, config.burst)
        except StoreError as error:
            return not_counted(config, self.services, request, str(error))
        if excess is None:
            return rejection(config, "over the rate of requests")
        if excess > 0 and not config.nodelay:
            await asyncio.sleep(excess / config.rate)
        return None

    def _pour(self, key: str) -> float | None:
        """Count a request: requests in the bucket before it, None if it does not fit."""
        now = self.services.clock()
        bucket = self._buckets.get(key)
        if bucket is None:
            self._buckets.put(key, _Bucket(now))
            return 0.0
        excess = max(bucket.excess - self.config.rate * (now - bucket.at) + 1, 0.0)
        if excess > self.config.burst:
            return None
        bucket.excess = excess
        bucket.at = now
        return excess
