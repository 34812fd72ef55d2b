"""What `up` prints once traffic flows: where things are, and a line to try."""

import json
from collections.abc import Mapping
from typing import Any

import aiohttp

from headgate.cli.up.options import UpOptions

ASK_S = 5.0


async def banner(options: UpOptions, admin_url: str, nats_url: str) -> list[str]:
    """Return the lines; the gateway is asked for its routes to make one that works."""
    return [
        "ready: traffic is served, and every change of its source is followed",
        f"  http    http://127.0.0.1:{options.http_port}/",
        f"  https   https://127.0.0.1:{options.https_port}/",
        f"  admin   {admin_url}/readyz, /metrics, /table, /explain",
        f"  nats    {nats_url}",
        f"  data    {options.data_dir}",
        f"  try     {try_line(await _ask_for_table(admin_url), options.http_port)}",
    ]


async def _ask_for_table(admin_url: str) -> Mapping[str, Any]:
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ASK_S)) as session,
            session.get(f"{admin_url}/table") as answer,
        ):
            found: Mapping[str, Any] = json.loads(await answer.read())
            return found
    except (aiohttp.ClientError, TimeoutError, ValueError):
        return {}  # only the line to try suffers


def try_line(table: Mapping[str, Any], http_port: int) -> str:
    """Make a command from the first host of a table, as the gateway's `/table` shows it."""
    hosts = sorted(table.get("hosts", ()), key=lambda host: (host["host"].startswith("*"), host["host"]))
    if not hosts:
        return "no route is served yet: `headgate check PATH` finds mistakes in manifests"
    host, paths = hosts[0]["host"], [route["path"] for route in hosts[0]["routes"]]
    path = min(paths, key=len, default="/")
    # A wildcard takes any one label; `*` takes every host, and then no header is needed.
    header = "" if host == "*" else f"-H 'Host: {host.replace('*', 'any', 1)}' "
    return f"curl {header}http://127.0.0.1:{http_port}{path}"
