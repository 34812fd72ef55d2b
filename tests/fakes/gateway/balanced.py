"""Upstreams to choose from, with a clock and chances that tests hold."""

from collections import Counter
from random import Random

from fakes.gateway.requests import PLAIN, AskedRequest
from fakes.gateway.table import ORIGIN, FakePools
from headgate.common.table import Balancing, Endpoint, Upstream
from headgate.gateway.balancing.compile import compile_upstream
from headgate.gateway.balancing.endpoints import EndpointDirectory, EndpointSlot
from headgate.gateway.balancing.levels import NOWHERE, Place
from headgate.gateway.balancing.upstream import UpstreamBalancer

KEY = "c1/default/web:80"


class Clock:
    """Monotonic seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.readings = 0
        """How often it was read: once for each plan, and for each choice by a plan that ends."""

    def __call__(self) -> float:
        self.readings += 1
        return self.now


class World:
    """One worker's endpoints."""

    def __init__(self, seed: int = 1, place: Place = NOWHERE) -> None:
        self.clock = Clock()
        self.place = place
        self.directory = EndpointDirectory(FakePools(), self.clock, Random(seed))  # type: ignore[arg-type]

    def balancer(
        self, *endpoints: Endpoint, previous: UpstreamBalancer | None = None, **balancing: object
    ) -> UpstreamBalancer:
        policies = Balancing(**balancing)  # type: ignore[arg-type]
        entry = Upstream(key=KEY, endpoints=endpoints, balancing=policies, provenance=ORIGIN)
        return compile_upstream(entry, self.directory, 0, self.place, previous)

    def took(self, slot: EndpointSlot, seconds: float) -> None:
        """Let an endpoint answer in so many seconds, as the exchange does."""
        latency = slot.open_pool().latency
        assert latency is not None
        latency.observe(seconds, self.clock())


def number(slot: EndpointSlot | None) -> int:
    """The number that `fakes.gateway.table.endpoint` made it with."""
    assert slot is not None
    return int(slot.key[0].rpartition(".")[2])


def chosen(balancer: UpstreamBalancer, source: AskedRequest = PLAIN) -> int:
    """The number of the next endpoint."""
    return number(balancer.pick((), source))


def tally(balancer: UpstreamBalancer, count: int, source: AskedRequest = PLAIN) -> dict[int, int]:
    """How often each endpoint is chosen."""
    return dict(Counter(chosen(balancer, source) for _ in range(count)))


def slot_of(balancer: UpstreamBalancer, wanted: int) -> EndpointSlot:
    """The slot of an endpoint by number."""
    return next(slot for slot in balancer.slots if number(slot) == wanted)
