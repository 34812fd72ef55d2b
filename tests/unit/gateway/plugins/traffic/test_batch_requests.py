"""Several requests in one, by the cases of Apache APISIX (t/plugin/batch-requests*.t), on real connections."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fakes.gateway.proxied import Conversation, Proxied, proxied
from fakes.waiting import until
from headgate.gateway.plugins.runtime.run import RoutePlugins
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.policies import RoutePolicies
from unit.gateway.plugins.running import chain

PAGE = b"/apisix/batch-requests"


async def echo(conversation: Conversation) -> None:
    """Answer with what came; `/slow` takes its time, and `/cut` never ends."""
    while True:
        head, body = await conversation.request()
        if b"/slow" in head:
            await asyncio.sleep(0.3)
        if b"/cut" in head:
            await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
            return
        said = head + b"|" + body
        await conversation.send(
            b"HTTP/1.1 201 Created\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: %d\r\n\r\n%b" % (len(said), said)
        )


@asynccontextmanager
async def batching(**config: Any) -> AsyncIterator[Proxied]:
    """Run a proxy with the page at its place, and an upstream for all other paths."""
    async with proxied(echo, config=ProxyConfig(**config)) as proxy:
        page = RoutePolicies()
        page.hooks = RoutePlugins(chain(("public-api", {})))
        other = proxy.target

        class Router:
            def match(self, host: bytes, path: bytes, source: Any) -> Any:
                if path == b"/none":
                    return None
                return type(other)(other.pools, policies=page) if path == PAGE else other

        proxy.holder.router = Router()  # type: ignore[assignment]  # it matches as one
        yield proxy


async def ask(proxy: Proxied, batch: Any, *headers: bytes) -> tuple[int, Any]:
    body = batch if isinstance(batch, bytes) else json.dumps(batch).encode()
    lines = b"".join(b"%b\r\n" % header for header in headers)
    client = await proxy.connect()
    head = b"POST %b HTTP/1.1\r\nHost: a.example\r\nContent-Length: %d\r\n%b\r\n" % (PAGE, len(body), lines)
    await client.send(head + body)
    answer, content = await client.answer()
    return int(answer.split(b" ")[1]), json.loads(content)


async def test_requests_are_served_in_their_order_with_what_all_have_in_common() -> None:
    batch = {
        "query": {"base": "b", "conflict": "all"},
        "headers": {"Base-Header": "base", "Conflict": "all", "Outer": "all"},
        "pipeline": [
            {"path": "/b", "headers": {"conflict": "own", "Number": 5}},
            {"path": "/c?x=1", "method": "PUT", "body": "sent", "query": {"conflict": "own", "list": [1, 2]}},
        ],
    }
    async with batching() as proxy:
        status, (first, second) = await ask(proxy, batch, b"Outer: outer", b"Cookie: a=b", b"Content-Type: x/y")
        await until(lambda: len(proxy.log.records) == 3)
    assert status == 200
    assert (first["status"], first["reason"], first["headers"]["X-A"]) == (201, "Created", ["1", "2"])
    head, _, body = second["body"].partition("|")
    assert head.startswith("PUT /c?x=1&base=b&conflict=own&list=1&list=2 HTTP/1.1\r\nHost: a.example\r\n")
    assert body == "sent"
    told = first["body"]
    assert told.startswith("GET /b?base=b&conflict=all HTTP/1.1\r\n")
    for line in ("Base-Header: base", "conflict: own", "Number: 5", "Outer: all", "Cookie: a=b"):
        assert f"\r\n{line}\r\n" in told
    assert "x/y" not in told


async def test_the_client_is_whoever_sent_the_batch() -> None:
    claims = {"X-Forwarded-For": "203.0.113.9", "X-Real-IP": "203.0.113.9", "Forwarded": "for=203.0.113.9"}
    batch = {"headers": claims, "pipeline": [{"path": "/b", "headers": {"Host": "b.example", "Expect": "x"}}]}
    async with batching() as proxy:
        _, (answer,) = await ask(proxy, batch)
    assert "203.0.113.9" not in answer["body"]
    assert "X-Real-IP: 127.0.0.1\r\n" in answer["body"]
    assert "\r\nHost: b.example\r\n" in answer["body"]


async def test_what_a_trusted_proxy_says_of_the_client_counts_for_its_requests() -> None:
    batch = {"headers": {"X-Forwarded-For": "203.0.113.9"}, "pipeline": [{"path": "/b"}]}
    async with batching(trusted_proxies=("127.0.0.0/8",)) as proxy:
        _, (answer,) = await ask(proxy, batch, b"X-Forwarded-For: 198.51.100.7")
    assert "X-Real-IP: 198.51.100.7\r\n" in answer["body"]
    assert "203.0.113.9" not in answer["body"]


async def test_each_answer_is_its_own() -> None:
    batch = {"pipeline": [{"path": "/none"}, {"path": "/cut"}, {"path": "/b", "method": "HEAD"}, {"path": "/b"}]}
    async with batching() as proxy:
        _, answers = await ask(proxy, batch)
    assert [answer["status"] for answer in answers] == [404, 502, 201, 201]
    assert "body" not in answers[2]


async def test_behind_a_request_that_is_late_none_is_answered() -> None:
    batch = {"timeout": 100, "pipeline": [{"path": "/a"}, {"path": "/slow"}, {"path": "/b"}]}
    async with batching() as proxy:
        _, answers = await ask(proxy, batch)
    late = {"status": 504, "reason": "upstream timeout"}
    assert [answers[0]["status"], *answers[1:]] == [201, late, late]


async def test_a_batch_has_no_batches_within() -> None:
    within = {"path": PAGE.decode(), "method": "POST", "body": json.dumps({"pipeline": [{"path": "/b"}]})}
    async with batching() as proxy:
        _, (answer,) = await ask(proxy, {"pipeline": [within]})
        assert proxy.origin.heads == []
    (inner,) = json.loads(answer["body"])
    assert inner["status"] == 502
    assert "makes no further ones" in inner["reason"]


@pytest.mark.parametrize(
    ("batch", "status", "told"),
    [
        (b"", 400, "no request body, you should give at least one pipeline setting"),
        (b"{", 400, "invalid request body: "),
        ({}, 400, "bad request body: pipeline: "),
        ({"pipeline": []}, 400, "bad request body: pipeline: "),
        ({"pipeline": [{}]}, 400, "bad request body: pipeline.0.path: "),
        ({"pipeline": [{"path": ""}]}, 400, "bad request body: pipeline.0.path: "),
        ({"pipeline": [{"path": "a"}]}, 400, "bad request body: pipeline.0.path: "),
        ({"pipeline": [{"path": "/a", "method": "put"}]}, 400, "bad request body: pipeline.0.method: "),
        ({"pipeline": [{"path": "/a", "method": "CONNECT"}]}, 400, "bad request body: pipeline.0.method: "),
        ({"pipeline": [{"path": "/a", "ssl_verify": 1}]}, 400, "bad request body: pipeline.0.ssl_verify: "),
        ({"pipeline": [{"path": "/a", "other": 1}]}, 400, "bad request body: pipeline.0.other: "),
        ({"timeout": "200", "pipeline": [{"path": "/a"}]}, 400, "bad request body: timeout: "),
        ({"timeout": 0, "pipeline": [{"path": "/a"}]}, 400, "bad request body: timeout: "),
        ({"pipeline": [{"path": "/a", "headers": {"A": "b\r\nc: d"}}]}, 400, "invalid request body: a header's value"),
        ({"pipeline": [{"path": "/a", "headers": {"A": {}}}]}, 400, "invalid request body: header A"),
        ({"pipeline": [{"path": "/a"}] * 1001}, 400, "invalid request body: too many pipeline requests, 1001"),
        ({"pipeline": [{"path": "/a", "body": "x" * (1 << 20)}]}, 413, "the request is greater than the maximum size"),
    ],
)
async def test_a_batch_that_is_none_is_refused(batch, status, told) -> None:
    async with batching() as proxy:
        answered, content = await ask(proxy, batch)
        assert proxy.origin.heads == []
    assert answered == status
    assert content["error_msg"].startswith(told)


@pytest.mark.parametrize(
    "item",
    [
        {"path": "/a", "headers": {"A b": "c"}},
        {"path": "/a", "headers": {"Host": "a b"}},
        {"path": "/a", "headers": {"A": "x" * 70_000}},
        {"path": "/a" * 10_000},
    ],
)
async def test_a_request_that_cannot_be_sent_is_a_502_of_its_own(item) -> None:
    async with batching() as proxy:
        _, answers = await ask(proxy, {"pipeline": [item, {"path": "/ä b#c"}]})
    assert [answer["status"] for answer in answers] == [502, 201]
