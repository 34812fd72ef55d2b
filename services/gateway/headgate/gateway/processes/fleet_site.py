"""The admin site of a replica with several workers: asks all of them, answers as one."""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

import aiohttp
from aiohttp import web
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from headgate.common.errors import SettingsError
from headgate.common.service.admin import Health

TIMEOUT = aiohttp.ClientTimeout(total=2.0)
"""For a worker to answer: one that takes longer counts as not ready."""


class FleetSite:
    """Pages about all workers of this replica."""

    def __init__(self, sockets: Mapping[int, Path], health: Health) -> None:
        self._sockets = sockets
        self._health = health
        self._sessions: dict[int, aiohttp.ClientSession] = {}
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> None:
        """Bind and serve.

        Raises:
            SettingsError: the port cannot be bound.
        """
        self._sessions = {
            index: aiohttp.ClientSession(connector=aiohttp.UnixConnector(path=str(path)), timeout=TIMEOUT)
            for index, path in self._sockets.items()
        }
        app = web.Application()
        app.router.add_get("/healthz", self.healthz)
        app.router.add_get("/readyz", self.readyz)
        app.router.add_get("/metrics", self.metrics)
        for path in ("/version", "/table", "/explain"):
            app.router.add_get(path, self.forward)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            raise SettingsError(f"admin_port: {port} cannot be bound on {host}: {error.strerror or error}") from error

    async def stop(self) -> None:
        """Close; harmless when not started."""
        if self._runner is not None:
            await self._runner.cleanup()
        for session in self._sessions.values():
            await session.close()

    async def healthz(self, request: web.Request) -> web.Response:
        """Say that the parent lives; it restarts workers by itself."""
        checks = self._health.liveness()
        healthy = not any(checks.values())
        return web.json_response({"healthy": healthy, "checks": checks}, status=200 if healthy else 503)

    async def readyz(self, request: web.Request) -> web.Response:
        """Ready when every worker is."""
        answers = await asyncio.gather(*(self._ask_readiness(index) for index in self._sessions))
        checks = self._health.readiness() | dict(answers)
        ready = not any(checks.values())
        return web.json_response({"ready": ready, "checks": checks}, status=200 if ready else 503)

    async def _ask_readiness(self, index: int) -> tuple[str, str | None]:
        name = f"worker {index}"
        try:
            async with self._sessions[index].get("http://worker/readyz") as answer:
                complaints = [text for text in (await answer.json())["checks"].values() if text]
                return name, "; ".join(complaints) or None
        except (aiohttp.ClientError, OSError, TimeoutError):
            return name, "does not answer"

    async def metrics(self, request: web.Request) -> web.Response:
        """All workers' metrics, each with a label `worker`, and the parent's own with `worker="parent"`."""
        texts = await asyncio.gather(*(self._read_metrics(index) for index in self._sessions))
        merged = MergedMetrics([("parent", generate_latest(REGISTRY).decode()), *texts])
        registry = CollectorRegistry(auto_describe=False)
        registry.register(merged)
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _read_metrics(self, index: int) -> tuple[str, str]:
        try:
            async with self._sessions[index].get("http://worker/metrics") as answer:
                return str(index), await answer.text()
        except (aiohttp.ClientError, OSError, TimeoutError):
            return str(index), ""

    async def forward(self, request: web.Request) -> web.StreamResponse:
        """Hand a page about the table to the first worker that answers; they all have the same table."""
        for session in self._sessions.values():
            try:
                async with session.get(f"http://worker{request.rel_url}") as answer:
                    content_type = answer.headers.get("Content-Type", "application/json")
                    return web.Response(
                        body=await answer.read(), status=answer.status, headers={"Content-Type": content_type}
                    )
            except (aiohttp.ClientError, OSError, TimeoutError):
                continue
        raise web.HTTPServiceUnavailable(text="no worker answers")


class MergedMetrics(Collector):
    """Metric families of several processes, joined by name, told apart by a label `worker`."""

    def __init__(self, texts: Iterable[tuple[str, str]]) -> None:
        self._texts = texts

    def collect(self) -> Iterable[Metric]:
        """Return each family once, as Prometheus' text format demands."""
        families: dict[str, Metric] = {}
        for worker, text in self._texts:
            for family in text_string_to_metric_families(text):
                merged = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                for sample in family.samples:
                    labels = {**sample.labels, "worker": worker}
                    merged.samples.append(sample._replace(labels=labels))
        return families.values()
