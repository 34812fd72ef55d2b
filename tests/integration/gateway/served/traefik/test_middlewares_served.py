"""Middlewares from manifests to the wire."""

import asyncio
import base64
import hashlib
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.proxied import OK, Conversation
from fakes.gateway.served import HOST, Got
from fakes.gateway.tls import Authority
from fakes.translator.applied import World, secret, world
from fakes.translator.traefik import ANY, asked, middleware, resource, route, rule, used
from headgate.translator.world.settings import TraefikSettings, TranslationSettings

SHA = base64.b64encode(hashlib.sha1(b"secret").digest()).decode()
JACK = "Basic " + base64.b64encode(b"jack:secret").decode()


@pytest.fixture
async def web() -> AsyncIterator[World]:
    """A proxy before a Service `web`."""
    async with world("web") as made:
        yield made


@pytest.mark.parametrize(
    ("spec", "path", "sent", "header"),
    [
        ({"addPrefix": {"prefix": "/foo"}}, "/bar?x=1", "/foo/bar?x=1", ""),
        ({"stripPrefix": {"prefixes": ["/stat", "/b"]}}, "/status", "/us", "x-forwarded-prefix: /stat"),
        ({"stripPrefix": {"prefixes": ["/a"]}}, "/a", "/", "x-forwarded-prefix: /a"),
        ({"stripPrefix": {"prefixes": ["/api/"]}}, "/ap%69/a%2Fb", "/a%2Fb", "x-forwarded-prefix: /api/"),
        ({"stripPrefix": {"prefixes": [" /a b"]}}, "/a%20b/c", "/c", "x-forwarded-prefix: /a b"),
        ({"stripPrefixRegex": {"regex": ["/[a-z ]+"]}}, "/a%20b/c%20", "/c%20", "x-forwarded-prefix: /a b"),
        (
            {"stripPrefixRegex": {"regex": ["/foo/[a-z0-9]+/[0-9]+/"]}},
            "/foo/b1/123/x",
            "/x",
            "x-forwarded-prefix: /foo",
        ),
        ({"replacePath": {"path": "/foo$x"}}, "/bar?y=1", "/foo$x?y=1", "x-replaced-path: /bar"),
        (
            {"replacePathRegex": {"regex": "^/foo/(.*)", "replacement": "/bar/$1"}},
            "/foo/x?y=1",
            "/bar/x?y=1",
            "x-replaced-path: /foo/x",
        ),
        (
            {"replacePathRegex": {"regex": "(?P<a>[ab])[(](c)", "replacement": "<${a}$2$3-$b$$>"}},
            "/a(c/b(cd",
            "/<ac-$>/<bc-$>d",
            "x-replaced-path: /a(c/b(cd",
        ),
        ({"replacePathRegex": {"regex": "o", "replacement": "0"}}, "/foo/o", "/f00/0", "x-replaced-path: /foo/o"),
        ({"replacePathRegex": {"regex": "^/(?<a>[^/]+)/(.*)$", "replacement": "/${2}/$a"}}, "/b/c", "/c/b", ""),
        ({"replacePathRegex": {"regex": ".*", "replacement": "/all"}}, "/b/c", "/all", ""),
    ],
)
async def test_paths_are_rewritten(web: World, spec: Any, path: str, sent: str, header: str) -> None:
    used(web, spec)
    head = await asked(web, path)
    assert head.startswith(f"GET {sent} HTTP/1.1\r\n")
    assert f"\r\n{header}" in head


async def test_a_path_that_would_climb_is_refused(web: World) -> None:
    used(web, stripPrefix={"prefixes": ["/api"]})
    assert [await web.proxy.status(path) for path in ("/api../x", "/api./x", "/api/x")] == [400, 400, 200]


async def test_every_prefix_is_told(web: World) -> None:
    used(web, {"stripPrefix": {"prefixes": ["/a"]}}, {"stripPrefix": {"prefixes": ["/b"]}})
    head = await asked(web, "/a/b/c")
    assert "x-forwarded-prefix: /a\r\nx-forwarded-prefix: /b\r\n" in head


async def test_a_path_that_is_not_replaced_is_not_said_to_be(web: World) -> None:
    used(web, replacePathRegex={"regex": "^/foo", "replacement": "/bar"})
    assert "x-replaced-path" not in await asked(web, "/other")


async def test_middlewares_run_in_the_order_in_which_they_are_listed(web: World) -> None:
    add, strip = {"addPrefix": {"prefix": "/a"}}, {"stripPrefix": {"prefixes": ["/a/b"]}}
    used(web, add, strip)
    assert (await asked(web, "/b/c")).startswith("GET /c ")
    used(web, strip, add)
    assert (await asked(web, "/b/c")).startswith("GET /a/b/c ")
    used(web, add, {"addPrefix": {"prefix": "/z"}})
    assert (await asked(web, "/b")).startswith("GET /z/a/b ")


@pytest.mark.parametrize(
    ("spec", "method", "status", "location"),
    [
        ({"scheme": "https"}, "GET", 302, f"https://{HOST}/a?b=1"),
        ({"scheme": "https", "permanent": True}, "GET", 301, f"https://{HOST}/a?b=1"),
        ({"scheme": "https", "permanent": True}, "HEAD", 308, f"https://{HOST}/a?b=1"),
        ({"scheme": "https"}, "POST", 307, f"https://{HOST}/a?b=1"),
        ({"scheme": "https", "port": "8443"}, "GET", 302, f"https://{HOST}:8443/a?b=1"),
        ({"scheme": "wss", "port": "9443"}, "GET", 302, f"wss://{HOST}:9443/a?b=1"),
        ({"scheme": "https", "port": 443}, "GET", 302, f"https://{HOST}/a?b=1"),
    ],
)
async def test_redirect_scheme(web: World, spec: Any, method: str, status: int, location: str) -> None:
    used(web, redirectScheme=spec)
    got = await web.proxy.get("/a?b=1", method=method)
    assert (got.status, got["location"]) == (status, location)


async def test_redirect_scheme_drops_the_requests_port(web: World) -> None:
    used(web, redirectScheme={"scheme": "https"})
    assert (await web.proxy.get("/", host=f"{HOST}:8080"))["location"] == f"https://{HOST}/"


async def test_redirect_scheme_lets_requests_pass_that_came_by_the_scheme(web: World) -> None:
    web.proxy.proxy.present(HOST, Authority().issue(HOST))
    secured = route(rule(ANY, middlewares=["m"]), spec={"tls": {}})
    web.proxy.apply(middleware("m", redirectScheme={"scheme": "https"}), secured)
    assert (await web.proxy.proxy.secure()).status == 200


async def test_redirect_regex(web: World) -> None:
    used(web, redirectRegex={"regex": f"^http://{HOST}/old/(.*)", "replacement": "https://new.test/${1}?from=old"})
    got = await web.proxy.get("/old/x")
    assert (got.status, got["location"]) == (302, "https://new.test/x?from=old")
    assert await web.proxy.status("/other") == 200


async def test_basic_auth_by_a_file_under_any_key(web: World) -> None:
    web.proxy.apply(secret("users", anything=f"# people\njack:{{SHA}}{SHA}\n"))
    used(web, basicAuth={"secret": "users", "removeHeader": True, "headerField": "X-User"})
    refused = await web.proxy.get()
    assert (refused.status, refused["www-authenticate"]) == (401, 'Basic realm="traefik"')
    head = await asked(web, Authorization=JACK)
    assert "\r\nx-user: jack\r\n" in head
    assert "authorization" not in head


async def test_basic_auth_by_a_secret_of_its_type(web: World) -> None:
    web.proxy.apply(secret("users", username="jack", password="secret"))
    used(web, basicAuth={"secret": "users"})
    assert [await web.proxy.status(**headers) for headers in ({}, {"Authorization": JACK})] == [401, 200]


async def test_a_secret_of_several_elements_closes_the_route(web: World) -> None:
    web.proxy.apply(secret("users", one="a", two="b"))
    used(web, basicAuth={"secret": "users"})
    assert await web.proxy.status(Authorization=JACK) == 503


async def test_digest_auth_by_a_file_under_any_key(web: World) -> None:
    digest = hashlib.md5(b"jack:traefik:secret").hexdigest()
    web.proxy.apply(secret("users", anything=f"jack:traefik:{digest}"))
    used(web, digestAuth={"secret": "users", "headerField": "X-User"})
    refused = await web.proxy.get()
    assert refused.status == 401
    challenge = dict(re.findall(r'(\w+)="?([^",]*)"?', refused["www-authenticate"]))
    assert challenge["realm"] == "traefik"
    answer = digest_answer("jack", "secret", "/", challenge)
    assert "\r\nx-user: jack\r\n" in await asked(web, Authorization=answer)
    assert await web.proxy.status(Authorization=digest_answer("jack", "wrong", "/", challenge)) == 401


def digest_answer(user: str, password: str, uri: str, challenge: dict[str, str]) -> str:
    """Return what a client says (RFC 7616, MD5 with qop=auth)."""

    def md5(text: str) -> str:
        return hashlib.md5(text.encode()).hexdigest()

    nonce, count, client = challenge["nonce"], "00000001", "abc"
    who, what = md5(f"{user}:{challenge['realm']}:{password}"), md5(f"GET:{uri}")
    response = md5(f"{who}:{nonce}:{count}:{client}:auth:{what}")
    opaque = f', opaque="{challenge["opaque"]}"' if "opaque" in challenge else ""
    return (
        f'Digest username="{user}", realm="{challenge["realm"]}", nonce="{nonce}", uri="{uri}", qop=auth, '
        f'nc={count}, cnonce="{client}", response="{response}"{opaque}'
    )


async def test_requests_at_once_are_bounded() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(conversation: Conversation) -> None:
        await conversation.request()
        entered.set()
        await leave.wait()
        await conversation.send(OK)

    async with world(web=slow) as made:
        used(made, inFlightReq={"amount": 1})
        first = asyncio.create_task(made.proxy.get())
        await entered.wait()
        assert await made.proxy.status() == 429
        leave.set()
        assert (await first).status == 200


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"ipAllowList": {"sourceRange": ["127.0.0.1/32"]}}, 200),
        ({"ipAllowList": {"sourceRange": ["192.168.1.7"]}}, 403),
        ({"ipAllowList": {"sourceRange": ["192.168.1.7"], "rejectStatusCode": 404}}, 404),
        ({"ipWhiteList": {"sourceRange": ["127.0.0.0/8"]}}, 200),
    ],
)
async def test_networks_are_admitted(web: World, spec: Any, status: int) -> None:
    used(web, spec)
    assert await web.proxy.status() == status


async def statuses(made: World, count: int, **headers: str) -> list[int]:
    return [(await made.proxy.get(**headers)).status for _ in range(count)]


async def test_rate_limit_lets_a_burst_through(web: World) -> None:
    used(web, rateLimit={"average": 1, "period": "1h", "burst": 3})
    assert await statuses(web, 5) == [200, 200, 200, 429, 429]
    refused = await web.proxy.get()
    assert refused["retry-after"] in ("3599", "3600")
    assert re.fullmatch(r"59m5\d\.\d+s|1h0m0s", refused["x-retry-in"])


async def test_rate_limit_lets_a_request_beyond_the_burst_wait(web: World) -> None:
    used(web, rateLimit={"average": 10, "period": "1s", "burst": 1})
    assert await statuses(web, 1) == [200]
    began = asyncio.get_running_loop().time()
    assert 429 in await statuses(web, 2)
    web.proxy.apply(middleware("m0", rateLimit={"average": 1, "period": "400ms", "burst": 1}))
    assert await statuses(web, 1) == [200]
    await asyncio.sleep(0.25)
    assert await statuses(web, 1) == [200]
    assert asyncio.get_running_loop().time() - began > 0.4


async def test_rate_limit_counts_by_header(web: World) -> None:
    used(web, rateLimit={"average": 1, "period": "1h", "sourceCriterion": {"requestHeaderName": "X-User"}})
    assert await statuses(web, 2, X_User="a") == [200, 429]
    assert await statuses(web, 2, X_User="b") == [200, 429]


async def test_a_rate_of_zero_is_no_bound(web: World) -> None:
    used(web, rateLimit={"average": 0})
    assert await statuses(web, 3) == [200, 200, 200]


def chain(name: str, *names: str) -> Any:
    return middleware(name, chain={"middlewares": [{"name": one} for one in names]})


async def test_a_chain_runs_its_middlewares_where_it_stands(web: World) -> None:
    a, b = middleware("a", addPrefix={"prefix": "/a"}), middleware("b", addPrefix={"prefix": "/b"})
    web.proxy.apply(a, b, chain("inner", "b"), chain("both", "a", "inner"))
    web.proxy.apply(route(rule(ANY, middlewares=["both", "a"])))
    assert (await asked(web, "/x")).startswith("GET /a/b/a/x ")


async def test_a_chain_that_leads_to_itself_closes_the_route(web: World) -> None:
    closed = route(rule(ANY, middlewares=["one"]))
    web.proxy.apply(chain("one", "two"), chain("two", "one"), closed)
    assert await web.proxy.status() == 503
    assert "leads back to itself" in web.proxy.messages(closed)


async def test_a_missing_middleware_closes_the_route_until_it_is_there(web: World) -> None:
    closed = route(rule(ANY, middlewares=["late"]))
    web.proxy.apply(closed)
    assert await web.proxy.status() == 503
    assert web.proxy.errors(closed) == ["MiddlewareNotFound"]
    assert web.proxy.fields(closed) == ["spec.routes[0].middlewares[0].name"]
    web.proxy.apply(middleware("late", addPrefix={"prefix": "/late"}))
    assert (await asked(web)).startswith("GET /late/ ")
    assert web.proxy.errors(closed) == []


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"addPrefix": {"prefix": "/a"}, "stripPrefix": {"prefixes": ["/b"]}},
        {"addPrefix": {"prefix": ""}},
        {"stripPrefixRegex": {"regex": ["("]}},
        {"replacePathRegex": {"regex": "^/(?P<x>.*)", "replacement": "/$0"}},
        {"redirectScheme": {"scheme": ""}},
        {"ipAllowList": {"sourceRange": []}},
        {"rateLimit": {"average": 1, "redis": {"endpoints": ["redis"]}}},
        {"rateLimit": {"average": 1, "redis": {"endpoints": []}}},
        {"rateLimit": {"average": 1, "redis": {"endpoints": ["redis:1"], "secret": "lost"}}},
        {"rateLimit": {"average": 1, "redis": {"endpoints": ["redis:1"], "tls": {"caSecret": "lost"}}}},
        {"rateLimit": {"average": 1, "sourceCriterion": {"requestHost": True, "requestHeaderName": "X-User"}}},
        {"headers": {}},
        {"circuitBreaker": {}},
        {"circuitBreaker": {"expression": "NetworkErrorRatio() > 1"}},
        {"circuitBreaker": {"expression": "LatencyAtQuantileMS(200.0) > 1"}},
        {"basicAuth": {"secret": "lost"}},
        {"forwardAuth": {"address": "auth.test"}},
        {"plugin": {"own": {}}},
        {"plugin": {"cors": {"nothing": 1}}},
        {"plugin": {"cors": {}, "gzip": {}}},
    ],
)
async def test_a_middleware_that_cannot_be_followed_closes_its_routes_and_says_why(web: World, spec: Any) -> None:
    wrong, closed = middleware("m", **spec), route(rule(ANY, middlewares=["fine", "m"]))
    web.proxy.apply(middleware("fine", addPrefix={"prefix": "/x"}), wrong, closed)
    assert await web.proxy.status() == 503
    assert len(web.proxy.errors(wrong)) == 1
    assert web.proxy.errors(closed) == ["InvalidMiddleware"]
    assert web.servers["web"].heads == []


@pytest.mark.parametrize(
    ("is_allowed", "reference", "status"),
    [
        (False, {"name": "m", "namespace": "shop"}, 503),
        (False, {"name": "shop-m@kubernetescrd"}, 503),
        (False, {"name": "m", "namespace": "default"}, 503),
        (True, {"name": "m", "namespace": "shop"}, 200),
        (True, {"name": "shop-m@kubernetescrd"}, 200),
        (True, {"name": "m@kubernetescrd"}, 503),
        (True, {"name": "m@file"}, 503),
    ],
)
async def test_middlewares_of_other_namespaces_are_used_by_setting(
    is_allowed: bool, reference: Any, status: int
) -> None:
    settings = TranslationSettings(traefik=TraefikSettings(allow_cross_namespace=is_allowed))
    async with world("web", settings=settings) as made:
        made.proxy.apply(middleware("m", "shop", addPrefix={"prefix": "/shop"}))
        made.proxy.apply(route(rule(ANY, middlewares=[reference])))
        assert await made.proxy.status() == status


async def test_middlewares_of_a_service_run_for_its_requests_alone() -> None:
    async with world("one", "two") as made:
        made.proxy.apply(middleware("m", headers={"customResponseHeaders": {"X-One": "yes"}}))
        one = {"name": "one", "port": 80, "middlewares": [{"name": "m"}]}
        made.proxy.apply(route(rule(ANY, one, {"name": "two", "port": 80})))
        got: list[Got] = [await made.proxy.get() for _ in range(4)]
        assert {(each.body, each["x-one"]) for each in got} == {(b"one", "yes"), (b"two", "")}


async def test_a_field_that_no_middleware_has_is_passed_over(web: World) -> None:
    used(web, addPrefix={"prefix": "/a"}, other={"own": 1})
    assert (await asked(web, "/b")).startswith("GET /a/b ")


async def test_a_middleware_of_the_older_group_is_found(web: World) -> None:
    web.proxy.apply(resource("Middleware", "m", {"addPrefix": {"prefix": "/old"}}, group="traefik.containo.us"))
    web.proxy.apply(route(rule(ANY, middlewares=["m"])))
    assert (await asked(web)).startswith("GET /old/ ")
