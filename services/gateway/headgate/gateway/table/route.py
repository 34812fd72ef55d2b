"""What a matched request may use: the route's name and timeouts, and the way to an endpoint."""

from collections.abc import Collection, Iterator, Sequence
from copy import copy
from random import Random
from typing import TYPE_CHECKING

from headgate.common.table import Route
from headgate.gateway.balancing.backends import Backends, CanaryBackend
from headgate.gateway.balancing.stickiness import StickyCookie
from headgate.gateway.balancing.upstream import UpstreamHolder
from headgate.gateway.table.conditions import compile_condition
from headgate.gateway.table.policies import compile_policies, guard_policies

if TYPE_CHECKING:
    from headgate.gateway.proxy.endpoint_pool import EndpointPool
    from headgate.gateway.proxy.hooks import RequestHooks
    from headgate.gateway.proxy.request_source import RequestSource
    from headgate.gateway.proxy.traffic import RouteTraffic
    from headgate.gateway.tls.policy import ClientGuard

_CHANCE = Random()  # noqa: S311 - shares load, guards nothing


class CompiledRoute:
    """A route that requests are matched to; the proxy's `RouteTarget`.

    Args:
        host: of the virtual host.
        route: the table's entry.
        backends: holders of its backends, with their weights.
        client_guard: what the host asks of clients' certificates.
        canaries: holders of its canaries.
        chain: its plugins.
        chance: what canaries' shares are drawn from.

    Raises:
        BadMatch: a canary's condition or the cookie cannot be compiled.
    """

    __slots__ = (
        "__weakref__",
        "_backends",
        "_only",
        "connect_timeout_s",
        "name",
        "needs_body",
        "policies",
        "read_timeout_s",
        "send_timeout_s",
        "traffic",
        "upstream_label",
    )

    def __init__(
        self,
        host: str,
        route: Route,
        backends: Sequence[tuple[UpstreamHolder, int]],
        client_guard: "ClientGuard | None" = None,
        canaries: Sequence[UpstreamHolder] = (),
        hooks: "RequestHooks | None" = None,
        chance: Random = _CHANCE,
    ) -> None:
        self.name = f"{host}|{route.name}"
        self.traffic: RouteTraffic | None = None
        """Where its requests are counted: by the name, so that counts go on over swaps."""
        self.policies = compile_policies(route, client_guard, hooks)
        self.connect_timeout_s = route.timeouts.connect_s
        self.send_timeout_s = route.timeouts.send_s
        self.read_timeout_s = route.timeouts.read_s
        holders = [*canaries, *(holder for holder, _ in backends)]
        self.upstream_label = ",".join(holder.key for holder in holders)
        weighted = [holder for holder, weight in backends if weight]
        self.needs_body = False
        """Whether a canary can only be told by the request's body."""
        self._only: UpstreamHolder | None = None
        self._backends: Backends | None = None
        if len(weighted) == 1 and not canaries and route.stickiness is None:
            self._only = weighted[0]
        elif weighted or canaries:
            cookie = StickyCookie(route.stickiness) if route.stickiness is not None else None
            self._backends = Backends(backends, list(self._compile_canaries(route, canaries, chance)), cookie)

    def _compile_canaries(
        self, route: Route, holders: Sequence[UpstreamHolder], chance: Random
    ) -> Iterator[CanaryBackend]:
        for index, (canary, holder) in enumerate(zip(route.canaries, holders, strict=True)):
            when = compile_condition(canary.when, f"canaries[{index}].when") if canary.when else None
            unless = compile_condition(canary.unless, f"canaries[{index}].unless") if canary.unless else None
            self.needs_body |= any(condition is not None and condition.needs_body for condition in (when, unless))
            yield CanaryBackend(holder, when, unless, canary.share, chance)

    def guarded(self, guard: "ClientGuard") -> "CompiledRoute":
        """Return this route for requests of another host, whose clients have to show what that host asks for."""
        route = copy(self)
        route.policies = guard_policies(self.policies, guard)
        return route

    def choose(self, tried: "Collection[EndpointPool]", source: "RequestSource") -> "EndpointPool | None":
        """Choose a backend, then an endpoint of it; tried endpoints only if there is no other."""
        only = self._only
        if only is not None:
            if only.state is not None or tried:
                source.note_upstream(only.state_for(tried))
            return only.balancer.choose(tried, source)
        return None if self._backends is None else self._backends.choose(tried, source)

    def answer_lines(self, source: "RequestSource", pool: "EndpointPool") -> bytes:
        """Return header lines, each with its CRLF, for the answer of an endpoint: a cookie when a new one is due."""
        return b"" if self._backends is None else self._backends.answer_lines(source, pool)

    @property
    def unavailable(self) -> str:
        """Why `choose` found nothing."""
        holders = [self._only] if self._only else list(self._backends.holders if self._backends else ())
        if not holders:
            return f"all backends of {self.name} have weight 0"
        return "; ".join(holder.balancer.unavailable for holder in holders if holder.balancer.unavailable)
