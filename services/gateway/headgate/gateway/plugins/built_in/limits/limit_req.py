"""`limit-req`: a steady rate by key, with bursts: the leaky bucket of nginx's `limit_req`.

Each request fills the bucket of its key by one, and it empties at the rate. What is in it beyond the burst is refused;
what is within waits for its turn, unless `nodelay` lets it through at once (ingress-nginx `limit-rps`: a burst of five
times the rate, no delay).
"""

import asyncio
from collections.abc import Awaitable
from typing import NamedTuple

from headgate.common.errors import StoreError
from headgate.common.plugins.limits.limits import LimitReqConfig, RequestRate
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.keyed import Keyed, KeyReader, counted_as, exempted, not_counted, rejection


class _Bucket:
    __slots__ = ("at", "excess")

    def __init__(self, at: float) -> None:
        self.at = at
        self.excess = 0.0


class _Rate(NamedTuple):
    """One rate with its buckets."""

    rule: RequestRate
    buckets: Keyed[_Bucket]

    def pour(self, key: str, now: float) -> float | None:
        """Return what would be in the bucket before a request; None if the request does not fit."""
        bucket = self.buckets.get(key)
        if bucket is None:
            return 0.0
        excess = max(bucket.excess - self.rule.rate * (now - bucket.at) + 1, 0.0)
        return None if excess > self.rule.burst else excess

    def keep(self, key: str, now: float, excess: float) -> None:
        """Count a request."""
        bucket = self.buckets.get(key)
        if bucket is None:
            self.buckets.put(key, _Bucket(now))
        else:
            bucket.excess, bucket.at = excess, now


class LimitReq(Plugin[LimitReqConfig]):
    """Keeps requests to a rate, or to several."""

    name = "limit-req"
    order = 1001
    unforeseen = "counts requests"
    Config = LimitReqConfig

    def __init__(self, config: LimitReqConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._exempted = exempted(config)
        self._key = KeyReader(config.key, config.key_type)
        self._shared = services.find_counters(config)
        self._counted_as = counted_as(config, services)
        first = RequestRate.model_construct(rate=config.rate, burst=config.burst)
        self._rates = [_Rate(rule, self._buckets(rule)) for rule in (first, *config.also)]

    def _buckets(self, rule: RequestRate) -> Keyed[_Bucket]:
        state_key = (self.name, self._counted_as, rule.rate, rule.burst, self.config.key)
        buckets: Keyed[_Bucket] = self.services.shared.get(state_key, Keyed)
        return buckets

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Refuse what is over rate and burst, delay what is over the rate."""
        if self._exempted is not None and request.client in self._exempted:
            return None
        key = self._key.read(request) or request.client
        if self._shared is not None:
            return self._pour_together(request, key)
        now, delay_s = self.services.clock(), 0.0
        counted: list[tuple[_Rate, float]] = []
        for rate in self._rates:
            excess = rate.pour(key, now)
            if excess is None:  # a request that one rate refuses is counted by none
                return rejection(self.config, "over the rate of requests")
            counted.append((rate, excess))
            delay_s = max(delay_s, excess / rate.rule.rate)
        for rate, excess in counted:
            rate.keep(key, now, excess)
        return asyncio.sleep(delay_s) if delay_s > 0 and not self.config.nodelay else None

    async def _pour_together(self, request: Request, key: str) -> Response | None:
        config, delay_s = self.config, 0.0
        assert self._shared is not None
        for rate, burst in ((each.rule.rate, each.rule.burst) for each in self._rates):
            place = f"headgate:limit-req:{self._counted_as}|{rate:g}|{burst:g}|{key}"
            try:
                excess = await self._shared.pour(place, rate, burst)
            except StoreError as error:
                return not_counted(config, self.services, request, str(error))
            if excess is None:
                return rejection(config, "over the rate of requests")
            delay_s = max(delay_s, excess / rate)
        if delay_s > 0 and not config.nodelay:
            await asyncio.sleep(delay_s)
        return None
