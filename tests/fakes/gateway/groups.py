"""Groups of backends that are served."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fakes.gateway.proxied import Origin, Script, answering
from fakes.gateway.served import Served, at, named, origins, served, site, to
from fakes.gateway.table import ORIGIN
from headgate.common.table import (
    Backend,
    BackendGroup,
    Failover,
    PluginUse,
    Route,
    TableEntry,
)

NAMES = ("a", "b", "c", "d")

UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\ndown"


def group(key: str, **fields: Any) -> BackendGroup:
    return BackendGroup.model_validate({"key": key, "provenance": ORIGIN, **fields})


def up(name: str, weight: int = 1, **fields: Any) -> Backend:
    return Backend(upstream=name, weight=weight, **fields)


def within(key: str, weight: int = 1, **fields: Any) -> Backend:
    return Backend(group=key, weight=weight, **fields)


def failover(key: str, main: Backend, fallback: Backend, *statuses: int) -> BackendGroup:
    return group(key, failover=Failover(main=main, fallback=fallback, statuses=statuses))


def mark(name: str) -> tuple[PluginUse, ...]:
    set_header = PluginUse(name="proxy-rewrite", config={"headers": {"add": {"X-To": name}}})
    return set_header, PluginUse(name="response-rewrite", config={"headers": {"add": [f"X-From: {name}"]}})


def to_group(key: str = "g", **fields: Any) -> Route:
    return to("a", **fields).model_copy(update={"backends": (within(key),)})


@asynccontextmanager
async def grouped(
    *entries: TableEntry, route: Route | None = None, scripts: dict[str, Script] | None = None
) -> AsyncIterator[tuple[Served, dict[str, Origin]]]:
    """A route to the group `g`, beside upstreams of which each answers with its name."""
    made = {name: answering(named(name.encode())) for name in NAMES} | (scripts or {})
    async with origins(*made.values()) as running:
        by_name = dict(zip(made, running, strict=True))
        upstreams = [at(origin.port, key=name) for name, origin in by_name.items()]
        async with served(site(route or to_group()), *upstreams, *entries) as proxy:
            yield proxy, by_name
