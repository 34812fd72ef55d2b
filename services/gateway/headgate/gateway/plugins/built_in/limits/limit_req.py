"""`limit-req`: a steady rate by key, with bursts: the leaky bucket of nginx's `limit_req`.

Each request fills the bucket of its key by one, and it empties at the rate. What is in it beyond the burst is refused;
what is within waits for its turn, unless `nodelay` lets it through at once (ingress-nginx `limit-rps`: a burst of five
times the rate, no delay).
"""

import asyncio
import math
from collections.abc import Awaitable
from typing import ClassVar

from headgate.common.errors import StoreError
from headgate.common.plugins.limits.limits import LimitReqConfig
from headgate.gateway.counting.peers import Peers
from headgate.gateway.plugins.interface import Plugin, PluginConfig, PluginServices, Request, Response
from headgate.gateway.plugins.kit.durations import duration_text
from headgate.gateway.plugins.kit.key_reader import KeyReader
from headgate.gateway.plugins.kit.keyed import Keyed, counted_as, exempted, not_counted, rejection


class _Bucket:
    __slots__ = ("at", "excess", "place")

    def __init__(self, at: float, place: int) -> None:
        self.at = at
        self.excess = -1.0
        """Before its first request, which leaves it empty."""
        self.place = place

    def catch_up(self, peers: Peers) -> None:
        """Go on from the worker that had a request last."""
        for at, excess, _, _ in peers.read(self.place):
            if self.excess < 0 or at > self.at or (at == self.at and excess > self.excess):
                self.at, self.excess = at, excess

    def show(self, peers: Peers, rate: float) -> None:
        """Show other workers where it stands, until it is empty."""
        peers.write(self.place, self.at, self.excess, 0.0, self.at + (self.excess + 1.0) / rate)


class _Rate:
    """One rate with its buckets."""

    __slots__ = ("_buckets", "_max_delay_s", "_name", "burst", "peers", "rate")

    def __init__(
        self,
        rate: float,
        burst: float,
        max_delay_s: float | None,
        buckets: Keyed[_Bucket],
        peers: Peers | None,
        name: str,
    ) -> None:
        self.rate = rate
        self.burst = burst
        self._max_delay_s = max_delay_s
        self._buckets = buckets
        self._name = name
        self.peers = peers
        """How other workers of the gateway are heard; None: there are none."""

    def wait_s(self, excess: float) -> float | None:
        """Return the seconds that a request waits which finds so much in the bucket; None if it does not fit."""
        max_delay_s = self._max_delay_s
        if max_delay_s is None:
            return excess / self.rate if excess <= self.burst else None
        over = excess - self.burst
        wait_s = over / self.rate if over > 0 else 0.0
        return wait_s if wait_s <= max_delay_s else None

    def bucket(self, key: str, now: float) -> _Bucket:
        """Return the bucket of a key, a new one if there is none."""
        bucket, peers = self._buckets.get(key), self.peers
        if bucket is None:
            place = 0 if peers is None else peers.place(f"{self._name}\0{key}")
            bucket = self._buckets.put(key, _Bucket(now, place))
        if peers is not None:
            bucket.catch_up(peers)
        return bucket


class LimitReq(Plugin[LimitReqConfig]):
    """Keeps requests to a rate, or to several."""

    name: ClassVar[str] = "limit-req"
    order: ClassVar[int] = 1001
    unforeseen: ClassVar[str] = "counts requests"
    Config: ClassVar[type[PluginConfig]] = LimitReqConfig

    def __init__(self, config: LimitReqConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._exempted = exempted(config)
        self._key = KeyReader(config.key, config.key_type, client=config.client)
        is_address = config.key_type == "var" and config.key in ("remote_addr", "$remote_addr")
        self._is_by_client = is_address and config.client is None
        self._shared = services.find_counters(config)
        self._counted_as = counted_as(config, services)
        self._clock = services.clock
        self._delays = not config.nodelay
        rates = [(config.rate, config.burst), *((rule.rate, rule.burst) for rule in config.also)]
        self._rates = [self._rate(rate, burst) for rate, burst in rates]

    def _rate(self, rate: float, burst: float) -> _Rate:
        config, services = self.config, self.services
        state_key = (self.name, self._counted_as, rate, burst, config.key, str(config.client))
        buckets: Keyed[_Bucket] = services.shared.get(state_key, Keyed)
        return _Rate(rate, burst, config.max_delay, buckets, services.peers, repr(state_key))

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Refuse what is over rate and burst, delay what is over the rate."""
        if self._exempted is not None and request.client in self._exempted:
            return None
        key = request.client if self._is_by_client else self._key.read(request) or request.client
        if self._shared is not None:
            return self._pour_together(request, key)
        now, delay_s = self._clock(), 0.0
        counted: list[tuple[_Rate, _Bucket, float]] = []
        for rate in self._rates:
            bucket = rate.bucket(key, now)
            excess = bucket.excess - rate.rate * (now - bucket.at) + 1
            excess = excess if excess > 0 else 0.0
            wait_s = rate.wait_s(excess)
            if wait_s is None:  # a request that one rate refuses is counted by none
                return self._refuse(rate, excess)
            counted.append((rate, bucket, excess))
            delay_s = wait_s if wait_s > delay_s else delay_s
        for rate, bucket, excess in counted:
            bucket.excess, bucket.at = excess, now
            if rate.peers is not None:
                bucket.show(rate.peers, rate.rate)
        return asyncio.sleep(delay_s) if delay_s > 0 and self._delays else None

    def _refuse(self, rate: _Rate, excess: float) -> Response:
        response = rejection(self.config, "over the rate of requests")
        if self.config.max_delay is not None:
            wait_s = (excess - rate.burst) / rate.rate
            response.headers.set("Retry-After", str(math.ceil(wait_s)))
            response.headers.set("X-Retry-In", duration_text(wait_s))
        return response

    async def _pour_together(self, request: Request, key: str) -> Response | None:
        config, delay_s = self.config, 0.0
        assert self._shared is not None
        for each in self._rates:
            rate, burst = each.rate, each.burst
            most = burst + rate * (config.max_delay or 0.0)
            place = f"headgate:limit-req:{self._counted_as}|{rate:g}|{burst:g}|{key}"
            try:
                excess, is_within = await self._shared.pour(place, rate, most)
            except StoreError as error:
                return not_counted(config, self.services, request, str(error))
            wait_s = each.wait_s(min(excess, most)) if is_within else None
            if wait_s is None:
                return self._refuse(each, excess)
            delay_s = max(delay_s, wait_s)
        if delay_s > 0 and not config.nodelay:
            await asyncio.sleep(delay_s)
        return None
