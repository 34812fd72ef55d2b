"""The pages' paths, and what each shows."""

import asyncio
import hashlib
import hmac
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.resources import files
from itertools import islice
from typing import Any, Final
from urllib.parse import urlencode

import jinja2
from aiohttp import web

from headgate.common.errors import HeadgateError, StoreError
from headgate.common.heartbeats import Heartbeat
from headgate.common.problems import Problem
from headgate.common.stores import DeltaSelection
from headgate.common.traffic import Counts, percentile
from headgate.console.access.forms import read_fields
from headgate.console.access.guard import FORM_TOKEN, PERSON
from headgate.console.actions import act
from headgate.console.api.answers import route_traffic, select_failed, select_routes, table_of
from headgate.console.api.documents import bare_route
from headgate.console.live.served_table import RouteRow, ServedTable
from headgate.console.live.view import KEPT_FAILED, LiveView
from headgate.console.pages import clusters, river, wording
from headgate.console.pages.curl import of_past, read_request
from headgate.console.pages.dropped import show_audit, show_plan
from headgate.operations.errors import InvalidRequest, OperationError
from headgate.operations.events import EventQuery, read_events
from headgate.operations.events import as_document as event_document
from headgate.operations.status.corrections import correct
from headgate.operations.status.objects import parse_object, read_object, served_of
from headgate.operations.tables.certificates import lines_of as certificate_lines
from headgate.operations.tables.differences import compare_revisions
from headgate.operations.tables.endpoints import EndpointLine
from headgate.operations.tables.endpoints import lines_of as endpoint_lines
from headgate.operations.tables.held import describe_pin, describe_rollout
from headgate.operations.tables.history import Window, changed_hosts, read_history
from headgate.operations.traffic.history import Point
from headgate.operations.traffic.window import Grouping, Order

ROWS: Final = 100
"""Of a page before it is scrolled."""
_SPARK_S, _STEP_S = 900, 15
_SHOWN: Final = 200
"""Lines of what cannot be scrolled on."""
_REQUEST_ID: Final = re.compile(r"[0-9A-Fa-f-]{16,}")
"""As gateways make them: no host is called like this."""
Shown = Mapping[str, Any]
Page = Callable[[web.Request], Awaitable[Shown]]


class Pages:
    """Makes pages of what the console knows.

    Args:
        view: what it knows.
    """

    def __init__(self, view: LiveView) -> None:
        self._view = view
        self._static = {name: _static(name) for name in ("app.css", "app.js")}
        digest = hashlib.blake2b(b"".join(self._static.values()), digest_size=6).hexdigest()
        self._templates = jinja2.Environment(
            loader=jinja2.FunctionLoader(_template), autoescape=True, trim_blocks=True, lstrip_blocks=True
        )
        self._templates.globals |= {
            "digest": digest,
            "none_counted": Counts(),
            "percentile": percentile,
            "rate": wording.rate,
            "ms": wording.milliseconds,
            "size": wording.size,
            "share": wording.share,
            "clock": wording.clock,
            "counted": wording.counted,
            "value": wording.value,
            "line_of": wording.line_of,
            "ago": wording.ago,
            "correction_of": _correction,
        }
        self._templates.globals["parts"] = self._templates.get_template("parts.html").module

    def add(self, app: web.Application) -> None:
        """Add all pages to a site."""
        pages: dict[str, tuple[str, Page]] = {
            "/": ("now.html", self._now),
            "/routes": ("routes.html", self._routes),
            "/routes/rows": ("rows.html", self._routes),
            "/route": ("route.html", self._route),
            "/why": ("why.html", self._why),
            "/changes": ("changes.html", self._changes),
            "/changes/diff": ("diff.html", self._diff),
            "/fleet": ("fleet.html", self._fleet),
            "/clusters": ("clusters.html", self._clusters),
            "/endpoints": ("endpoints.html", self._endpoints),
            "/objects": ("objects.html", self._objects),
            "/object": ("object.html", self._object),
            "/certificates": ("certificates.html", self._certificates),
            "/live": ("live.html", self._live),
        }
        for path, (template, page) in pages.items():
            app.router.add_get(path, self._handler(path, template, page))
        for path, template, show in (("/plan", "plan.html", show_plan), ("/audit", "audit.html", show_audit)):
            handler = self._handler(path, template, partial(show, self._view))
            app.router.add_get(path, handler)
            app.router.add_post(path, handler)
        app.router.add_get("/static/{name}", self._show_static)
        app.router.add_post("/actions", self._act)

    def login(self, error: str, *, has_tokens: bool, has_provider: bool) -> web.Response:
        """Return the page where people log in, by a token, at a provider, or either way."""
        ways = {"has_tokens": has_tokens, "has_provider": has_provider}
        return _html(self._templates.get_template("login.html").render(error=error, **ways), 401 if error else 200)

    async def _act(self, request: web.Request) -> web.Response:
        said = await read_fields(request)
        if not hmac.compare_digest(said.get("token", "").encode(), request[FORM_TOKEN].encode()):
            raise web.HTTPForbidden(text="this form is of another session: load the page again\n")
        is_dry = said.pop("dry_run", "") == "true"
        content: dict[str, Any] = {"action": said.get("action", ""), "is_dry": is_dry, "said": said, "command": ""}
        status = 200
        try:
            content["done"] = await act(self._view, request[PERSON], {**said, "dry_run": is_dry})
        except (OperationError, StoreError) as error:
            content["error"], status = str(error), 400
        content["command"] = (
            f"headgate {content['action']} {said.get('revision') or said.get('cluster') or ''}".rstrip()
        )
        return _html(self._render(request, "/actions", self._templates.get_template("done.html"), content), status)

    def _handler(self, path: str, template: str, page: Page) -> Callable[[web.Request], Awaitable[web.Response]]:
        made = self._templates.get_template(template)

        async def show(request: web.Request) -> web.Response:
            try:
                content = await page(request)
            except (OperationError, StoreError) as error:
                status = 400 if isinstance(error, InvalidRequest) else 404
                text = self._render(request, path, self._templates.get_template("error.html"), {"error": str(error)})
                return _html(text, status)
            return _html(self._render(request, path, made, content), 200)

        return show

    def _render(self, request: web.Request, path: str, template: jinja2.Template, content: Shown) -> str:
        view = self._view
        person = request.get(PERSON)
        return template.render(
            here=path,
            table=view.table,
            revision=view.served.version if view.served else "",
            trouble=view.trouble,
            traffic_trouble=view.traffic_trouble,
            person=person.name if person else "",
            form_token=request.get(FORM_TOKEN, ""),
            may_change=bool(person and person.may_change),
            **content,
        )

    async def _show_static(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self._static:
            raise web.HTTPNotFound
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        headers = {"Cache-Control": "public, max-age=31536000, immutable"}
        response = web.Response(body=self._static[name], content_type=kind, charset="utf-8", headers=headers)
        response.enable_compression()
        return response

    # Now

    async def _now(self, request: web.Request) -> Shown:
        view = self._view
        report = view.window.report(Grouping.ROUTE, Order.REQUESTS)
        return {
            "stations": river.stations(view),
            "all": report.all,
            "seconds": report.seconds,
            "top": [line for line in report.lines if line.name][:10],
            "minutes": await self._series(),
            "problems": view.report.problems if view.report else [],
            "manifest": view.served.manifest if view.served else None,
        }

    async def _series(self, grouping: Grouping = Grouping.ROUTE, name: str = "") -> list[Point]:
        return await asyncio.to_thread(self._view.history.series, _SPARK_S, _STEP_S, grouping, name)

    # Routes

    async def _routes(self, request: web.Request) -> Shown:
        query = request.query
        by = query.get("by", "worst")
        values = {
            "q": query.get("q", ""),
            "host": query.get("host", ""),
            "broken": query.get("broken") == "true",
            "by": by if by in ("worst", "requests", "errors", "p99", "host") else "worst",
        }
        rows, counts, seconds = select_routes(self._view, values)
        after = _number(query.get("after", "0"))
        asked = {name: query[name] for name in ("q", "host", "broken", "by") if query.get(name)}
        return {
            **values,
            "after": after,
            "rows": rows[after : after + ROWS],
            "shown": min(len(rows), after + ROWS),
            "total": len(rows),
            "counts": counts,
            "seconds": seconds,
            "spark_of": self._view.history.spark,
            "rows_query": urlencode(asked),
        }

    async def _route(self, request: web.Request) -> Shown:
        view = self._view
        table = table_of(view)
        row = table.by_name.get(request.query.get("name", ""))
        if row is None:
            raise OperationError(f"revision {table.version} has no such route: it may have been changed")
        counts, report = route_traffic(view)
        ends = view.window.report(Grouping.ENDPOINT, Order.REQUESTS)
        return {
            "row": row,
            "problems": view.problems_of(row.route.provenance),
            "when": _written(row.route.when),
            "weights": sum(backend.weight for backend in row.route.backends),
            "traffic": counts.get(row.name, Counts()),
            "seconds": report.seconds,
            "points": await self._series(Grouping.ROUTE, row.name),
            "endpoints": _endpoints_of(row, table, view),
            "of_endpoint": {line.name: line.counts for line in ends.lines},
            "written": json.dumps(bare_route(row.route), indent=2),
        }

    # Why

    async def _why(self, request: web.Request) -> Shown:
        written = request.query.get("request", "") or request.query.get("url", "")
        if not written:
            return {"request": "", "command": "headgate explain METHOD URL"}
        past = next(select_failed(self._view, {"request_id": written.strip()}), None)
        try:
            if past is None and _REQUEST_ID.fullmatch(written.strip()):
                raise InvalidRequest(f"{written.strip()} is none of the last {KEPT_FAILED:,} requests that failed here")
            asked = read_request(written) if past is None else of_past(past)
        except InvalidRequest as error:
            return {"request": written, "error": str(error), "command": "headgate explain METHOD URL"}
        revision, client = request.query.get("revision", "").strip(), past.client if past is not None else ""
        shown = {"request": written, "command": asked.command, "past": past, "beside": revision}
        if past is not None:
            shown["command"] = f"headgate explain --request-id {past.request_id}"
        question = (asked.method, asked.url, asked.headers, client)
        try:
            found = [await self._view.gateway.explain(*question)]
            if revision:
                found.append(await self._view.commands.explain(*question, revision))
        except HeadgateError as error:
            return {**shown, "error": str(error)}
        return {**shown, "answers": found}

    # Changes

    async def _changes(self, request: web.Request) -> Shown:
        host = request.query.get("host", "")
        found = await read_history(
            self._view.stores.snapshots,
            self._view.table,
            Window(),
            lambda manifest: not host or any(host in name for name in changed_hosts(manifest)),
            50,
        )
        pin = found[0].pin if found else None
        return {
            "host": host,
            "pin": describe_pin(pin) if pin else "",
            "points": await self._series(),
            "revisions": [
                {
                    "name": str(one.version),
                    "at": one.created_at,
                    "place": _place_of(one.created_at),
                    "causes": one.causes,
                    "count": one.cause_count,
                    "by": next((cause.by for cause in one.causes if cause.by), ""),
                    "hosts": sorted(changed_hosts(one)),
                }
                for one in found
            ],
        }

    async def _diff(self, request: web.Request) -> Shown:
        after = request.query.get("to") or "HEAD"
        before = request.query.get("from") or f"{after}~1"
        try:
            compared = await compare_revisions(self._view.stores.snapshots, self._view.table, before, after)
        except OperationError as error:
            return {"before": before, "after": after, "error": str(error), "counts": {}, "changes": [], "hidden": 0}
        changes = compared.diff.changes
        return {
            "before": compared.before.label,
            "after": compared.after.label,
            "counts": compared.diff.counts,
            "changes": [one.model_dump(mode="json") for one in changes[:_SHOWN]],
            "hidden": max(0, len(changes) - _SHOWN),
        }

    # Who serves, and what of

    async def _fleet(self, request: web.Request) -> Shown:
        view = self._view
        manifest = view.served.manifest if view.served else None
        return {
            "workers": sorted(view.heartbeats, key=_worker),
            "newest": manifest.version if manifest else None,
            "rollout": describe_rollout(manifest.rollout) if manifest and manifest.rollout else "",
        }

    async def _clusters(self, request: web.Request) -> Shown:
        return {"clusters": await clusters.lines(self._view)}

    async def _endpoints(self, request: web.Request) -> Shown:
        view, upstream = self._view, request.query.get("upstream", "")
        table = table_of(view)
        chosen = [one for key, one in table.upstreams.items() if upstream in key]
        lines = endpoint_lines(chosen, view.told)
        unfit = [line for line in lines if not line.is_fit]
        all_shown = request.query.get("all") == "true"
        shown = [*unfit, *(line for line in lines if line.is_fit)] if all_shown else unfit
        return {
            "upstream": upstream,
            "all_shown": all_shown,
            "unfit": len(unfit),
            "total": len(lines),
            "lines": shown[:_SHOWN],
            "hidden": max(0, len(shown) - _SHOWN),
        }

    async def _objects(self, request: web.Request) -> Shown:
        text = request.query.get("q", "").lower()
        groups: dict[str, list[dict[str, Any]]] = {}
        for update in self._view.report.updates if self._view.report else ():
            what = f"{update.kind} {update.ref.namespace}/{update.ref.name}"
            if text not in what.lower():
                continue
            link = f"{update.kind.lower()}/{update.ref.namespace}/{update.ref.name}"
            for problem in update.problems:
                said = {"what": what, "link": link, "field": problem.field, "message": problem.message}
                said["correction"] = _correction(problem)
                groups.setdefault(problem.reason, []).append({**said, "severity": problem.severity.value})
        ordered = sorted(groups.items(), key=lambda one: (one[1][0]["severity"] != "error", -len(one[1])))
        return {"q": text, "groups": ordered, "total": sum(map(len, groups.values()))}

    async def _object(self, request: web.Request) -> Shown:
        name = parse_object(request.query.get("object", ""))
        updates, beats = await read_object(self._view.stores, name)
        selection = DeltaSelection(namespace=name.namespace, name=name.name)
        events = [event async for event in read_events(self._view.stores.log_reader, EventQuery(selection, limit=50))]
        kinds = [event for event in map(event_document, events) if event["kind"].lower() == name.kind]
        return {
            "name": str(name),
            "error": "" if updates else "nothing was written about it: is it ours, and is its name right?",
            "found": [
                {
                    "cluster": one.ref.cluster,
                    "table": one.table,
                    "revision": one.revision,
                    "served_by": served_of(one, beats).by,
                    "problems": one.problems,
                    "conditions": one.conditions,
                }
                for one in updates
            ],
            "events": kinds[::-1],
        }

    async def _certificates(self, request: web.Request) -> Shown:
        return {"lines": certificate_lines(table_of(self._view).certificates, datetime.now(UTC))}

    async def _live(self, request: web.Request) -> Shown:
        asked = dict(request.query)
        return {"asked": asked, "failed": list(islice(select_failed(self._view, asked), 50))}


def _template(name: str) -> str:
    return (files("headgate.console.pages") / "templates" / name).read_text(encoding="utf-8")


def _static(name: str) -> bytes:
    return (files("headgate.console.pages") / "static" / name).read_bytes()


def _html(text: str, status: int) -> web.Response:
    response = web.Response(text=text, status=status, content_type="text/html", headers={"Cache-Control": "no-store"})
    response.enable_compression()
    return response


def _correction(problem: Problem) -> str:
    """Return what would probably be right, as a field with its value; empty if that cannot be said."""
    found = correct(problem)
    if found is None:
        return ""
    if not found.is_name:
        return f"{problem.field.rpartition('.')[2]}: {found.text}"
    return f"{found.text}: {problem.value or '…'}"


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 9 else 0


def _worker(beat: Heartbeat) -> tuple[str, int]:
    return beat.replica, beat.worker


def _written(when: Any) -> str:
    return json.dumps(when.model_dump(mode="json", exclude_defaults=True), indent=2) if when is not None else ""


def _place_of(moment: datetime) -> float | None:
    """Return where on a line of 15 minutes a moment is, in percent; None: before it."""
    passed = (datetime.now(UTC) - moment) / timedelta(seconds=_SPARK_S)
    return round(100 * (1 - passed), 2) if passed <= 1 else None


def _endpoints_of(row: RouteRow, table: ServedTable, view: LiveView) -> list[EndpointLine]:
    upstreams = [table.upstreams[key] for key in row.upstreams if key in table.upstreams]
    return endpoint_lines(upstreams, view.told)[:_SHOWN]
