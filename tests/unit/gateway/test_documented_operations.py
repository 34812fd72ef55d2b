"""What operators read is what there is: every metric and every field of the access log stands in the documentation."""

import json
import os
import re
from pathlib import Path

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.metrics_core import Metric

import headgate.common.bus.connection
import headgate.common.stores.nats.following
import headgate.common.stores.redis.link
import headgate.gateway.processes.workers  # noqa: F401 - registers metrics
from fakes.gateway.proxied import OK, answering, proxied
from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.health.stats import HealthStats
from headgate.gateway.observability.access_log import AccessLog
from headgate.gateway.observability.log_metrics import LogFamilies
from headgate.gateway.observability.metrics import TableMetrics
from headgate.gateway.observability.tracing import Tracing
from headgate.gateway.observability.traffic_metrics import EndpointFamilies, RouteFamilies
from headgate.gateway.proxy.pools import PoolRegistry
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.streams.stats import StreamStats
from headgate.gateway.tls import CertificateStore
from headgate.gateway.tls.metrics import TlsFamilies

DOCS = Path(__file__).parents[3] / "docs"
OF_OTHER_SERVICES = (
    "headgate_watcher_",
    "headgate_translator_",
    "headgate_manifest_",
    "headgate_console_",
    "headgate_leader",
    "headgate_admission_",
)


def gateway_families() -> list[Metric]:
    tables, pools = CollectorRegistry(), PoolRegistry()
    TableMetrics(tables)
    collectors = [
        RouteFamilies(ProxyStats()),
        EndpointFamilies(pools, EndpointDirectory(pools)),
        HealthStats(),
        StreamStats(),
        TlsFamilies(CertificateStore()),
        LogFamilies(None),
        tables,
    ]
    of_process = [
        family
        for family in REGISTRY.collect()
        if family.name.startswith("headgate_") and not family.name.startswith(OF_OTHER_SERVICES)
    ]
    return [family for collector in collectors for family in collector.collect()] + of_process


def test_every_metric_of_a_gateway_is_documented_with_its_kind() -> None:
    rows = re.findall(r"(?m)^\| `(headgate_\w+)` \| (\w+) \|", (DOCS / "metrics.md").read_text())
    shown = {
        (family.name + ("_total" if family.type == "counter" else ""), str(family.type))
        for family in gateway_families()
    }
    assert sorted(row for row in rows if not row[0].startswith(OF_OTHER_SERVICES)) == sorted(shown)


async def test_every_field_of_the_json_log_is_documented() -> None:
    reading, writing = os.pipe()
    log = AccessLog("json", writing)
    async with proxied(answering(OK), answering(OK)) as proxy:
        await proxy.origins[0].stop()
        proxy.server.context.access_log = log
        proxy.server.context.tracing = Tracing(1.0)
        await proxy.talk(b"GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: it\r\nReferer: b\r\nConnection: close\r\n\r\n")
        await proxy.talk(b"GET / HTTP/1.1\r\nHost: unknown\r\nConnection: close\r\n\r\n")
        log.close()
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        logged = {name for line in file for name in json.loads(line)}
    text = (DOCS / "access-log.md").read_text().split("## json")[1].split("\n## ")[0]
    named = [name for cell in re.findall(r"(?m)^\| (`.*?`) \| ", text) for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == sorted(logged | {"tls", "user"})  # of which these requests have none
