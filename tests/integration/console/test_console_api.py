"""The console's API beside a real NATS server: what it answers, in which form, and what it refuses."""

import asyncio
import json
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from fakes.console import console
from fakes.traffic import counts, of_route, summary
from fakes.translator.deltas import endpoint_slice, ingress, service
from fakes.translator.gateway_api import gateway, gateway_class, resource
from headgate.common.errors import StoreUnavailable
from headgate.common.traffic import Attempt, TappedRequest, UnfitEndpoint
from headgate.console.api.questions import QUESTIONS
from headgate.console.live import tapping
from headgate.console.live import view as live_view

OBJECTS = (
    ingress("web", host="a.example"),
    ingress("lost", host="b.example", service="gone"),
    service(),
    endpoint_slice("web", "10.0.0.1", "10.0.0.2"),
)
NAME = "a.example|a/default/web prefix /"
BUSY = of_route(NAME, "a/default/web:80", counts(90, failed=9))
UNFIT = UnfitEndpoint("a/default/web:80", "10.0.0.2:8080", "ejected", 1.0, 2e9, "502")
FAILED = TappedRequest(
    *((), 1.0, "GET", "a.example", "/cart", 502, 0.3, 12, "192.0.2.1", "id-1", NAME, "up", "10.0.0.1:80"),
    "closed",
    (Attempt("10.0.0.2:80", "connect", 0.1),),
)
REFUSED = msgspec.structs.replace(FAILED, at=2.0, host="b.example", status=403, request_id="id-2", attempts=())
NEEDED = {
    "/route": f"?name={NAME}",
    "/object": "?object=ingress/default/lost",
    "/search": "?q=a",
    "/diff": "?from=HEAD",
}


async def test_every_question_has_an_answer() -> None:
    async with console(*OBJECTS) as made:
        await made.until("/objects", lambda said: said["total"])
        for question in QUESTIONS:
            if question.path == "/explain" or question.takes_manifests:
                continue
            found = await made.api(question.path + NEEDED.get(question.path, ""))
            assert isinstance(found, dict), question.path
            if question.is_list:
                assert {"items", "total", "next"} <= found.keys(), question.path


async def test_routes_come_worst_first_with_their_traffic() -> None:
    async with console(*OBJECTS, summaries=[summary(BUSY)]) as made:
        found = await made.until("/routes", lambda said: said["items"][0]["traffic"]["requests"])
        first, second = found["items"]
        assert (first["name"], first["ready"], first["endpoints"]) == (NAME, 2, 2)
        assert first["traffic"]["failed"] * 10 == first["traffic"]["requests"]
        assert second["unavailable"] == "Service default/gone not found"
        assert [one["host"] for one in (await made.api("/routes?q=gone"))["items"]] == ["b.example"]
        assert [one["host"] for one in (await made.api("/routes?broken=true"))["items"]] == ["b.example"]
        assert [one["host"] for one in (await made.api("/routes?by=host"))["items"]] == ["a.example", "b.example"]


async def test_a_list_is_paged() -> None:
    hosts = [ingress(f"web{number}", host=f"h{number:02}.example") for number in range(7)]
    async with console(*hosts, service()) as made:
        seen: list[str] = []
        after: int | None = 0
        while after is not None:
            page = await made.api(f"/routes?by=host&limit=3&after={after}")
            assert page["total"] == 7
            seen += [one["host"] for one in page["items"]]
            after = page["next"]
        assert seen == [f"h{number:02}.example" for number in range(7)]


async def test_an_answer_that_the_client_has_is_not_sent_again() -> None:
    async with console(*OBJECTS) as made:
        first = await made.get("/api/v1/certificates")
        again = await made.get("/api/v1/certificates", If_None_Match=first.headers["ETag"])
        assert (first.status, again.status, again.body) == (200, 304, b"")


async def test_endpoints_that_get_no_requests_come_first_and_say_why() -> None:
    # A worker's word counts for seconds.
    told = msgspec.structs.replace(summary(unfit=(UNFIT,)), at=4e9)
    async with console(*OBJECTS, summaries=[told]) as made:
        found = await made.until("/endpoints", lambda said: said["items"][0]["state"] == "ejected")
        assert (found["items"][0]["endpoint"], found["items"][0]["error"]) == ("10.0.0.2:8080", "502")
        assert len((await made.api("/endpoints?unfit=true"))["items"]) == 1


async def test_what_failed_or_was_refused_is_known_by_its_id() -> None:
    async with console(*OBJECTS, summaries=[summary(failed=(FAILED, REFUSED))]) as made:
        found = (await made.until("/failed", lambda said: said["total"] >= 2))["items"]
        assert [one["request_id"] for one in found[:1]] == ["id-2"]
        one = (await made.api("/failed?request_id=id-1"))["items"][0]
        assert (one["status"], one["path"], one["reason"]) == (502, "/cart", "closed")
        assert one["attempts"] == [{"endpoint": "10.0.0.2:80", "outcome": "connect", "after_s": 0.1}]
        for query, ids in {
            "status=5": {"id-1"},
            "status=403": {"id-2"},
            "host=a.example": {"id-1"},
            "route=prefix": {"id-1", "id-2"},
            "path=/car": {"id-1", "id-2"},
            "path=/other": set(),
            "request_id=id-3": set(),
        }.items():
            assert {one["request_id"] for one in (await made.api(f"/failed?{query}"))["items"]} == ids, query


async def test_traffic_has_a_past() -> None:
    async with console(*OBJECTS, summaries=[summary(BUSY)]) as made:
        found = await made.until("/traffic/series?last=10", lambda said: sum(one["requests"] for one in said["points"]))
        assert found["step"] == 1
        assert len(found["points"]) == 10
        alone = await made.api(f"/traffic/series?last=10&name={NAME}")
        other = await made.api("/traffic/series?last=10&of=host&name=b.example")
        assert sum(one["requests"] for one in alone["points"])
        assert not sum(one["requests"] for one in other["points"])


async def test_a_route_says_nothing_that_no_one_should_read() -> None:
    guarded = ingress(
        "web",
        host="a.example",
        annotations={"headgate.dev/plugins": json.dumps([{"name": "key-auth", "config": {"key": "very-secret"}}])},
    )
    async with console(guarded, service()) as made:
        found = (await made.api("/routes"))["items"][0]
        whole = await made.api(f"/route?name={found['name']}")
        assert "very-secret" not in json.dumps(whole)


async def test_plugins_of_a_backend_are_not_shown_either() -> None:
    sets = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "x", "value": "very-secret"}]}}
    backend = {"name": "web", "port": 80, "filters": [sets]}
    spec = {"parentRefs": [{"name": "gw"}], "hostnames": ["a.example"], "rules": [{"backendRefs": [backend]}]}
    async with console(gateway_class(), gateway(), resource("HTTPRoute", "web", spec), service()) as made:
        asked = f"/route?name={quote((await made.api('/routes'))['items'][0]['name'])}"
        whole, page = await made.api(asked), await made.get(asked)
        assert page.status == 200
        assert "a.example" in page.text
        assert "very-secret" not in json.dumps(whole) + page.text


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/routes?by=nothing", 400, "none of worst"),
        ("/routes?limit=0", 400, "limit: must be a whole number from 1 to 1000"),
        ("/routes?limit=many", 400, "limit: 'many' is not a whole number"),
        ("/routes?broken=perhaps", 400, "broken: 'perhaps' must be true or false"),
        ("/routes?colour=red", 400, "/routes has no parameter 'colour'"),
        ("/route", 400, "/route needs name"),
        ("/route?name=x", 404, "has no route 'x'"),
        ("/diff?from=x", 400, "'x' names no revision"),
        ("/object?object=x", 400, "names no object"),
        ("/object?object=ingress/default/none", 404, "nothing was written about"),
        ("/explain?url=http://a/", 503, "no gateway answers"),
        ("/traffic/series?last=86400&step=1", 200, ""),
    ],
)
async def test_what_cannot_be_answered_says_why(path: str, status: int, said: str) -> None:
    async with console(*OBJECTS) as made:
        found = await made.get(f"/api/v1{path}")
        assert found.status == status
        if said:
            problem = json.loads(found.body)
            assert found.headers["Content-Type"].startswith("application/problem+json")
            assert said in problem["detail"]


async def test_changes_are_told_as_they_come_and_again_to_those_who_come_back() -> None:
    async with console(*OBJECTS) as made:
        await made.history.say(ingress("new", host="c.example"))
        await made.until("/routes?q=c.example", lambda said: said["total"])
        first = await made.events("/api/v1/stream?kinds=revision", 3, Last_Event_ID="0")
        assert first[0].startswith("id: ")
        assert first[1] == "event: revision"
        assert "revision" in json.loads(first[2].removeprefix("data: "))


async def test_who_has_left_takes_no_place_from_others_who_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tapping, "QUIET_S", 0.05)
    monkeypatch.setattr(tapping, "MAX_WATCHERS", 2)
    monkeypatch.setattr(live_view, "MAX_LISTENING", 2)
    async with console(*OBJECTS) as made:
        for path in ("tail?host=no.example", "stream?kinds=none"):
            for _ in range(2):
                async with made.session.get(f"{made.url}/api/v1/{path}") as answer:
                    assert answer.status == 200
        for path, mark in (("tail?host=no.example", ": none"), ("stream?kinds=traffic", "event: traffic")):
            async with asyncio.timeout(30):
                while not any(mark in line for line in await made.events(f"/api/v1/{path}", 2)):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)


async def test_a_gateway_is_asked_why() -> None:
    asked: list[Any] = []

    async def explain(request: web.Request) -> web.Response:
        asked.append(list(request.query.items()))
        return web.json_response({"verdict": "so"})

    app = web.Application()
    app.router.add_get("/explain", explain)
    async with TestServer(app) as server, console(*OBJECTS, gateway_url=str(server.make_url("")).rstrip("/")) as made:
        found = await made.api("/explain?method=POST&url=http://a.example/x&headers=Cookie: a=b")
        assert found == {"verdict": "so"}
        assert asked == [[("method", "POST"), ("url", "http://a.example/x"), ("header", "Cookie: a=b")]]


async def test_a_console_without_gateways_says_so() -> None:
    async with console(*OBJECTS, gateway_url="") as made:
        found = await made.get("/api/v1/explain?url=http://a/")
        assert (found.status, "give gateway_url" in found.text) == (503, True)


async def test_the_document_describes_every_question() -> None:
    async with console(*OBJECTS) as made:
        document = await made.api("/openapi.json")
        assert set(document["paths"]) == {
            f"/api/v1{path}" for path in (*(one.path for one in QUESTIONS), "/stream", "/tail")
        }
        for path in document["paths"].values():
            (operation,) = path.values()
            for parameter in operation["parameters"]:
                assert parameter["schema"]["type"] in ("string", "integer", "number", "boolean")


async def test_a_table_that_could_not_be_read_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read, left = live_view.read_chunks, [StoreUnavailable("away")]

    async def read_later(*asked: Any) -> Any:
        if left:
            raise left.pop()
        return await read(*asked)

    monkeypatch.setattr(live_view, "AGAIN_S", 0.05)
    async with console(*OBJECTS) as made:
        monkeypatch.setattr(live_view, "read_chunks", read_later)
        await made.history.say(ingress("new", host="c.example"))
        await made.until("/routes?q=c.example", lambda said: said["total"])
        assert (left, (await made.api("/now"))["trouble"]) == ([], "")
