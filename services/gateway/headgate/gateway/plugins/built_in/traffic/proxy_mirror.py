"""`proxy-mirror`: send a copy of some requests elsewhere, and never look at the answers.

The original waits for nothing: its body is collected as it passes, and the copy goes out once it is whole. Copies that
would be too many or too large are dropped, not queued.
"""

import asyncio
import random
from functools import partial
from typing import Final

from headgate.common.plugins.traffic.proxy_mirror import ProxyMirrorConfig
from headgate.gateway.plugins.interface import BodyFilter, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.calls import CallFailed, call_upstream, call_url
from headgate.gateway.plugins.kit.memory import Allocation, plugin_memory

_ANSWER_LIMIT = 16 << 20
MAX_HELD: Final = 128 << 20
"""Bytes of bodies under way, for each use: the default of `max_body` times that of `max_in_flight`."""


class ProxyMirror(Plugin[ProxyMirrorConfig]):
    """Mirrors requests."""

    name = "proxy-mirror"
    order = 1010
    Config = ProxyMirrorConfig

    def __init__(self, config: ProxyMirrorConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._memory = plugin_memory(services)
        self._under_way: set[asyncio.Task[None]] = set()
        self._held = 0
        """Bytes of their bodies."""
        self.dropped = 0
        """Copies that were not made, as too many were under way or the body was too long."""

    def request_body_filter(self, request: Request) -> BodyFilter | None:
        """Copy the request, at once if it has no body, or when its body has passed."""
        config = self.config
        if random.random() >= config.sample_ratio:  # noqa: S311 - a share of requests, nothing to guess
            return None
        copied = self._copy(request)
        memory = Allocation(self._memory, self.name)
        if request.content_length == 0 or not config.mirror_body:
            self.send(copied, b"", memory)
            return None
        if request.content_length is not None and request.content_length > config.max_body:
            self.dropped += 1
            return None
        return _Collecting(self, copied, memory)

    def _copy(self, request: Request) -> Request:
        """Copy what later plugins and the proxy may change."""
        config = self.config
        path = request.path
        if config.path is not None:
            path = config.path if config.path_concat_mode == "replace" else config.path.rstrip("/") + path
        copied = Request(
            method=request.method,
            scheme=request.scheme,
            host=request.host,
            authority=request.authority,
            path=path,
            query=request.query,
            headers=request.headers.copy(),
            client=request.client,
            request_id=request.id,
            route=request.route,
        )
        copied.upstream_host = config.host_header
        if config.host_header is None and config.upstream is not None:
            copied.upstream_host = request.upstream_host or request.authority or None
        return copied

    def send(self, copied: Request, body: bytes, memory: Allocation) -> None:
        """Send a copy with its body, which is counted already, unless too many are under way."""
        if len(self._under_way) >= self.config.max_in_flight or self._held + len(body) > MAX_HELD:
            self.dropped += 1
            return
        copied.replace_body(body)
        task = asyncio.get_running_loop().create_task(self._deliver(copied), name="mirrored request")
        self._under_way.add(task)
        self._held += len(body)
        task.add_done_callback(partial(self._forget, memory, len(body)))

    def _forget(self, memory: Allocation, size: int, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._held -= size
        memory.release()

    async def _deliver(self, copied: Request) -> None:
        config = self.config
        try:
            if config.host is not None:
                url = config.host.rstrip("/") + copied.target
                await self._call_url(url, copied)
            elif config.upstream is not None:
                await call_upstream(
                    self.services, config.upstream, copied, timeout_s=config.timeout, max_body=_ANSWER_LIMIT
                )
        except CallFailed as error:
            self.services.logger.debug("proxy-mirror of %s: %s", copied.route, error)

    async def _call_url(self, url: str, copied: Request) -> Response:
        config = self.config
        return await call_url(
            self.services, url, copied, timeout_s=config.timeout, max_body=_ANSWER_LIMIT, verify=config.ssl_verify
        )


class _Collecting(BodyFilter):
    """Lets the body pass and keeps a copy, up to the limit."""

    keeps_length = True

    def __init__(self, mirror: ProxyMirror, copied: Request, memory: Allocation) -> None:
        self._mirror = mirror
        self._copied = copied
        self._memory = memory
        self._parts: list[bytes] | None = []
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        if self._parts is not None:
            self._size += len(data)
            self._parts.append(bytes(data))
            if self._size > self._mirror.config.max_body or not self._memory.grow(len(data)):
                self._parts = None
                self._memory.release()
                self._mirror.dropped += 1
        return data

    def finish(self) -> bytes:
        if self._parts is not None:
            self._mirror.send(self._copied, b"".join(self._parts), self._memory)
        return b""
