"""Every query of the dashboards, asked of the stack's Prometheus while requests are served: `make stack-test`."""

import asyncio
import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import aiohttp
import pytest

from stack.engine import BUILD_S, ROOT, eventually
from stack.running import Stack, address_of, load, port_of

NOT_HERE = (
    "headgate_admission_",  # A webhook that an API server asks.
    "headgate_translator_admission_",
    "headgate_watcher_status_",  # Written to API servers.
    "headgate_watcher_refused_total",  # Objects that are too large.
    "headgate_follower_renewals_total",  # Counted when one had to be given up.
    "headgate_health_circuit_rejections_total",
    "headgate_health_retry_budget_rejections_total",
    "headgate_connections_refused_total",
    "headgate_client_errors_total",  # Of HTTP/2.
    "headgate_endpoint_errors_total",  # Nothing fails here.
    "headgate_upstream_errors_total",
    'code=~"5.."',
    'code=~"4.."',
    "headgate_health_ejections_total",
    "headgate_health_unhealthy_total",
    "headgate_health_unavailable_endpoints",
    "count by (cluster, namespace, job)",  # Of what is not as it should be.
    "headgate_stream_active",  # There are no streams.
)
"""What does not happen to this stack; queries of it have to be right, but may find nothing."""
VARIABLES = dict.fromkeys(("job", "route", "upstream", "host", "namespace", "origin"), ".*") | {"__rate_interval": "1m"}
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(BUILD_S)]


def queries() -> Iterator[tuple[str, str]]:
    """Where each query is, and its text with the variables filled in."""
    for path in sorted((ROOT / "deploy" / "grafana").glob("*.json")):
        for panel in panels(json.loads(path.read_text())):
            for target in panel.get("targets", ()):
                text = re.sub(r"\$([a-z_]\w*)", lambda found: VARIABLES[found[1]], target["expr"])
                yield f"{path.stem}: {panel['title']}: {target['refId']}", text


def panels(board: Any) -> Iterator[Any]:
    for panel in board["panels"]:
        yield panel
        yield from panel["panels"] if panel["type"] == "row" else ()


async def has_values(url: str, query: str) -> bool:
    """Whether a query finds series with numbers. A query that is wrong fails the test."""
    async with aiohttp.ClientSession() as session, session.get(url, params={"query": query}) as answer:
        said = await answer.json()
    assert said["status"] == "success", (query, said)
    return any(not math.isnan(float(each["value"][1])) for each in said["data"]["result"])


async def provoke(gateway: str) -> None:
    """Let be counted what clients do wrong: an unknown host, and plain text where TLS is spoken."""
    line = b"GET / HTTP/1.1\r\nHost: nobody.localhost\r\n\r\n"
    for inside in (8080, 8443):
        reader, writer = await asyncio.open_connection(await address_of(gateway), inside)
        writer.write(line)
        writer.write_eof()
        with suppress(ConnectionError):
            await reader.read()
        writer.close()


async def test_every_query_of_the_dashboards_finds_what_happens(stack: Stack) -> None:
    await stack.start(profiles="redis,prometheus", gateways=2)
    gateways = await stack.wait_for_gateways(2)
    (prometheus,) = await stack.containers("prometheus")
    url = f"http://127.0.0.1:{await port_of(prometheus, 9090)}/api/v1/query"
    async with load(stack, *gateways):
        for where, query in queries():

            async def is_found(query: str = query) -> bool:
                if await has_values(url, query) or any(each in query for each in NOT_HERE):
                    return True
                await stack.exchange_certificate()
                for each in gateways:
                    await provoke(each)
                return False

            await eventually(f"{where} finds series: {query}", is_found)
