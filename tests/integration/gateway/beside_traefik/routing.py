"""The same rules in Traefik and in a gateway of ours, the same requests to both."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fakes.gateway.proxied import Conversation
from fakes.gateway.served import Served, at, named, origins, served, to
from fakes.peers.traefik import ENTRY_POINT, Traefik, traefik
from headgate.common.table import Rank, Route, TableEntry, VirtualHost
from headgate.translator.dialects.traefik.rules import Syntax, alternatives, parse_rule

BOUND_S = 10


class Router(NamedTuple):
    """A rule, and what else decides."""

    rule: str
    priority: int = 0
    syntax: Syntax = "v3"


class Asked(NamedTuple):
    """A request; header lines as they are sent."""

    host: str = "a.com"
    target: str = "/"
    method: str = "GET"
    headers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Both:
    """Traefik and ours, running."""

    traefik: Traefik
    ours: Served

    async def winners(self, asked: Asked) -> tuple[str, str]:
        """Return the routers that took a request in Traefik and in ours, or statuses if none did."""
        theirs, ours = await asyncio.gather(_winner(self.traefik.port, asked), _winner(self.ours.port, asked))
        return theirs, ours


async def _winner(port: int, asked: Asked) -> str:
    async with asyncio.timeout(BOUND_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        lines = (f"{asked.method} {asked.target} HTTP/1.1", f"Host: {asked.host}", *asked.headers, "Connection: close")
        writer.write("\r\n".join((*lines, "", "")).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
    found = re.search(rb"(?i)\r\nX-Winner: (\S+)", head)
    return (found[1] if found is not None else head.split(b" ", 2)[1]).decode()


def entries(routers: Mapping[str, Router]) -> list[TableEntry]:
    """Return the table that says what routers say."""
    hosts: dict[str, list[Route]] = {}
    for name, router in routers.items():
        rule = parse_rule(router.rule, router.syntax)
        rank = Rank(priority=rule.priority(router.priority))
        tell = (("response-rewrite", {"headers": {"X-Winner": name}}),)
        for number, one in enumerate(alternatives(rule)):
            route = to("up", name=f"{name}-{number}", plugins=tell)
            route = route.model_copy(update={"path": one.path, "when": one.when, "rank": rank})
            hosts.setdefault(one.host, []).append(route)
    return [VirtualHost(host=host, routes=tuple(routes), unmatched="next-host") for host, routes in hosts.items()]


def configuration(routers: Mapping[str, Router], port: int) -> dict[str, object]:
    """Return Traefik's dynamic configuration of routers."""
    return {
        "http": {
            "routers": {
                name: {
                    "rule": router.rule,
                    "ruleSyntax": router.syntax,
                    "priority": router.priority,
                    "entryPoints": [ENTRY_POINT],
                    "service": "up",
                    "middlewares": [name],
                }
                for name, router in routers.items()
            },
            "middlewares": {name: {"headers": {"customResponseHeaders": {"X-Winner": name}}} for name in routers},
            "services": {"up": {"loadBalancer": {"servers": [{"url": f"http://127.0.0.1:{port}"}]}}},
        }
    }


async def _answer(conversation: Conversation) -> None:
    while True:
        await conversation.request()
        await conversation.send(named(b"up"))


@contextlib.asynccontextmanager
async def both(folder: Path, routers: Sequence[Router]) -> AsyncIterator[Both]:
    """Run both with these routers, whose names are their numbers: `r0`."""
    names = {f"r{number}": router for number, router in enumerate(routers)}
    async with contextlib.AsyncExitStack() as stack:
        (origin,) = await stack.enter_async_context(origins(_answer))
        ours = await stack.enter_async_context(served(at(origin.port), *entries(names)))
        theirs = await stack.enter_async_context(traefik(folder, configuration(names, origin.port)))
        yield Both(theirs, ours)
