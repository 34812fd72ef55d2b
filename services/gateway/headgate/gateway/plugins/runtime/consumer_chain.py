"""The plugins of a route that recognises consumers, and how those of a consumer and of its group come in.

A consumer's plugin stands in the place of its group's of the same name, and both in that of the route's (Apache APISIX:
consumer, consumer group, route, plugin config, service). Who the consumer is, is known behind the last plugin that
recognises one. From there on the request goes through plugins that were merged for it, once for each consumer:

- those that come behind by their order run in it, whoever they are of;
- of those whose place is before it the consumer's own run first, unless the route has one of that name: this has been
  asked. Plugins that restrict, as `ip-restriction`, wait for the consumer in such routes whatever their order.

Plugins of all routes (global rules) come before and are never replaced.

Answers pass through all of them, so that a consumer's `cors` or `response-rewrite` has its say in any case.
"""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

from headgate.common.table import PluginUse
from headgate.gateway.plugins.interface import BodyFilter, PluginServices, Request, Response
from headgate.gateway.plugins.interface.consumers import KnownConsumer, KnownGroup, drop_claims
from headgate.gateway.plugins.interface.errors import PluginRefused
from headgate.gateway.plugins.kit.keyed import Keyed
from headgate.gateway.plugins.runtime.chain import GLOBAL, Part, PluginChain

MakeParts = Callable[[Sequence[PluginUse], str, str], list[Part]]
"""Makes plugins whose state belongs to what the text names, and to an owner; raises PluginRefused."""

_REMEMBERED = 1024
"""Consumers whose plugins one route keeps merged; merging takes some 10 microseconds."""


class _Merged(NamedTuple):
    """What was made of a route's plugins for a consumer."""

    consumer: KnownConsumer
    group: KnownGroup | None
    chain: PluginChain


class ConsumerChain(PluginChain):
    """The plugins of a route of which at least one recognises consumers."""

    __slots__ = ("_behind", "_make_parts", "_merged", "_threshold")

    def __init__(self, parts: Iterable[Part], services: PluginServices, make_parts: MakeParts) -> None:
        ordered = sorted(parts, key=lambda part: -part[0])
        self._threshold = min(order for order, plugin in ordered if plugin.finds_consumer)
        """Order of the last that recognises consumers."""
        placed = [self._placed(part) for part in ordered]
        super().__init__(placed, services, [plugin for order, plugin in placed if order >= self._threshold])
        self._request_hooks = (*self._request_hooks, ("consumers", self._go_on))
        self._behind = PluginChain(placed, services, [plugin for order, plugin in placed if order < self._threshold])
        self._make_parts = make_parts
        self._merged: Keyed[_Merged] = Keyed(_REMEMBERED)

    def _placed(self, part: Part) -> Part:
        """Give a plugin that waits for the consumer its place right behind those that recognise it."""
        order, plugin = part
        waits = plugin.waits_for_consumer and self._threshold <= order < GLOBAL
        return (self._threshold - 1, plugin) if waits else part

    def on_request(self, request: Request) -> Response | Coroutine[Any, Any, Response | None] | None:
        """Run the request hooks, those of the consumer too. What a client claims to be is dropped first."""
        drop_claims(request.headers)
        return super().on_request(request)

    def _go_on(self, request: Request) -> Response | Coroutine[Any, Any, Response | None] | None:
        """Run the request hooks that come behind the recognition of the consumer."""
        consumer = request.consumer
        if consumer is None:
            return self._behind.on_request(request)
        group = self._services.consumers.group(consumer.group)
        if not consumer.plugins and group is None:
            return self._behind.on_request(request)
        held = self._merged.get(consumer.name)
        if held is None or held.consumer is not consumer or held.group is not group:
            try:
                held = _Merged(consumer, group, self._merge(consumer, group))
            except PluginRefused as refused:
                return Response.refusal(500, str(refused))
            self._merged.put(consumer.name, held)
        request.chain = held.chain
        return held.chain.on_request(request)

    def _merge(self, consumer: KnownConsumer, group: KnownGroup | None) -> PluginChain:
        """Put the plugins of a consumer and its group in the place of the route's. Raises PluginRefused."""
        own: dict[str, Part] = {}
        for one in (group, consumer):
            for part in self._parts_of(one) if one is not None else ():
                own[part[1].name] = self._placed(part)
        kept = [part for part in self._parts if part[0] >= GLOBAL or part[1].name not in own]
        passed = [plugin for order, plugin in self._parts if self._threshold <= order < GLOBAL]
        names = {plugin.name for plugin in passed}
        merged = sorted([*kept, *own.values()], key=lambda part: -part[0])
        early = {plugin for _, plugin in own.values() if plugin.name not in names}
        asked = [plugin for order, plugin in merged if order < self._threshold or plugin in early]
        return PluginChain(merged, self._services, asked, [plugin for plugin in passed if plugin.name in own])

    def _parts_of(self, one: KnownConsumer | KnownGroup) -> list[Part]:
        """Return the plugins of a consumer or a group, made when they are first needed. Raises PluginRefused."""
        if one.refused is None and one.parts is None:
            try:
                made = self._make_parts(one.plugins, one.title, one.owner)
                one.parts = [part for part in made if not part[1].finds_consumer]
            except PluginRefused as refused:
                one.refused = PluginRefused(refused.plugin, refused.field, f"of {one.title}: {refused.message}")
                self._services.logger.error("requests of %s cannot be served: %s", one.title, one.refused)
        if one.refused is not None:
            raise one.refused
        parts: list[Part] = one.parts
        return parts

    # What comes after the request hooks goes through the consumer's plugins where there are such.

    def on_response(self, request: Request, response: Response) -> Coroutine[Any, Any, None] | None:
        """Run the response hooks."""
        chain = _chosen(request)
        return super().on_response(request, response) if chain is None else chain.on_response(request, response)

    def request_filter(self, request: Request) -> BodyFilter | None:
        """Join the filters for the request's body."""
        chain = _chosen(request)
        return super().request_filter(request) if chain is None else chain.request_filter(request)

    def response_filter(self, request: Request, response: Response) -> BodyFilter | None:
        """Join the filters for the answer's body."""
        chain = _chosen(request)
        return super().response_filter(request, response) if chain is None else chain.response_filter(request, response)

    def on_finish(self, request: Request, status: int, seconds: float) -> None:
        """Tell the plugins that the request has ended."""
        chain = _chosen(request)
        if chain is None:
            super().on_finish(request, status, seconds)
        else:
            chain.on_finish(request, status, seconds)


def _chosen(request: Request) -> PluginChain | None:
    """Return the plugins that a request's consumer leads to, if these are not the route's."""
    chain = request.chain
    return chain if isinstance(chain, PluginChain) else None
