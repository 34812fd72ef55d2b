"""What `up` prints once traffic flows: where things are, and a line to try."""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import aiohttp

from headgate.cli.up.options import UpOptions

ASK_S = 5.0
HOSTS_READ = 1000
TRIED = 20
"""Routes that the gateway is asked about at most: one that answers is among the first, or next to nothing does."""


class Attempt(NamedTuple):
    """A request that a route of the table should take."""

    host: str
    """A name; empty for any."""
    path: str


async def banner(options: UpOptions, admin_url: str, nats_url: str) -> list[str]:
    """Return the lines; the gateway is asked for its routes to make one that works."""
    return [
        "ready: traffic is served, and every change of its source is followed",
        f"  http    http://127.0.0.1:{options.http_port}/",
        f"  https   https://127.0.0.1:{options.https_port}/",
        f"  admin   {admin_url}/readyz, /metrics, /table, /explain",
        *([f"  console http://127.0.0.1:{options.console_port}/"] if options.console_port else []),
        f"  nats    {nats_url}",
        f"  data    {options.data_dir}",
        f"  try     {try_line(await find_attempt(admin_url), options.http_port)}",
    ]


async def find_attempt(admin_url: str) -> Attempt | None:
    """Return a request that an endpoint answers, else the first that a route takes; None if there is no route."""
    first: Attempt | None = None
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ASK_S)) as session:
        try:
            table = await _get(session, f"{admin_url}/table", {"limit": str(HOSTS_READ)})
            for attempt in islice(attempts(table), TRIED):
                first = first or attempt
                url = f"http://{attempt.host or '127.0.0.1'}{attempt.path}"
                if is_answered(await _get(session, f"{admin_url}/explain", {"url": url})):
                    return attempt
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return first  # only the line to try suffers
    return first


async def _get(session: aiohttp.ClientSession, url: str, query: Mapping[str, str] | None = None) -> Mapping[str, Any]:
    async with session.get(url, params=query) as answer:
        found: Mapping[str, Any] = json.loads(await answer.read())
        return found


def attempts(table: Mapping[str, Any]) -> Iterator[Attempt]:
    """Yield requests for the routes of a table, as the gateway's `/table` shows it: simple ones first."""
    for host in sorted(table.get("hosts", ()), key=lambda host: (host["host"].startswith("*"), host["host"])):
        # A wildcard takes any one label; `*` takes every host.
        name = "" if host["host"] == "*" else host["host"].replace("*", "any", 1)
        for path in sorted({route["path"] for route in host["routes"]}, key=lambda path: (len(path), path)):
            yield Attempt(name, path)


def is_answered(explanation: Mapping[str, Any]) -> bool:
    """Whether a request reaches an endpoint, as the gateway's `/explain` tells it."""
    return any(endpoint["gets_requests"] for backend in explanation["backends"] for endpoint in backend["endpoints"])


def try_line(attempt: Attempt | None, http_port: int) -> str:
    """Make a command of a request."""
    if attempt is None:
        return "no route is served yet: `headgate check PATH` finds mistakes in manifests"
    header = f"-H 'Host: {attempt.host}' " if attempt.host else ""
    return f"curl {header}http://127.0.0.1:{http_port}{attempt.path}"
