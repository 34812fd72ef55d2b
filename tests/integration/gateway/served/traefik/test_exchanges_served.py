"""Middlewares about how requests and answers are passed on, from manifests to the wire."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from typing import Any

import brotli
import pytest

from fakes.gateway.by_path import answer, by_path
from fakes.gateway.proxied import Conversation
from fakes.gateway.served import HOST, Got, asking
from fakes.translator.applied import World, world
from fakes.translator.traefik import ANY, middleware, resource, route, rule, used
from fakes.waiting import until

TEXT = b"x" * 3000


def requests(made: World, name: str = "web") -> list[str]:
    """Return the request lines that a server got."""
    return [head.decode().partition("\r\n")[0].removesuffix(" HTTP/1.1") for head in made.servers[name].heads]


# compress


@pytest.fixture
async def texts() -> AsyncIterator[World]:
    html = "Content-Type: text/html; charset=utf-8"
    script = by_path(
        html=answer("200 OK", TEXT, html),
        svg=answer("200 OK", TEXT, "Content-Type: image/svg+xml"),
        short=answer("200 OK", b"x" * 500, html),
        gz=answer("200 OK", TEXT, html, "Content-Encoding: gzip"),
        grpc=answer("200 OK", TEXT, "Content-Type: application/grpc"),
    )
    async with world(web=script) as made:
        yield made


COMPRESSED: list[tuple[dict[str, Any], str, str | None, str]] = [
    ({}, "/html", "gzip", "gzip"),
    ({}, "/html", "br", "br"),
    ({}, "/html", "zstd", "zstd"),
    ({}, "/html", "gzip, br, zstd", "gzip"),
    ({}, "/html", "gzip;q=0.8, br;q=1.0, zstd;q=0.7", "br"),
    ({}, "/html", "zstd;q=0.9, br;q=0.8, gzip;q=0.6", "zstd"),
    ({}, "/html", "*", ""),
    ({}, "/html", "notreal", ""),
    ({}, "/html", "identity", ""),
    ({}, "/html", None, ""),
    ({}, "/short", "gzip", ""),
    ({}, "/grpc", "gzip", ""),
    ({"minResponseBodyBytes": 400}, "/short", "gzip", "gzip"),
    ({"excludedContentTypes": ["text/html"]}, "/html", "gzip", ""),
    ({"excludedContentTypes": ["text/html"]}, "/svg", "gzip", "gzip"),
    ({"includedContentTypes": ["text/html"]}, "/html", "br", "br"),
    ({"includedContentTypes": ["text/html"]}, "/svg", "br", ""),
    ({"encodings": ["br", "gzip"]}, "/html", "gzip, br", "br"),
    ({"encodings": ["zstd"]}, "/html", "gzip, br", ""),
    ({"defaultEncoding": "br"}, "/html", None, "br"),
    ({"defaultEncoding": "zstd"}, "/html", "*", "zstd"),
    ({"defaultEncoding": "gzip"}, "/html", None, ""),
]


@pytest.mark.parametrize(("spec", "path", "accepted", "coding"), COMPRESSED)
async def test_compress(texts: World, spec: Any, path: str, accepted: str | None, coding: str) -> None:
    used(texts, {"compress": spec})
    got = await texts.proxy.get(path, **({} if accepted is None else {"Accept_Encoding": accepted}))
    assert got["content-encoding"] == coding
    decoded = {"gzip": gzip.decompress, "br": brotli.decompress}.get(coding)
    assert decoded is None or decoded(got.body) == (TEXT if path != "/short" else b"x" * 500)


async def test_compress_leaves_what_is_encoded_and_says_what_it_depends_on(texts: World) -> None:
    used(texts, {"compress": {}})
    assert (await texts.proxy.get("/gz", Accept_Encoding="br")).body == TEXT
    assert (await texts.proxy.get("/short", Accept_Encoding="br"))["vary"] == "Accept-Encoding"
    assert (await texts.proxy.get("/html", Accept_Encoding="gzip", Content_Type="application/grpc")).body == TEXT


# errors


async def erring(made: World, spec: Any, path: str = "/err", *, others: tuple[Any, ...] = (), **headers: str) -> Got:
    used(made, {"errors": {"service": {"name": "pages", "port": 80}, **spec}}, *others)
    return await made.proxy.get(path, **headers)


@pytest.fixture
async def errors() -> AsyncIterator[World]:
    script = by_path(err=answer("500 Oh", b"boom", "X-Own: 1"), gone=answer("410 Gone", b"gone"), fine=answer())
    pages = by_path(**{name: answer("201 Page", b"page", "X-Page: 1") for name in ("index", "500", "410", "404")})
    async with world(web=script, pages=pages) as made:
        yield made


@pytest.mark.parametrize(
    ("spec", "path", "status", "asked"),
    [
        (
            {"status": ["500-599"], "query": "/{status}?u={url}"},
            "/err?a=b",
            500,
            "/500?u=http%3A%2F%2F{}%2Ferr%3Fa%3Db",
        ),
        ({"status": ["410", "500"], "query": "{status}"}, "/gone", 410, "/410"),
        ({"status": ["500"]}, "/err", 500, "/"),
        ({"status": ["500"]}, "/gone", 410, ""),
        ({"status": ["400-499"]}, "/fine", 200, ""),
        (
            {"status": ["500"], "statusRewrites": {"500-503": 404}, "query": "/{status}?o={originalStatus}"},
            "/err",
            404,
            "/404?o=500",
        ),
    ],
)
async def test_errors_are_answered_by_a_service(errors: World, spec: Any, path: str, status: int, asked: str) -> None:
    got = await erring(errors, spec, path)
    assert got.status == status
    assert requests(errors, "pages") == ([f"GET {asked.format(HOST)}"] if asked else [])
    assert (got.body, got["x-page"], got["x-own"]) == (b"page", "1", "") if asked else (got.body, "", "")


async def test_the_service_of_errors_gets_the_clients_headers(errors: World) -> None:
    await erring(errors, {"status": ["500"]}, Cookie="a=b", X_Other="c")
    head = errors.servers["pages"].heads[-1].decode().lower()
    assert f"\r\nhost: {HOST}\r\n" in head
    assert "\r\ncookie: a=b\r\n" in head
    assert "x-code" not in head
    await erring(errors, {"status": ["500"], "errorRequestHeaders": ["X-Other"]}, Cookie="a=b", X_Other="c")
    head = errors.servers["pages"].heads[-1].decode().lower()
    assert "\r\nx-other: c\r\n" in head
    assert "cookie" not in head


async def test_errors_are_those_of_what_comes_behind_them(errors: World) -> None:
    spec = {"status": ["403", "404"], "query": "/404"}
    forbidden = {"ipAllowList": {"sourceRange": ["192.0.2.1"]}}
    assert (await erring(errors, spec, "/fine", others=(forbidden,))).body == b"page"
    used(errors, forbidden, {"errors": {"service": {"name": "pages", "port": 80}, **spec}})
    got = await errors.proxy.get("/fine")
    assert (got.status, got["x-page"]) == (403, "")


async def test_a_traefik_service_writes_pages(errors: World) -> None:
    shared = resource("TraefikService", "all", {"weighted": {"services": [{"name": "pages", "port": 80}]}})
    service = {"name": "all", "kind": "TraefikService"}
    spec = {"status": ["500"], "query": "/{status}", "service": service}
    errors.proxy.apply(shared)
    got = await erring(errors, spec)
    assert (got.status, got.body, requests(errors, "pages")) == (500, b"page", ["GET /500"])
    errors.proxy.delete(shared)
    assert errors.proxy.problems(middleware("m0")) == ["TraefikServiceNotFound"]
    assert (await errors.proxy.get("/err")).body == b"boom"


async def test_errors_of_the_gateway_itself_are_answered_by_the_service_too(errors: World) -> None:
    pages = middleware("m", errors={"status": ["500-599"], "service": {"name": "pages", "port": 80}})
    errors.proxy.apply(pages, route(rule(ANY, {"name": "lost", "port": 80}, middlewares=["m"])))
    got = await errors.proxy.get("/err")
    assert (got.status, got.body) == (503, b"page")


async def test_a_missing_service_of_errors_leaves_the_error_and_is_reported(errors: World) -> None:
    spec = {"status": ["500"], "service": {"name": "lost", "port": 80}}
    got = await erring(errors, spec)
    assert (got.status, got.body) == (500, b"boom")
    assert errors.proxy.problems(middleware("m0")) == ["ServiceNotFound"]
    assert errors.proxy.problems(route()) == ["ServiceNotFound"]


# retry


PLACES = pytest.mark.parametrize("place", ["route", "child", "service"])


def used_at(made: World, place: str, **spec: Any) -> None:
    """Have a middleware on a route, on one below another, or on the service of a route."""
    own = {"middlewares": [{"name": "m"}]}
    service = {"name": "web", "port": 80, **(own if place == "service" else {})}
    listed = {"middlewares": ["m"]} if place != "service" else {}
    below = {"parentRefs": [{"name": "above"}]} if place == "child" else {}
    made.proxy.apply(middleware("m", **spec), route(rule(ANY, service, **listed), spec=below))
    if place == "child":
        made.proxy.apply(route({"match": ANY, "kind": "Rule"}, name="above"))


@PLACES
@pytest.mark.parametrize(
    ("spec", "method", "body", "statuses", "count"),
    [
        ({"attempts": 3, "status": ["500-599"]}, "GET", None, "200", 3),
        ({"attempts": 2, "status": ["500-599"]}, "GET", None, "500", 2),
        ({"attempts": 1, "status": ["500-599"]}, "GET", None, "500", 1),
        ({"attempts": 3}, "GET", None, "500", 1),
        ({"attempts": 3, "status": ["503"]}, "GET", None, "500", 1),
        ({"attempts": 3, "status": ["500"]}, "POST", b"body", "500", 1),
        ({"attempts": 3, "status": ["500"]}, "PUT", b"body", "200", 3),
        ({"attempts": 3, "status": ["500"], "retryNonIdempotentMethod": True}, "POST", b"body", "200", 3),
        ({"attempts": 3, "status": ["500"], "disableRetryOnNetworkError": True}, "GET", None, "200", 3),
        ({"attempts": 3, "status": ["500"], "initialInterval": "1ms"}, "GET", None, "200", 3),
        ({"attempts": 3, "status": ["500"], "timeout": "1ns"}, "GET", None, "500", 1),
    ],
)
async def test_retry(place: str, spec: Any, method: str, body: bytes | None, statuses: str, count: int) -> None:
    failed = answer("500 Oh")
    async with world(web=by_path(index=[failed, failed, answer()])) as made:
        used_at(made, place, retry=spec)
        got = await (made.proxy.get(method=method) if body is None else made.proxy.post(body, method=method))
        assert str(got.status) == statuses
        assert len(made.servers["web"].heads) == count


@PLACES
@pytest.mark.parametrize(
    ("spec", "served", "status"),
    [
        ({"attempts": 3}, [""], 502),
        ({"attempts": 3, "status": ["503"]}, [""], 502),
        ({"attempts": 3, "status": ["502"]}, ["", "200 OK"], 200),
        ({"attempts": 3, "status": ["502", "503"]}, ["", "503 Oh", "200 OK"], 200),
        ({"attempts": 3, "status": ["502"]}, ["", "", ""], 502),
        ({"attempts": 3, "status": ["502"], "initialInterval": "1ms"}, ["", "", ""], 502),
        ({"attempts": 1, "status": ["502"]}, [""], 502),
        ({"attempts": 5, "status": ["502"], "timeout": "1ns"}, [""], 502),
        ({"attempts": 3, "status": ["502"], "disableRetryOnNetworkError": True}, ["", "200 OK"], 200),
    ],
)
async def test_retry_of_connections_that_end_without_an_answer(
    place: str, spec: Any, served: list[str], status: int
) -> None:
    left = list(served)

    async def script(conversation: Conversation) -> None:
        while True:
            await conversation.request()
            if not (said := left.pop(0)):
                return
            await conversation.send(answer(said))

    async with world(web=script) as made:
        used_at(made, place, retry=spec)
        assert (await made.proxy.get()).status == status
        assert len(made.servers["web"].heads) == len(served)
        assert left == []


@pytest.mark.parametrize(("statuses", "status"), [(["503"], 504), (["500-599"], 200)])
async def test_retry_of_servers_that_do_not_answer_in_time(statuses: list[str], status: int) -> None:
    async def script(conversation: Conversation) -> None:
        if (await conversation.request())[0].startswith(b"GET ") and len(made.servers["web"].heads) == 1:
            await asyncio.sleep(5)
        await conversation.send(answer())

    async with world(web=script) as made:
        slow = resource("ServersTransport", "slow", {"forwardingTimeouts": {"responseHeaderTimeout": "200ms"}})
        service = {"name": "web", "port": 80, "serversTransport": "slow"}
        retry = {"attempts": 2, "status": statuses}
        made.proxy.apply(slow, middleware("m", retry=retry), route(rule(ANY, service, middlewares=["m"])))
        assert (await made.proxy.get()).status == status


@PLACES
async def test_a_body_that_is_longer_than_what_is_kept_is_passed_on_as_it_comes(place: str) -> None:
    async with world(web=by_path(index=[answer("500 Oh"), answer()])) as made:
        used_at(made, place, retry={"attempts": 2, "status": ["500"], "maxRequestBodyBytes": 10})
        client = await made.proxy.proxy.connect()
        await client.send(f"PUT / HTTP/1.1\r\nHost: {HOST}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        await client.send(b"c\r\nabcdefghijkl\r\n")
        await until(lambda: made.servers["web"].heads)
        await client.send(b"6\r\nghijkl\r\n0\r\n\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 500")
        (head,) = made.servers["web"].heads
        assert b"\r\ntransfer-encoding: chunked" in head.lower()


@PLACES
async def test_a_body_that_comes_in_pieces_is_sent_again(place: str) -> None:
    async with world(web=by_path(index=[answer("500 Oh"), answer()])) as made:
        used_at(made, place, retry={"attempts": 2, "status": ["500"]})
        client = await made.proxy.proxy.connect()
        await client.send(f"PUT / HTTP/1.1\r\nHost: {HOST}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        await client.send(b"4\r\nabcd\r\n")
        await asyncio.sleep(0.05)
        assert made.servers["web"].heads == []
        await client.send(b"6\r\nghijkl\r\n0\r\n\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 200")
        assert [b"content-length: 10" in head.lower() for head in made.servers["web"].heads] == [True, True]


# buffering


@PLACES
@pytest.mark.parametrize(
    ("spec", "path", "body", "status"),
    [
        ({"maxRequestBodyBytes": 10}, "/fine", b"x" * 10, 200),
        ({"maxRequestBodyBytes": 10}, "/fine", b"x" * 11, 413),
        ({"maxResponseBodyBytes": 10}, "/fine", b"x", 200),
        ({"maxResponseBodyBytes": 10}, "/long", b"x", 500),
        ({"memRequestBodyBytes": 10, "memResponseBodyBytes": 10}, "/long", b"x", 200),
    ],
)
async def test_buffering(place: str, spec: Any, path: str, body: bytes, status: int) -> None:
    async with world(web=by_path(fine=answer(), long=answer("200 OK", TEXT))) as made:
        used_at(made, place, buffering=spec)
        got = await made.proxy.post(body, path)
        assert got.status == status


@PLACES
@pytest.mark.parametrize(
    ("expression", "status", "count"),
    [
        ("IsNetworkError() && Attempts() < 3", "502 Oh", 3),
        ("IsNetworkError() && Attempts() < 3", "500 Oh", 1),
        ("Attempts() <= 1", "500 Oh", 2),
        ("(ResponseCode() >= 500 || IsNetworkError()) && Attempts() < 2", "503 Oh", 2),
        ("ResponseCode() == 503 && Attempts() < 0", "503 Oh", 1),
    ],
)
async def test_buffering_sends_requests_again_by_an_expression(
    place: str, expression: str, status: str, count: int
) -> None:
    async with world(web=by_path(index=answer(status))) as made:
        used_at(made, place, buffering={"retryExpression": expression})
        got = await made.proxy.post(b"x")
        assert got.status == int(status[:3])
        assert len(made.servers["web"].heads) == count


# What cannot be followed


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"compress": {"encodings": ["deflate"]}}, "encodings"),
        ({"compress": {"encodings": ["gzip"], "defaultEncoding": "br"}}, "defaultEncoding"),
        ({"compress": {"excludedContentTypes": ["a/b"], "includedContentTypes": ["a/b"]}}, "includedContentTypes"),
        ({"errors": {"status": ["500"]}}, "service"),
        ({"errors": {"status": ["5xx"], "service": {"name": "web", "port": 80}}}, "status"),
        ({"errors": {"status": ["500"], "service": {"name": "web"}}}, "service.port"),
        ({"retry": {"attempts": 0}}, "attempts"),
        ({"retry": {"attempts": 2, "disableRetryOnNetworkError": True}}, "disableRetryOnNetworkError"),
        ({"retry": {"attempts": 2, "status": ["600"]}}, "status"),
        ({"buffering": {"retryExpression": "Attempts() < "}}, "retryExpression"),
        ({"buffering": {"retryExpression": "ResponseCode() == 500 && Attempts() > 2"}}, "retryExpression"),
        ({"buffering": {"retryExpression": 'RequestMethod() == "GET" && Attempts() < 2'}}, "retryExpression"),
        ({"forwardAuth": {"address": "auth"}}, "address"),
        ({"forwardAuth": {"address": "https://a.test", "tls": {"caSecret": "lost"}}}, "tls.caSecret"),
    ],
)
async def test_a_mistake_closes_the_routes_and_is_named(errors: World, spec: Any, field: str) -> None:
    used(errors, spec)
    assert await errors.proxy.status("/fine") == 503
    (kind,) = spec
    assert errors.proxy.fields(middleware("m0")) == [f"spec.{kind}.{field}"]


async def test_errors_without_a_status_replace_nothing(errors: World) -> None:
    used(errors, errors={"service": {"name": "pages", "port": 80}, "query": "/page"})
    assert await errors.proxy.status("/fine") == 200
    assert errors.proxy.problems(middleware("m0")) == []


async def test_retries_of_one_service_among_several_are_for_it_alone() -> None:
    def alone(name: str) -> Any:
        return {"name": name, "port": 80, "middlewares": [{"name": "m"}] if name == "again" else []}

    async with world(again=by_path(index=answer("500 Oh")), once=by_path(index=answer("500 Oh"))) as made:
        spec = {"attempts": 3, "status": ["500"]}
        made.proxy.apply(middleware("m", retry=spec), route(rule(ANY, alone("again"), alone("once"))))
        assert [await made.proxy.status() for _ in range(4)] == [500] * 4
        assert {name: len(server.heads) for name, server in made.servers.items()} == {"again": 6, "once": 2}


# Informational answers


async def hinted(conversation: Conversation) -> None:
    """Answer with two early hints before each answer."""
    while True:
        await conversation.request()
        for style in ("style", "more"):
            await conversation.send(f"HTTP/1.1 103 Early Hints\r\nLink: </{style}.css>; rel=preload\r\n\r\n".encode())
        await conversation.send(answer("200 OK", TEXT, "Content-Type: text/html"))


@pytest.mark.parametrize(
    "spec",
    [
        {"compress": {}},
        {"headers": {"customResponseHeaders": {"X-Foo": "bar"}}},
        {"errors": {"status": ["500-599"], "service": {"name": "web", "port": 80}, "query": "/e"}},
    ],
    ids=["compress", "headers", "customerrors"],
)
async def test_informational_answers_pass_middlewares(spec: Any) -> None:
    async with world(web=hinted) as made:
        used(made, **spec)
        client = await made.proxy.proxy.connect()
        await client.send(asking(Accept_Encoding="gzip"))
        heads = [(await client.head()).decode() for _ in range(3)]
        assert [head.split(" ")[1] for head in heads] == ["103", "103", "200"]
        assert ["style.css" in heads[0], "more.css" in heads[1]] == [True, True]
