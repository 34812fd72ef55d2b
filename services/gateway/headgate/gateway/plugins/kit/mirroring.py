"""Mirrors: send a copy of some requests elsewhere, and never look at the answers.

The original waits for nothing: its body is collected as it passes, and the copy goes out once it is whole. Copies that
would be too many or too large are dropped, not queued.
"""

import asyncio
import random
from functools import partial
from typing import Final

from headgate.common.plugins.config import PluginConfig
from headgate.common.table import Mirror
from headgate.gateway.plugins.interface import BodyFilter, Plugin, PluginServices, Request
from headgate.gateway.plugins.kit.calls import CallFailed, call_upstream, call_url
from headgate.gateway.plugins.kit.memory import Allocation, plugin_memory

_ANSWER_LIMIT = 16 << 20
MAX_HELD: Final = 128 << 20
"""Bytes of bodies under way, for each mirror: the default of `max_body` times that of `max_in_flight`."""
MIRROR: Final = "proxy-mirror"
"""Name of the plugin; that of a consumer stands in the place of the mirrors of its route."""
ORDER: Final = 1010
_NO_CONFIG: Final = PluginConfig()


class Mirroring:
    """Sends the copies of one mirror."""

    def __init__(self, mirror: Mirror, services: PluginServices) -> None:
        self.mirror = mirror
        self._services = services
        self._target = services.find_group(mirror.group) if mirror.group else mirror.upstream
        self._memory = plugin_memory(services)
        self._under_way: set[asyncio.Task[None]] = set()
        self._held = 0
        """Bytes of their bodies."""
        self.dropped = 0
        """Copies that were not made, as too many were under way or the body was too long."""

    @property
    def under_way(self) -> int:
        """Copies that were sent and not answered."""
        return len(self._under_way)

    def filter(self, request: Request) -> BodyFilter | None:
        """Copy the request, at once if it has no body, or when its body has passed through the filter."""
        mirror = self.mirror
        if random.random() >= mirror.share:  # noqa: S311 - a share of requests, nothing to guess
            return None
        copied = self._copy(request)
        memory = Allocation(self._memory, MIRROR)
        if request.content_length == 0 or not mirror.with_body:
            self.send(copied, b"", memory)
            return None
        if request.content_length is not None and request.content_length > mirror.max_body:
            self.dropped += 1
            return None
        return _Collecting(self, copied, memory)

    def _copy(self, request: Request) -> Request:
        """Copy what later plugins and the proxy may change."""
        mirror = self.mirror
        path = request.path
        if mirror.path:
            path = mirror.path if mirror.path_mode == "replace" else mirror.path.rstrip("/") + path
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
        copied.upstream_host = mirror.host or None
        if not (mirror.address or mirror.host):
            copied.upstream_host = request.upstream_host or request.authority or None
        return copied

    def send(self, copied: Request, body: bytes, memory: Allocation) -> None:
        """Send a copy with its body, which is counted already, unless too many are under way."""
        if len(self._under_way) >= self.mirror.max_in_flight or self._held + len(body) > MAX_HELD:
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
        mirror, services = self.mirror, self._services
        timeout_s = mirror.timeout_s
        try:
            if mirror.address:
                url = mirror.address.rstrip("/") + copied.target
                await call_url(
                    services, url, copied, timeout_s=timeout_s, max_body=_ANSWER_LIMIT, verify=mirror.verify_tls
                )
            else:
                await call_upstream(services, self._target, copied, timeout_s=timeout_s, max_body=_ANSWER_LIMIT)
        except CallFailed as error:
            services.logger.debug("mirror of %s: %s", copied.route, error)


class _Collecting(BodyFilter):
    """Lets the body pass and keeps a copy, up to the limit."""

    keeps_length = True

    def __init__(self, mirror: Mirroring, copied: Request, memory: Allocation) -> None:
        self._mirror = mirror
        self._copied = copied
        self._memory = memory
        self._parts: list[bytes] | None = []
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        if self._parts is not None:
            self._size += len(data)
            self._parts.append(bytes(data))
            if self._size > self._mirror.mirror.max_body or not self._memory.grow(len(data)):
                self._parts = None
                self._memory.release()
                self._mirror.dropped += 1
        return data

    def finish(self) -> bytes:
        if self._parts is not None:
            self._mirror.send(self._copied, b"".join(self._parts), self._memory)
        return b""


class MirrorPart(Plugin[PluginConfig]):
    """A mirror of a route, at its place among the route's plugins: behind those that change the request."""

    name = MIRROR
    order = ORDER

    def __init__(self, mirror: Mirror, services: PluginServices) -> None:
        super().__init__(_NO_CONFIG, services)
        self.mirroring = Mirroring(mirror, services)

    def request_body_filter(self, request: Request) -> BodyFilter | None:
        """Copy the request."""
        return self.mirroring.filter(request)
