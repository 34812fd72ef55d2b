"""The gateway's own pages on the admin site.

GET /version                                    table, version, pin and listeners of this worker; while a table is
                                                rolled out, the revision whose routes it serves
GET /table                                      all routes, those of streams too
GET /consumers                                  all consumers, without what is secret
GET /explain?url=URL[&method=GET][&header=Name: value]...[&client=ADDRESS][&body=TEXT]
                                                why a request goes where it goes
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from urllib.parse import urlsplit

from aiohttp import web

from headgate.common.service.admin import AdminSite
from headgate.common.snapshot import Version
from headgate.common.table import Backend, Consumer, Listener, Route, StreamRoute, VirtualHost
from headgate.common.table.shards import Shard
from headgate.gateway.balancing.levels import Place
from headgate.gateway.plugins.runtime.verdicts import Preview
from headgate.gateway.proxy.heads.paths import PathNormalization
from headgate.gateway.table.condition_text import describe
from headgate.gateway.table.explaining.backends import HealthOf
from headgate.gateway.table.explaining.explain import explain
from headgate.gateway.table.listener_ports import OwnPorts
from headgate.gateway.table.view import TableView

ITEMS_AT_ONCE = 64
"""Hosts or consumers written between two turns of the event loop, so that a page of 10,000 does not hold up traffic."""


class TablePages:
    """Pages about one worker's table, called `table`, that is asked for paths by this `path_normalization`."""

    def __init__(
        self,
        view: TableView,
        table: str,
        listeners: Callable[[], Sequence[str]],
        path_normalization: PathNormalization,
        pinned: Callable[[], Version | None],
        routes: Callable[[], Version | None],
        place: Place,
        health_of: HealthOf,
        preview: Preview,
        own_ports: OwnPorts,
        shard: Shard | None = None,
    ) -> None:
        self._view = view
        self._table = table
        self._path_normalization = path_normalization
        self._listeners = listeners
        self._pinned = pinned
        self._place = place
        self._health_of = health_of
        self._preview = preview
        self._own_ports = own_ports
        self._routes = routes
        self._shard = shard

    def add_to(self, admin: AdminSite) -> None:
        """Add the pages to a site that has not started."""
        admin.add_route("GET", "/version", self.show_version)
        admin.add_route("GET", "/table", self.show_table)
        admin.add_route("GET", "/consumers", self.show_consumers)
        admin.add_route("GET", "/explain", self.show_explanation)

    async def show_version(self, request: web.Request) -> web.StreamResponse:
        """Say what is served."""
        return web.json_response(self._about())

    async def show_table(self, request: web.Request) -> web.StreamResponse:
        """Stream what `show_version` says and all routes, or those of `limit` hosts:
        `{..., "streams": [], "table_listeners": [], "hosts": [{"host", "routes": []}]}`.
        """
        limit = _read_limit(request)
        said: dict[str, object] = {
            "streams": [_describe_stream(entry) for entry in self._view.entries(StreamRoute)],
            "table_listeners": [_describe_listener(entry) for entry in self._view.entries(Listener)],
        }
        hosts = islice(self._view.entries(VirtualHost), limit)
        return await self._stream(request, said, "hosts", map(_describe_host, hosts))

    async def show_consumers(self, request: web.Request) -> web.StreamResponse:
        """Stream what `show_version` says and all consumers: `{..., "consumers": [{"name", "credentials": []}]}`."""
        return await self._stream(request, {}, "consumers", map(_describe_consumer, self._view.entries(Consumer)))

    async def _stream(
        self, request: web.Request, said: dict[str, object], name: str, items: Iterator[dict[str, object]]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json; charset=utf-8"})
        with suppress(ConnectionResetError):  # whoever asked has read enough
            await response.prepare(request)
            head = json.dumps({**self._about(), **said})
            await response.write(head[:-1].encode() + b', "%b": [\n' % name.encode())
            async for piece in _in_slices(items):
                await response.write(piece)
            await response.write(b"\n]}\n")
        return response

    async def show_explanation(self, request: web.Request) -> web.StreamResponse:
        """Answer with an `Explanation`; 400 if the URL is missing or none."""
        url = urlsplit(request.query.get("url", ""))
        if url.scheme not in ("http", "https") or not url.netloc:
            text = "say which request: /explain?url=http://host/path, and method=, header=Name: value if you like"
            raise web.HTTPBadRequest(text=text)
        explanation = explain(
            self._view,
            request.query.get("method", "GET"),
            url.netloc.rpartition("@")[2],
            f"{url.path or '/'}?{url.query}",
            [_split_header(text) for text in request.query.getall("header", [])],
            scheme=url.scheme,
            client=request.query.get("client", ""),
            body=request.query.get("body", "").encode(),
            path_normalization=self._path_normalization,
            place=self._place,
            preview=self._preview,
            health_of=self._health_of,
            own_ports=self._own_ports,
            shard=self._shard,
        )
        return web.json_response(text=explanation.model_dump_json())

    def _about(self) -> dict[str, object]:
        pinned, routes = self._pinned(), self._routes()
        return {
            "table": self._table,
            "version": self._view.version_label or None,
            "pinned": str(pinned) if pinned else None,
            "routes": str(routes) if routes else None,
            "shard": str(self._shard) if self._shard is not None else None,
            "listeners": [*self._listeners()],
        }


def _read_limit(request: web.Request) -> int | None:
    text = request.query.get("limit")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise web.HTTPBadRequest(text=f"limit={text}: must be a number of hosts")
    return int(text)


def _split_header(text: str) -> tuple[str, str]:
    name, _, value = text.partition(":")
    return name.strip(), value.strip()


async def _in_slices(items: Iterator[dict[str, object]]) -> AsyncIterator[bytes]:
    separator = ""
    for count, item in enumerate(items):
        yield (separator + json.dumps(item)).encode()
        separator = ",\n"
        if count % ITEMS_AT_ONCE == 0:
            await asyncio.sleep(0)


def _describe_host(virtual_host: VirtualHost) -> dict[str, object]:
    listeners = {"listeners": virtual_host.listeners} if virtual_host.listeners else {}
    return {"host": virtual_host.host, **listeners, "routes": [_describe_route(route) for route in virtual_host.routes]}


def _describe_stream(entry: StreamRoute) -> dict[str, object]:
    return entry.model_dump(mode="json", exclude_defaults=True)


def _describe_listener(entry: Listener) -> dict[str, object]:
    said = entry.model_dump(mode="json", exclude_defaults=True, exclude={"tls", "defaults"})
    return {**said, "plugins": [use.name for use in entry.defaults.plugins]}


def _describe_consumer(consumer: Consumer) -> dict[str, object]:
    return {
        "name": consumer.name,
        "group": consumer.group,
        "labels": consumer.labels,
        "credentials": [{"plugin": each.use.name, "name": each.name} for each in consumer.credentials],
        "plugins": [use.name for use in consumer.plugins],
        "provenance": consumer.provenance.model_dump(),
    }


def _describe_backend(backend: Backend) -> dict[str, object]:
    kind = "group" if backend.group else "upstream"
    return {kind: backend.target, "weight": backend.weight}


def _describe_route(route: Route) -> dict[str, object]:
    return {
        "name": route.name,
        "path_type": route.path.type,
        "path": route.path.value,
        "priority": route.rank.priority,
        "condition": describe(route.when) if route.when is not None else "",
        "backends": [_describe_backend(backend) for backend in route.backends],
        "timeouts": route.timeouts.model_dump(exclude_none=True),
        "provenance": route.provenance.model_dump(),
    }
