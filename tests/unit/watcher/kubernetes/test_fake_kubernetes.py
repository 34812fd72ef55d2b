"""The fake API server answers as the real one did when it was recorded."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.objects import ingress
from fakes.virtual_time import in_virtual_time

RECORDED = Path(__file__).parents[3] / "fixtures" / "kubernetes"
JsonObject = dict[str, Any]


def recorded(name: str) -> JsonObject:
    answer = json.loads((RECORDED / f"{name}.json").read_text())
    assert isinstance(answer, dict)
    return answer


async def repeat(api: FakeKubernetes, request: JsonObject, path: str = "") -> tuple[int, str, str]:
    """Make a recorded request; returns status, content type and body."""
    headers = {"Authorization": f"Bearer {api.token}"}
    if request["method"] == "PATCH":
        headers["Content-Type"] = "application/merge-patch+json"
    timeout = aiohttp.ClientTimeout(total=120)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.request(
            request["method"], api.url + (path or request["path"]), json=request.get("body"), headers=headers
        ) as answer,
    ):
        return answer.status, answer.content_type, await answer.text()


def shape(value: Any) -> Any:
    """What stays of an answer when names, versions, times and what managedFields say are left out."""
    if isinstance(value, dict):
        return {key: "..." if key == "managedFields" else shape(held) for key, held in sorted(value.items())}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


@pytest.fixture
async def api() -> AsyncIterator[FakeKubernetes]:
    async with FakeKubernetes() as server:
        for number in range(5):
            server.apply(ingress(f"web-{number}"))
            server.set_status("ingresses", f"web-{number}", {"loadBalancer": {}})
        yield server


@pytest.mark.parametrize("name", ["list-all", "list-page-1", "list-empty", "crd-absent", "status-not-found"])
async def test_plain_requests_get_the_recorded_answer(name: str, api: FakeKubernetes) -> None:
    answer = recorded(name)
    status, content_type, body = await repeat(api, answer["request"])
    assert status == answer["status"]
    assert content_type == answer["headers"]["Content-Type"].split(";")[0]
    if content_type == "application/json":
        assert shape(json.loads(body)) == shape(json.loads(answer["body"]))
    else:
        assert body == answer["body"]


Prepare = Callable[[FakeKubernetes], None]
REFUSALS: dict[str, Prepare] = {
    "forbidden": lambda api: api.forbid("secrets"),
    "list-exact-expired": lambda api: api.compact(),
    "list-future": lambda api: None,
    "watch-invalid-rv": lambda api: None,
    "endpointslice-loopback": lambda api: None,
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_refusals_are_the_recorded_status_objects(name: str, api: FakeKubernetes) -> None:
    answer = recorded(name)
    REFUSALS[name](api)
    status, _, body = await repeat(api, answer["request"])
    found, wanted = json.loads(body), json.loads(answer["body"])
    assert (status, found.get("reason"), found["code"]) == (answer["status"], wanted.get("reason"), wanted["code"])
    assert shape(found) == shape(wanted)


async def test_a_bad_token_is_the_recorded_refusal(api: FakeKubernetes) -> None:
    answer = recorded("unauthorized")
    headers = {"Authorization": "Bearer guessed"}
    async with aiohttp.ClientSession() as session, session.get(api.url + "/api/v1/secrets", headers=headers) as refused:
        assert refused.status == 401
        assert await refused.json() == json.loads(answer["body"])


async def test_a_stale_status_is_the_recorded_conflict(api: FakeKubernetes) -> None:
    answer = recorded("status-conflict")
    status, _, body = await repeat(api, answer["request"])
    assert status == 409
    assert json.loads(body) == json.loads(answer["body"])


async def test_a_status_that_is_written_bumps_the_version_and_not_the_generation(api: FakeKubernetes) -> None:
    answer = recorded("status-merge-patch")
    before = api.get("ingresses", "web-1")["metadata"]
    status, _, body = await repeat(api, answer["request"])
    found, wanted = json.loads(body), json.loads(answer["body"])
    assert status == 200
    assert found["status"] == wanted["status"]
    assert found["metadata"]["generation"] == before["generation"]
    assert found["metadata"]["resourceVersion"] > before["resourceVersion"]


async def test_an_event_gets_a_generated_name(api: FakeKubernetes) -> None:
    answer = recorded("event-create")
    status, _, body = await repeat(api, answer["request"])
    name = json.loads(body)["metadata"]["name"]
    assert status == 201
    assert name.startswith("web-1-")
    assert len(name) == len("web-1-") + 5


async def test_a_second_page_continues_the_first(api: FakeKubernetes) -> None:
    first = json.loads((await repeat(api, recorded("list-page-1")["request"]))[2])
    api.delete("ingresses", "web-4")
    path = f"/apis/networking.k8s.io/v1/ingresses?limit=2&continue={first['metadata']['continue']}"
    second = json.loads((await repeat(api, {"method": "GET", "path": path}))[2])
    assert [item["metadata"]["name"] for item in second["items"]] == ["web-2", "web-3"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert shape(second) == shape(json.loads(recorded("list-page-2")["body"]))


@pytest.mark.parametrize("name", ["watch-expired", "watchlist"])
@in_virtual_time
async def test_refused_watches_are_errors_inside_a_good_stream(name: str) -> None:
    async with FakeKubernetes() as api:
        api.apply(ingress("a"))
        api.compact()
        answer = recorded(name)
        status, _, body = await repeat(api, answer["request"])
        found, wanted = json.loads(body), json.loads(answer["body"])
        assert status == 200
        assert shape(found) == shape(wanted)
        assert found["object"]["reason"] == wanted["object"]["reason"]


@in_virtual_time
async def test_a_watch_from_the_future_says_nothing_until_its_end() -> None:
    async with FakeKubernetes() as api:
        assert await repeat(api, recorded("watch-future")["request"]) == (200, "application/json", "")


@in_virtual_time
async def test_a_watch_has_typed_objects_and_a_bookmark_before_its_end() -> None:
    async with FakeKubernetes() as api:
        api.apply(ingress("web-0"))
        path = recorded("watch-bookmarks")["request"]["path"].replace("=RV", "=200")
        status, _, body = await repeat(api, {"method": "GET", "path": path})
        events = [json.loads(line) for line in body.splitlines()]
        assert status == 200
        assert [event["type"] for event in events] == ["ADDED", "BOOKMARK", "BOOKMARK"]
        assert {event["object"]["kind"] for event in events} == {"Ingress"}
