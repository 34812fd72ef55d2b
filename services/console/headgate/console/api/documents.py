"""What the console knows as JSON data."""

from collections.abc import Mapping
from typing import Any

from headgate.common.heartbeats import Heartbeat
from headgate.common.table import Route, Upstream
from headgate.common.traffic import CLASSES, Counts, endpoint_name, percentile
from headgate.console.live.served_table import RouteRow, ServedTable
from headgate.operations.traffic.history import Point
from headgate.operations.wording import age


def traffic_of(counts: Counts | None, seconds: float) -> dict[str, Any]:
    """Return rates, failures and durations of what was over within some seconds."""
    counts = counts or Counts()
    return {
        "requests": counts.requests,
        "requests_per_second": round(counts.requests / seconds, 3),
        "failed": counts.answers[5],
        "answers": dict(zip(CLASSES, counts.answers, strict=True)),
        "p50_ms": round(percentile(counts.durations, 0.5) * 1000, 3),
        "p99_ms": round(percentile(counts.durations, 0.99) * 1000, 3),
        "bytes_received": counts.received,
        "bytes_sent": counts.sent,
    }


def route_document(row: RouteRow, counts: Counts | None, seconds: float) -> dict[str, Any]:
    """Return a route in a line, with its traffic."""
    return {
        "name": row.name,
        "host": row.host.host,
        "listeners": list(row.host.listeners),
        "path": row.route.path.value,
        "path_type": row.route.path.type.value,
        "has_conditions": row.route.when is not None,
        "plugins": [use.name for use in row.route.plugins],
        "upstreams": list(row.upstreams),
        "ready": row.ready,
        "endpoints": row.endpoints,
        "unavailable": row.unavailable,
        "source": row.source,
        "traffic": traffic_of(counts, seconds),
    }


def whole_route(row: RouteRow, table: ServedTable) -> dict[str, Any]:
    """Return all that a revision says of a route, without what no one should read."""
    route = row.route
    return {
        **bare_route(route),
        "host": row.host.host,
        "listeners": list(row.host.listeners),
        "source": row.source,
        "unavailable": row.unavailable,
        "plugins": [
            {"name": use.name, "order": use.order, "fault": use.fault, "secrets": sorted(use.secrets)}
            for use in route.plugins
        ],
        "backends": [
            {
                **_without_plugins(backend.model_dump(mode="json", exclude_defaults=True)),
                "target": backend.target,
                "weight": backend.weight,
            }
            for backend in route.backends
        ],
        "upstreams": {key: upstream_document(table.upstreams[key]) for key in row.upstreams if key in table.upstreams},
    }


def bare_route(route: Route) -> dict[str, Any]:
    """Return a route as a table has it, without plugins, those of its backends and canaries included."""
    bare: dict[str, Any] = _without_plugins(route.model_dump(mode="json", exclude_defaults=True))
    return bare


def _without_plugins(written: Any) -> Any:
    if isinstance(written, dict):
        return {key: _without_plugins(value) for key, value in written.items() if key != "plugins"}
    return [_without_plugins(each) for each in written] if isinstance(written, list) else written


def upstream_document(upstream: Upstream) -> dict[str, Any]:
    """Return an upstream without keys and certificates."""
    said = upstream.model_dump(mode="json", exclude_defaults=True, exclude={"tls", "endpoints", "provenance"})
    return {
        **said,
        "has_tls": upstream.tls is not None,
        "endpoints": [
            {"endpoint": endpoint_name(one.address, one.port), **one.model_dump(mode="json", exclude_defaults=True)}
            for one in upstream.endpoints
        ],
    }


def worker_document(beat: Heartbeat) -> dict[str, Any]:
    """Return what a worker announces of itself."""
    return {
        **beat.model_dump(mode="json", exclude={"version", "pinned", "routes", "rollout"}),
        "revision": str(beat.version) if beat.version else None,
        "served": str(beat.served) if beat.served else None,
        "is_next": beat.rollout.is_next if beat.rollout else False,
        "heard": age(beat.at),
    }


def points_document(points: list[Point]) -> list[Mapping[str, float]]:
    """Return a series."""
    return [{**point._asdict(), "p50_ms": round(point.p50_ms, 3), "p99_ms": round(point.p99_ms, 3)} for point in points]
