"""The admin site of a service: health, readiness and metrics over HTTP.

    GET /healthz    200 while the process can answer and no liveness check complains, else 503
    GET /readyz     200 when every readiness check is content, else 503
    GET /metrics    Prometheus text (or OpenMetrics, if asked for)

The first two answer JSON: `{"ready": false, "checks": {"table": "no table applied yet"}}`, null for a check that is
content. It has no authentication: bind it to loopback, a unix socket or the pod network.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

_SAMPLES_AT_ONCE = 100
"""Written in about a millisecond."""
_END = b"# EOF\n"
"""Of OpenMetrics."""
_COMMENTS = re.compile(rb"(?m)\A(?:#.*\n)+")

Check = Callable[[], str | None]
"""None is content; a text says what is not."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Health:
    """Named checks of liveness and readiness."""

    def __init__(self) -> None:
        self._readiness: dict[str, Check] = {}
        self._liveness: dict[str, Check] = {}

    def add_readiness(self, name: str, check: Check) -> None:
        """Add (or replace) a check that must be content before the service takes work."""
        self._readiness[name] = check

    def add_liveness(self, name: str, check: Check) -> None:
        """Add (or replace) a check whose complaint means that only a restart helps."""
        self._liveness[name] = check

    def readiness(self) -> dict[str, str | None]:
        """Run the readiness checks."""
        return _run(self._readiness)

    def liveness(self) -> dict[str, str | None]:
        """Run the liveness checks."""
        return _run(self._liveness)

    @property
    def is_ready(self) -> bool:
        """Whether every readiness check is content."""
        return not any(self.readiness().values())


def _run(checks: dict[str, Check]) -> dict[str, str | None]:
    return {name: check() for name, check in checks.items()}


class AdminSite:
    """An aiohttp site on a TCP port, a unix socket, or both."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int | None = 0,
        *,
        unix_socket: Path | None = None,
        health: Health | None = None,
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        """Prepare a site.

        Args:
            host: address to bind.
            port: port to bind; 0 takes a free one, None binds none.
            unix_socket: path of a unix socket to bind besides.
            health: checks to show.
            registry: metrics to show.
        """
        self.health = health or Health()
        self._host, self._port, self._unix_socket = host, port, unix_socket
        self._registry = registry
        self._app = web.Application()
        self._runner: web.AppRunner | None = None
        self.add_route("GET", "/healthz", self._healthz)
        self.add_route("GET", "/readyz", self._readyz)
        self.add_route("GET", "/metrics", self._metrics)

    def add_readiness(self, name: str, check: Check) -> None:
        """Add a readiness check: None is ready, a text says why not."""
        self.health.add_readiness(name, check)

    def add_route(self, method: str, path: str, handler: Handler) -> None:
        """Add a page; before `start` only."""
        self._app.router.add_route(method, path, handler)

    @property
    def url(self) -> str:
        """Base URL of the TCP side, with the port that was bound."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}"

    @property
    def port(self) -> int:
        """Port that was bound; 0 if none."""
        return self._port or 0

    @property
    def is_started(self) -> bool:
        """Whether the site is bound."""
        return self._runner is not None

    async def start(self) -> None:
        """Bind and serve.

        Raises:
            OSError: the address cannot be bound.
        """
        runner = web.AppRunner(self._app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await self._bind(runner)
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner

    async def _bind(self, runner: web.AppRunner) -> None:
        if self._port is not None:
            await web.TCPSite(runner, self._host, self._port).start()
            self._port = runner.addresses[0][1]
        if self._unix_socket is not None:
            self._unix_socket.unlink(missing_ok=True)
            await web.UnixSite(runner, str(self._unix_socket)).start()

    async def stop(self) -> None:
        """Close; harmless when not started."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def _healthz(self, request: web.Request) -> web.Response:
        return _verdict("healthy", self.health.liveness())

    async def _readyz(self, request: web.Request) -> web.Response:
        return _verdict("ready", self.health.readiness())

    async def _metrics(self, request: web.Request) -> web.Response:
        body, content_type = await metrics_page(request.headers.get("Accept", ""), self._registry)
        return web.Response(body=body, headers={"Content-Type": content_type})


async def metrics_page(accept: str = "", registry: CollectorRegistry = REGISTRY) -> tuple[bytes, str]:
    """Write the metrics in the format that an Accept header asks for; return them with their content type."""
    encode, content_type = choose_encoder(accept)
    return await _encode_in_steps(registry, encode), content_type


class _Part:
    """A part of a family's samples, as encoders take registries."""

    def __init__(self, family: Metric, samples: list[Sample]) -> None:
        self._part = Metric(family.name, family.documentation, family.type, family.unit)
        self._part.samples = samples

    def collect(self) -> Iterable[Metric]:
        yield self._part


async def _encode_in_steps(registry: CollectorRegistry, encode: Callable[[Any], bytes]) -> bytes:
    """Write the metrics, and let the event loop turn now and then: there may be tens of thousands of samples."""
    pieces, end = [], b""
    for family in registry.collect():
        samples = iter(family.samples)
        is_first = True
        while (part := list(islice(samples, _SAMPLES_AT_ONCE))) or is_first:
            text = encode(_Part(family, part))
            if text.endswith(_END):
                text, end = text.removesuffix(_END), _END
            pieces.append(text if is_first else _COMMENTS.sub(b"", text))
            is_first = False
            await asyncio.sleep(0)
    return b"".join(pieces) + end


def _verdict(name: str, checks: dict[str, str | None]) -> web.Response:
    is_content = not any(checks.values())
    return web.json_response({name: is_content, "checks": checks}, status=200 if is_content else 503)
