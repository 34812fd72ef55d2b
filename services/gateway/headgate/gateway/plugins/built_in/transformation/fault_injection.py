"""`fault-injection`: answer some requests with an error, or late, to see what clients make of it."""

import asyncio
import random
from collections.abc import Awaitable

from headgate.common.plugins.expressions import looks_at_body
from headgate.common.plugins.transformation.fault_injection import FaultInjectionConfig
from headgate.gateway.plugins.interface import Foreseen, Headers, Passes, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.interface.errors import Unforeseeable
from headgate.gateway.plugins.kit.conditions import Takes, compile_expressions, with_body
from headgate.gateway.plugins.kit.patterns import Template


class FaultInjection(Plugin[FaultInjectionConfig]):
    """Injects faults."""

    name = "fault-injection"
    order = 11000
    Config = FaultInjectionConfig
    is_shareable = True

    def __init__(self, config: FaultInjectionConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._aborts = compile_expressions(config.abort.vars) if config.abort else None
        self._delays = compile_expressions(config.delay.vars) if config.delay else None
        parts = (config.abort, config.delay)
        self._needs_body = any(looks_at_body(part.vars) for part in parts if part is not None)
        self._body = Template(config.abort.body) if config.abort else None
        self._headers = (
            [(name, Template(value)) for name, value in config.abort.headers.items()] if config.abort else []
        )

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Delay or answer the request, if it is drawn."""
        return with_body(request, self._inject, is_guard=False) if self._needs_body else self._inject(request)

    def _inject(self, request: Request) -> Response | Awaitable[Response | None] | None:
        delay = self.config.delay
        if delay is not None and _is_drawn(request, delay.percentage, self._delays):
            return self._late(request, delay.duration)
        return self._abort(request)

    def foresee(self, request: Request) -> Foreseen | Awaitable[Foreseen]:
        """Say what becomes of the request where that is not drawn by chance."""
        return with_body(request, self._foresee, is_guard=False) if self._needs_body else self._foresee(request)

    def _foresee(self, request: Request) -> Foreseen:
        abort, delay = self.config.abort, self.config.delay
        if abort is not None and _is_for(request, self._aborts):
            if 0 < abort.percentage < 100:
                share = f"{abort.percentage:g} % of requests"
                raise Unforeseeable(f"draws by chance: answers {abort.http_status} to {share}")
            if abort.percentage:
                return self._abort(request)
        if delay is not None and _is_for(request, self._delays):
            return Passes(f"delays {delay.percentage:g} % of requests by {delay.duration:g} s")
        return None

    async def _late(self, request: Request, seconds: float) -> Response | None:
        await asyncio.sleep(seconds)
        return self._abort(request)

    def _abort(self, request: Request) -> Response | None:
        abort = self.config.abort
        if abort is None or self._body is None or not _is_drawn(request, abort.percentage, self._aborts):
            return None
        headers = Headers((name, value.render(request)) for name, value in self._headers)
        body = self._body.render(request).encode("latin-1")
        return Response(abort.http_status, headers, body, reason="injected fault")


def _is_for(request: Request, takes: Takes | None) -> bool:
    return takes is None or takes(request, None)


def _is_drawn(request: Request, percentage: float, takes: Takes | None) -> bool:
    return _is_for(request, takes) and random.random() * 100 < percentage  # noqa: S311 - a share of requests, nothing to guess
