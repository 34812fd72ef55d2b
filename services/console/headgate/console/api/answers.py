"""Who answers the questions of the API."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Final

import msgspec

from headgate.common.stores import DeltaSelection
from headgate.common.traffic import Counts, TappedRequest, added
from headgate.console.api.documents import (
    points_document,
    route_document,
    traffic_of,
    whole_route,
    worker_document,
)
from headgate.console.api.question import MANIFESTS, Listing, Values
from headgate.console.live.served_table import RouteRow, ServedTable
from headgate.console.live.view import LiveView
from headgate.operations.clusters.known import as_document as cluster_document
from headgate.operations.clusters.known import read_clusters
from headgate.operations.errors import InvalidRequest, OperationError
from headgate.operations.events import EventQuery, read_events
from headgate.operations.events import as_document as event_document
from headgate.operations.status.objects import as_document as object_document
from headgate.operations.status.objects import parse_object, read_object
from headgate.operations.status.report import as_document as report_document
from headgate.operations.status.rollout import as_document as rollout_document
from headgate.operations.status.rollout import read_rollout
from headgate.operations.tables.certificates import as_document as certificate_document
from headgate.operations.tables.certificates import lines_of as certificate_lines
from headgate.operations.tables.differences import as_document as diff_document
from headgate.operations.tables.differences import compare_revisions
from headgate.operations.tables.endpoints import lines_of as endpoint_lines
from headgate.operations.tables.history import Window, read_history
from headgate.operations.tables.history import as_document as revision_document
from headgate.operations.traffic.window import Grouping, Order, TrafficReport

_NEVER: Final = "there is no table yet: is its name right, and does a translator run?"


def table_of(view: LiveView) -> ServedTable:
    """Return the revision that is served. Raises OperationError if there is none."""
    if view.served is None:
        raise OperationError(view.trouble or _NEVER)
    return view.served


def route_traffic(view: LiveView) -> tuple[dict[str, Counts], TrafficReport]:
    """Return the counts of each route by its name, and the report that they are of."""
    report = view.window.report(Grouping.ROUTE, Order.REQUESTS)
    parts: dict[str, list[Counts]] = {}
    for line in report.lines:
        parts.setdefault(line.name, []).append(line.counts)
    return {name: added(each) for name, each in parts.items()}, report


# Now


async def answer_now(view: LiveView, values: Values) -> Any:
    """Tell what runs, what is wrong, and how much traffic there is."""
    report = view.window.report(Grouping.ROUTE, Order.REQUESTS)
    return {
        "table": view.table,
        "trouble": view.trouble,
        "traffic_trouble": view.traffic_trouble,
        "revision": view.served.version if view.served else None,
        "published": view.served.manifest.created_at.isoformat() if view.served else None,
        "routes": len(view.served.routes) if view.served else 0,
        "traffic": {
            "seconds": round(report.seconds, 3),
            "workers": report.workers,
            **traffic_of(report.all, report.seconds),
        },
        "status": report_document(view.report) if view.report else None,
    }


async def answer_problems(view: LiveView, values: Values) -> Listing:
    """List what is wrong."""
    found = view.report.problems if view.report else []
    return Listing(found, lambda one: {"what": one[0], **one[1].model_dump(mode="json")})


# Routes


def select_routes(view: LiveView, values: Values) -> tuple[list[RouteRow], dict[str, Counts], float]:
    """Return the routes that are asked for in their order, the counts of all, and the seconds that these are of."""
    rows: Iterable[RouteRow] = table_of(view).routes
    if host := values["host"].lower():
        rows = (row for row in rows if row.host.host == host)
    if text := values["q"].lower():
        rows = (row for row in rows if text in _searched(row))
    if values["broken"]:
        rows = (row for row in rows if row.unavailable or (row.upstreams and not row.ready))
    counts, report = route_traffic(view)
    return _ordered(list(rows), counts, values["by"]), counts, report.seconds


def _searched(row: RouteRow) -> str:
    return f"{row.host.host} {row.route.path.value} {row.source} {' '.join(row.upstreams)}".lower()


def _ordered(rows: list[RouteRow], counts: dict[str, Counts], order: str) -> list[RouteRow]:
    none = Counts()
    match order:
        case "requests":
            rows.sort(key=lambda row: -counts.get(row.name, none).requests)
        case "errors":
            rows.sort(key=lambda row: -counts.get(row.name, none).answers[5])
        case "p99":
            slow = {name: traffic_of(each, 1.0)["p99_ms"] for name, each in counts.items()}
            rows.sort(key=lambda row: -slow.get(row.name, 0.0))
        case "worst":
            rows.sort(key=lambda row: _badness(row, counts.get(row.name, none)))
    return rows


def _badness(row: RouteRow, counts: Counts) -> tuple[bool, float, bool, int]:
    """Sort key: what fails now, then what cannot answer, then what has most requests."""
    failed = counts.answers[5] / (counts.requests or 1)
    is_down = bool(row.unavailable or (row.upstreams and not row.ready))
    return failed == 0, -failed, not is_down, -counts.requests


async def answer_routes(view: LiveView, values: Values) -> Listing:
    """List routes with their traffic of now."""
    rows, counts, seconds = select_routes(view, values)
    about = {"revision": table_of(view).version}
    return Listing(rows, lambda row: route_document(row, counts.get(row.name), seconds), about)


async def answer_route(view: LiveView, values: Values) -> Any:
    """Tell all of one route."""
    table = table_of(view)
    row = table.by_name.get(values["name"])
    if row is None:
        raise OperationError(f"revision {table.version} has no route {values['name']!r}; /routes lists them")
    counts, report = route_traffic(view)
    unfit = [line._asdict() for line in endpoint_lines(_upstreams(row, table), view.told) if not line.is_fit]
    return {
        "revision": table.version,
        **whole_route(row, table),
        "traffic": traffic_of(counts.get(row.name), report.seconds),
        "problems": [one.model_dump(mode="json") for one in view.problems_of(row.route.provenance)],
        "unfit": unfit,
    }


def _upstreams(row: RouteRow, table: ServedTable) -> list[Any]:
    return [table.upstreams[key] for key in row.upstreams if key in table.upstreams]


# Traffic


async def answer_traffic(view: LiveView, values: Values) -> Listing:
    """List routes, hosts or endpoints by their traffic of now."""
    grouping = Grouping(values["of"])
    report = view.window.report(grouping, Order(values["by"]))
    about = {
        "seconds": round(report.seconds, 3),
        "workers": report.workers,
        "all": traffic_of(report.all, report.seconds),
        "others": traffic_of(report.others, report.seconds),
    }
    return Listing(
        report.lines,
        lambda line: {
            "name": line.name,
            **({"upstream": line.upstream} if grouping is Grouping.ROUTE else {}),
            **traffic_of(line.counts, report.seconds),
        },
        about,
    )


async def answer_series(view: LiveView, values: Values) -> Any:
    """Tell how traffic went."""
    step = values["step"] or max(1, values["last"] // 120)
    try:
        points = await asyncio.to_thread(
            view.history.series, values["last"], step, Grouping(values["of"]), values["name"]
        )
    except ValueError as error:
        raise OperationError(str(error)) from error
    return {"step": step, "points": points_document(points)}


async def answer_endpoints(view: LiveView, values: Values) -> Listing:
    """List endpoints, first those that get no requests."""
    table = table_of(view)
    wanted = values["upstream"]
    chosen = [one for key, one in table.upstreams.items() if wanted in key]
    lines = endpoint_lines(chosen, view.told)
    shown = [line for line in lines if not (values["unfit"] and line.is_fit)]
    shown.sort(key=lambda line: line.is_fit)
    fit = sum(line.is_fit for line in lines)
    return Listing(shown, lambda line: line._asdict(), {"revision": table.version, "fit": fit, "endpoints": len(lines)})


# Tables of the past


async def answer_revisions(view: LiveView, values: Values) -> Listing:
    """List revisions, newest first."""
    window = Window(since=values["since"], until=values["until"], at=values["at"])
    host = values["host"]

    def is_wanted(manifest: Any) -> bool:
        return not host or any(host in name for name in (manifest.changed.get("hosts") or _NONE).names)

    most = values["after"] + values["limit"] + 1
    found = await read_history(view.stores.snapshots, view.table, window, is_wanted, most)
    return Listing(found, revision_document, is_whole=len(found) < most)


class _Nothing:
    names: Sequence[str] = ()


_NONE: Final = _Nothing()


async def answer_diff(view: LiveView, values: Values) -> Any:
    """Tell what differs between two revisions."""
    compared = await compare_revisions(view.stores.snapshots, view.table, values["from"], values["to"])
    return diff_document(view.table, compared)


async def answer_events(view: LiveView, values: Values) -> Listing:
    """List changes of objects, newest first."""
    selection = DeltaSelection(cluster=values["cluster"], namespace=values["namespace"], name=values["object"])
    most = values["after"] + values["limit"] + 1
    events = [event async for event in read_events(view.stores.log_reader, EventQuery(selection, limit=most))]
    return Listing(events[::-1], event_document, is_whole=len(events) < most)


async def answer_rollout(view: LiveView, values: Values) -> Any:
    """Tell how far a changed table has got."""
    return rollout_document(await read_rollout(view.stores, view.table))


# Who serves, and what of


async def answer_fleet(view: LiveView, values: Values) -> Listing:
    """List the workers of gateways."""
    return Listing(view.heartbeats, worker_document, {"revision": view.served.version if view.served else None})


async def answer_clusters(view: LiveView, values: Values) -> Listing:
    """List clusters."""
    known = await read_clusters(view.stores, view.table)
    return Listing([*known.items()], lambda one: cluster_document(*one))


async def answer_objects(view: LiveView, values: Values) -> Listing:
    """List objects with problems."""
    updates = view.report.updates if view.report else ()
    reason, text = values["reason"], values["q"].lower()
    found = [
        one
        for one in updates
        if (not reason or any(problem.reason == reason for problem in one.problems))
        and text in f"{one.kind} {one.ref.namespace}/{one.ref.name}".lower()
    ]
    return Listing(found, lambda one: one.model_dump(mode="json", include={"ref", "kind", "problems", "at"}))


async def answer_object(view: LiveView, values: Values) -> Any:
    """Tell how one object stands."""
    name = parse_object(values["object"])
    updates, beats = await read_object(view.stores, name)
    if not updates:
        raise OperationError(f"nothing was written about {name}: is it ours, and is its name right?")
    return {"items": object_document(updates, beats)}


async def answer_certificates(view: LiveView, values: Values) -> Listing:
    """List certificates, first those that end first."""
    lines = certificate_lines(table_of(view).certificates, datetime.now(UTC))
    days = values["expiring"]
    soon = timedelta(days=days) if days is not None else None
    shown = [line for line in lines if soon is None or (line.left is not None and line.left <= soon)]
    return Listing(shown, certificate_document, {"revision": table_of(view).version})


def request_document(request: TappedRequest) -> dict[str, Any]:
    """Return a finished request."""
    said = {name: getattr(request, name) for name in request.__struct_fields__ if name != "taps"}
    return {**said, "attempts": [msgspec.structs.asdict(one) for one in request.attempts]}


async def answer_failed(view: LiveView, values: Values) -> Listing:
    """List requests that failed or were refused, the last first."""
    return Listing(list(select_failed(view, values)), request_document)


def select_failed(view: LiveView, asked: Mapping[str, Any]) -> Iterator[TappedRequest]:
    """Yield requests that failed or were refused, the last first; what is empty, or not asked, selects all."""
    wanted = {name: asked[name] for name in ("host", "request_id") if asked.get(name)}
    path, route, status = (asked.get(name) or "" for name in ("path", "route", "status"))
    for one in sorted((*view.failed, *view.refused), key=attrgetter("at"), reverse=True):
        if (
            all(getattr(one, name) == value for name, value in wanted.items())
            and route in one.route
            and one.path.startswith(path)
            and str(one.status).startswith(str(status))
        ):
            yield one


_REVISION: Final = re.compile(r"[A-Za-z0-9.~-]{1,40}")


async def answer_explain(view: LiveView, values: Values) -> Any:
    """Tell why a request goes where it goes, as a gateway says it."""
    headers = []
    for line in filter(None, map(str.strip, values["headers"].splitlines())):
        name, colon, value = line.partition(":")
        if not colon:
            raise InvalidRequest(f"headers: {line!r} must be NAME: VALUE")
        headers.append((name.strip(), value.strip()))
    question = (values["method"], values["url"], headers, values["client"])
    if values["revision"]:
        if not _REVISION.fullmatch(values["revision"]):
            raise InvalidRequest(f"revision: {values['revision']!r} is no revision: 57, HEAD~1, live, pinned")
        return await view.commands.explain(*question, values["revision"])
    return await view.gateway.explain(*question)


async def answer_plan(view: LiveView, values: Values) -> Any:
    """Say what manifests would change if they were applied."""
    return await view.commands.plan(values[MANIFESTS], values["cluster"], prune=values["prune"])


async def answer_audit(view: LiveView, values: Values) -> Any:
    """Say what becomes of each annotation and field of manifests."""
    return await view.commands.audit(values[MANIFESTS])


def find_any(view: LiveView, text: str, limit: int) -> list[dict[str, str]]:
    """Return what a text may be meant to name: hosts, routes, upstreams, objects, each with its page."""
    table = table_of(view)
    wanted = text.lower().strip()
    found: dict[tuple[str, str], str] = {}
    for row in table.routes:
        if len(found) >= limit:
            break
        if wanted in row.host.host:
            found.setdefault(("host", row.host.host), "/routes")
        if wanted in _searched(row):
            found.setdefault(("route", row.name), "/route")
    for key in table.upstreams:
        if len(found) >= 2 * limit:
            break
        if wanted in key.lower():
            found.setdefault(("upstream", key), "/endpoints")
    return [{"kind": kind, "name": name} for kind, name in list(found)[: 2 * limit]]


async def answer_search(view: LiveView, values: Values) -> Any:
    """Find hosts, routes and upstreams by a text."""
    return {"items": find_any(view, values["q"], 20)}
