"""Clusters, with their shares of the requests and of the healthy endpoints."""

from datetime import UTC, datetime, timedelta
from typing import Any

from headgate.common.traffic import endpoint_name
from headgate.console.live.view import LiveView
from headgate.operations.clusters.known import read_clusters
from headgate.operations.status.watchers import SILENT_AFTER
from headgate.operations.tables.endpoints import lines_of
from headgate.operations.traffic.window import Grouping, Order


async def lines(view: LiveView) -> list[dict[str, Any]]:
    """Return what is known of each cluster."""
    known = await read_clusters(view.stores, view.table)
    upstreams = view.served.upstreams.values() if view.served else ()
    cluster_of = {
        endpoint_name(one.address, one.port): one.cluster for upstream in upstreams for one in upstream.endpoints
    }
    requests: dict[str, int] = {}
    for line in view.window.report(Grouping.ENDPOINT, Order.REQUESTS).lines:
        cluster = cluster_of.get(line.name, "")
        requests[cluster] = requests.get(cluster, 0) + line.counts.requests
    healthy: dict[str, int] = {}
    total: dict[str, int] = {}
    for endpoint in lines_of(upstreams, view.told):
        total[endpoint.cluster] = total.get(endpoint.cluster, 0) + 1
        healthy[endpoint.cluster] = healthy.get(endpoint.cluster, 0) + endpoint.is_fit
    all_requests, all_healthy = sum(requests.values()) or 1, sum(healthy.values()) or 1
    return [
        {
            "name": name,
            "requests": requests.get(name, 0) / all_requests,
            "healthy": healthy.get(name, 0) / all_healthy,
            "ready": healthy.get(name, 0),
            "endpoints": total.get(name, 0),
            "weight": one.settings.weight if one.settings.weight is not None else "",
            "priority": one.settings.priority or "",
            "drained": one.settings.drained,
            "is_served": one.is_served,
            "last_change": one.last_change,
            "last_contact": one.last_contact,
            "is_silent": _is_silent(one.last_contact),
        }
        for name, one in known.items()
    ]


def _is_silent(heard: datetime | None) -> bool:
    return heard is not None and datetime.now(UTC) - heard > max(SILENT_AFTER, timedelta(seconds=90))
