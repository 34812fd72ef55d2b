import json
from typing import Any

import pytest
from aiohttp import web

from headgate.gateway.plugins.interface import PluginServices, Response
from unit.gateway.plugins.people import consumer, directory
from unit.gateway.plugins.running import asked, chain, request
from unit.gateway.plugins.service import Service, running


def deciding(result: Any, status: int = 200):
    return lambda seen: web.json_response({"result": result} if result is not None else {}, status=status)


async def outcome(service: Service, given, **config: Any) -> Response | None:
    told = {"host": service.url, "policy": "shop/orders", **config}
    return await asked(chain(("opa", told), services=service.services), given)


async def test_the_agent_is_told_what_the_request_is() -> None:
    async with running(deciding({"allow": True})) as service:
        given = request("/a?b=1&b=2&c=%20", [("X-Key", "k")], port=8443, scheme="https")
        assert await outcome(service, given, with_route=True, with_service=True) is None
    [seen] = service.seen
    assert (seen.method, seen.target) == ("POST", "/v1/data/shop/orders")
    told = json.loads(seen.body)["input"]
    assert told["request"] == {
        "scheme": "https",
        "method": "GET",
        "host": "a.example",
        "port": 8443,
        "path": "/a",
        "headers": {"host": "a.example", "x-key": "k"},
        "query": {"b": ["1", "2"], "c": " "},
    }
    assert told["var"]["remote_addr"] == "192.0.2.1"
    assert told["route"]["name"] == "r"
    assert "consumer" not in told


async def test_the_agent_is_told_of_consumer_and_body_where_asked_for() -> None:
    people = directory(consumer("jack", ("key-auth", {"key": "k"}), group="gold"))
    async with running(deciding({"allow": True})) as service:
        services = PluginServices(consumers=people, http=service.services.http)
        told = {"host": service.url, "policy": "p", "with_consumer": True, "with_body": True}
        plugins = chain(("key-auth", {}), ("opa", told), services=services)
        assert await asked(plugins, request("/", [("apikey", "k")], body=b'{"a": 1}')) is None
    given = json.loads(service.seen[0].body)["input"]
    assert given["consumer"] == {"username": "jack", "labels": {}, "group_id": "gold"}
    assert given["request"]["body"] == {"a": 1}


@pytest.mark.parametrize(
    ("result", "status", "body"),
    [
        ({"allow": False}, 403, b"403 Forbidden: refused by policy\n"),
        ({}, 403, b"403 Forbidden: refused by policy\n"),
        ({"allow": "yes"}, 403, b"403 Forbidden: refused by policy\n"),
        ({"allow": False, "reason": "no", "status_code": 401, "headers": {"X-Why": "w", "Host": "x"}}, 401, b"no"),
        ({"allow": False, "reason": {"a": 1}, "status_code": 9}, 403, b'{"a": 1}'),
    ],
)
async def test_a_refusal_is_worded_by_the_policy(result, status, body) -> None:
    async with running(deciding(result)) as service:
        response = await outcome(service, request("/"))
    assert response is not None
    assert (response.status, response.body) == (status, body)
    assert response.headers.get("X-Why") == result.get("headers", {}).get("X-Why")


async def test_the_upstream_gets_headers_of_the_decision_and_none_of_the_clients() -> None:
    async with running(deciding({"allow": True, "headers": {"x-user": "jack"}})) as service:
        given = request("/", [("X-User", "admin"), ("X-Role", "admin")])
        assert await outcome(service, given, send_headers_upstream=["X-User", "X-Role"]) is None
    assert given.headers.get("X-User") == "jack"
    assert "X-Role" not in given.headers


@pytest.mark.parametrize(("answer", "status"), [(None, 200), ({"allow": True}, 500), ("text", 200)])
async def test_without_a_decision_nobody_passes(answer, status) -> None:
    async with running(deciding(answer, status)) as service:
        response = await outcome(service, request("/"))
        assert response is not None
        assert response.status == 503


async def test_an_agent_that_is_away_lets_nobody_pass() -> None:
    async with running(deciding({"allow": True})) as service:
        response = await outcome(service, request("/"), host="http://127.0.0.1:1")
    assert response is not None
    assert (response.status, response.reason) == (403, "the policy agent did not answer")
