"""A plugin under its `_meta`: run for some requests only, or with an answer of its own for refusals.

One whose templates name fields of the body is held back like this until they are there, too.
"""

import json
from collections.abc import Awaitable
from typing import Any

from headgate.common.plugins.expressions import looks_at_body
from headgate.common.plugins.meta import PluginMeta
from headgate.common.plugins.variables import Phase
from headgate.gateway.plugins.interface import BodyFilter, Foreseen, Passes, Plugin, Request, Response
from headgate.gateway.plugins.kit.conditions import compile_expressions, with_body


class UnderMeta(Plugin[Any]):
    """Stands for a plugin whose `_meta` has a filter or an answer, or whose templates need the body."""

    def __init__(self, plugin: Plugin[Any], meta: PluginMeta, body_is_read: Phase | None) -> None:
        super().__init__(plugin.config, plugin.services)
        self.name = plugin.name  # type: ignore[misc]
        self.answer_order = plugin.answer_order  # type: ignore[misc]
        self.finds_consumer = plugin.finds_consumer
        self.waits_for_consumer = plugin.waits_for_consumer
        self.is_nested = plugin.is_nested
        self.plugin = plugin
        self._takes = compile_expressions(meta.filter)
        filters_by_body = looks_at_body(meta.filter)
        self.needs_body = filters_by_body or body_is_read is not None
        self._is_guard = filters_by_body or body_is_read is Phase.REQUEST
        self._decision = f"_meta.{id(self)}"
        self._answer: bytes | None = None
        self._answer_type = "text/plain; charset=utf-8"
        if isinstance(meta.error_response, str):
            self._answer = meta.error_response.encode()
        elif meta.error_response is not None:
            self._answer = json.dumps(meta.error_response).encode() + b"\n"
            self._answer_type = "application/json; charset=utf-8"

    def _is_on(self, request: Request) -> bool:
        if self._takes is None:
            return True
        decision = request.variables.get(self._decision)
        if not isinstance(decision, bool):
            decision = request.variables[self._decision] = self._takes(request, None)
        return decision

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Ask the plugin, if the request is for it."""
        return with_body(request, self._ask, is_guard=self._is_guard) if self.needs_body else self._ask(request)

    def _ask(self, request: Request) -> Response | Awaitable[Response | None] | None:
        if not self._is_on(request):
            return None
        outcome = self.plugin.on_request(request)
        if self._answer is None or outcome is None:
            return outcome
        if isinstance(outcome, Response):
            return self._answered(outcome)
        return self._await(outcome)

    def foresee(self, request: Request) -> Foreseen | Awaitable[Foreseen]:
        """Say what the plugin would do, if the request is for it."""
        return with_body(request, self._foresee, is_guard=self._is_guard) if self.needs_body else self._foresee(request)

    def _foresee(self, request: Request) -> Foreseen | Awaitable[Foreseen]:
        if self._is_on(request):
            return self.plugin.foresee(request)
        return Passes("_meta.filter does not take the request")

    async def _await(self, outcome: Awaitable[Response | None]) -> Response | None:
        response = await outcome
        return None if response is None else self._answered(response)

    def _answered(self, response: Response) -> Response:
        if response.status >= 400 and self._answer is not None:
            response.body = self._answer
            response.headers.set("Content-Type", self._answer_type)
        return response

    def on_response(self, request: Request, response: Response) -> Awaitable[None] | None:
        """Let the plugin see the answer, if the request is for it."""
        return self.plugin.on_response(request, response) if self._is_on(request) else None

    def request_body_filter(self, request: Request) -> BodyFilter | None:
        """Give the plugin's filter, if the request is for it."""
        return self.plugin.request_body_filter(request) if self._is_on(request) else None

    def body_filter(self, request: Request, response: Response) -> BodyFilter | None:
        """Give the plugin's filter, if the request is for it."""
        return self.plugin.body_filter(request, response) if self._is_on(request) else None

    def on_finish(self, request: Request, status: int, seconds: float) -> None:
        """Tell the plugin, if the request is for it."""
        if self._is_on(request):
            self.plugin.on_finish(request, status, seconds)


def under(meta: PluginMeta, plugin: Plugin[Any], body_is_read: Phase | None = None) -> Plugin[Any]:
    """Return a plugin that keeps to its `_meta`, and whose templates find fields of the body if they look for any."""
    if meta.filter or meta.error_response is not None or body_is_read is not None:
        return UnderMeta(plugin, meta, body_is_read)
    return plugin


def overrides(plugin: Plugin[Any], hook: str) -> bool:
    """Tell whether a plugin has a hook of its own."""
    if isinstance(plugin, UnderMeta) and hook == "on_request" and plugin.needs_body:
        return True
    inner = plugin.plugin if isinstance(plugin, UnderMeta) else plugin
    return getattr(type(inner), hook) is not getattr(Plugin, hook)
