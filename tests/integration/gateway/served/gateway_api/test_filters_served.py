"""Filters of HTTPRoutes from manifests to the wire."""

from typing import Any

import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import answering
from fakes.gateway.served import HOST, Got, asking, read_answer
from fakes.translator.applied import World, world
from fakes.translator.gateway_api import gateway, gateway_class, listener, prefix, route, to
from fakes.waiting import until

WITH_HEADERS = b"HTTP/1.1 200 OK\r\nX-Old: 1\r\nX-Set: old\r\nX-Add: a\r\nContent-Length: 0\r\n\r\n"


def request_headers(**changes: Any) -> Any:
    return {"type": "RequestHeaderModifier", "requestHeaderModifier": changes}


def rewrite(**changes: Any) -> Any:
    return {"type": "URLRewrite", "urlRewrite": changes}


def redirect(**changes: Any) -> Any:
    return {"type": "RequestRedirect", "requestRedirect": changes}


def replace_prefix(value: str) -> Any:
    return {"type": "ReplacePrefixMatch", "replacePrefixMatch": value}


def replace_path(value: str) -> Any:
    return {"type": "ReplaceFullPath", "replaceFullPath": value}


def filtered(made: World, *filters: Any, path: str = "/", service: str = "web", **fields: Any) -> None:
    written = route(to(service, matches=[prefix(path)], filters=list(filters), **fields))
    made.proxy.apply(gateway_class(), gateway(), written)


def head_of(made: World, name: str = "web") -> str:
    return made.servers[name].heads[-1].decode("latin-1")


# Headers


async def test_headers_of_requests_are_set_added_and_removed() -> None:
    changes = {
        "set": [{"name": "X-Set", "value": "new $host"}],
        "add": [{"name": "X-Add", "value": "b"}, {"name": "X-Add", "value": "c"}],
        "remove": ["X-Old"],
    }
    async with world("web") as made:
        filtered(made, request_headers(**changes))
        assert await made.proxy.status(X_Set="old", X_Add="a", X_Old="1") == 200
        head = head_of(made)
        assert "X-Set: new $host\r\n" in head
        assert [line for line in head.split("\r\n") if line.lower().startswith("x-add")] == [
            "X-Add: a",
            "X-Add: b",
            "X-Add: c",
        ]
        assert "X-Old" not in head


async def test_headers_of_answers_are_set_added_and_removed() -> None:
    changes = {
        "set": [{"name": "X-Set", "value": "new"}],
        "add": [{"name": "X-Add", "value": "b"}],
        "remove": ["X-Old"],
    }
    async with world(web=answering(WITH_HEADERS)) as made:
        filtered(made, {"type": "ResponseHeaderModifier", "responseHeaderModifier": changes})
        got = await made.proxy.get()
        assert (got["X-Set"], got.all("X-Add"), got["X-Old"]) == ("new", ["a", "b"], "")


async def test_filters_of_a_backend_are_for_its_requests_alone() -> None:
    def named(name: str) -> Any:
        changed = request_headers(set=[{"name": "X-Backend", "value": name}])
        return {"name": name, "port": 80, "filters": [changed]}

    async with world("one", "two") as made:
        made.proxy.apply(gateway_class(), gateway(), route({"backendRefs": [named("one"), named("two")]}))
        assert sorted(await made.proxy.bodies(2)) == ["one", "two"]
        for name in ("one", "two"):
            assert f"X-Backend: {name}\r\n" in head_of(made, name)


async def test_paths_and_hosts_are_rewritten_for_the_share_of_a_backend() -> None:
    changed = rewrite(hostname="one.example", path=replace_path("/one"))
    one = {"name": "one", "port": 80, "filters": [changed]}
    async with world("one", "two") as made:
        made.proxy.apply(gateway_class(), gateway(), route({"backendRefs": [one, {"name": "two", "port": 80}]}))
        assert sorted(await made.proxy.bodies(2)) == ["one", "two"]
        assert [head_of(made, name).startswith("GET /one ") for name in ("one", "two")] == [True, False]
        assert ["Host: one.example\r\n" in head_of(made, name) for name in ("one", "two")] == [True, False]


# Paths and hosts


@pytest.mark.parametrize(
    ("match", "replacement", "path", "expected"),
    [
        ("/foo", "/xyz", "/foo/bar", "/xyz/bar"),
        ("/foo", "/xyz/", "/foo/bar", "/xyz/bar"),
        ("/foo/", "/xyz", "/foo/bar", "/xyz/bar"),
        ("/foo", "/xyz", "/foo", "/xyz"),
        ("/foo", "/xyz", "/foo/", "/xyz/"),
        ("/foo", "", "/foo/bar", "/bar"),
        ("/foo", "", "/foo", "/"),
        ("/foo", "/", "/foo/", "/"),
        ("/foo", "/", "/foo/bar", "/bar"),
        ("/", "/xyz", "/bar?a=b", "/xyz/bar?a=b"),
        ("/foo", "/$uri", "/foo/bar", "/$uri/bar"),
    ],
)
async def test_a_prefix_is_replaced(match: str, replacement: str, path: str, expected: str) -> None:
    async with world("web") as made:
        filtered(made, rewrite(path=replace_prefix(replacement)), path=match)
        assert await made.proxy.status(path) == 200
        assert head_of(made).startswith(f"GET {expected} HTTP/1.1\r\n")


async def test_host_and_whole_path_are_rewritten_and_the_query_stays() -> None:
    async with world("web") as made:
        filtered(made, rewrite(hostname="other.example", path=replace_path("/one")))
        assert await made.proxy.status("/two?a=b") == 200
        head = head_of(made)
        assert head.startswith("GET /one?a=b HTTP/1.1\r\n")
        assert "Host: other.example\r\n" in head


# Redirects


async def located(made: World, path: str = "/foo/bar?a=b", **more: str) -> tuple[int, str]:
    got = await made.proxy.get(path, **more)
    return got.status, got["Location"]


@pytest.mark.parametrize(
    ("changes", "location"),
    [
        ({"hostname": "other.example"}, "http://other.example/foo/bar?a=b"),
        ({"scheme": "https"}, f"https://{HOST}/foo/bar?a=b"),
        ({"scheme": "https", "port": 443}, f"https://{HOST}/foo/bar?a=b"),
        ({"scheme": "https", "port": 8443}, f"https://{HOST}:8443/foo/bar?a=b"),
        ({"port": 8083}, f"http://{HOST}:8083/foo/bar?a=b"),
        ({"port": 80}, f"http://{HOST}/foo/bar?a=b"),
        ({"port": 443}, f"http://{HOST}:443/foo/bar?a=b"),
        ({"scheme": "http", "port": 80}, f"http://{HOST}/foo/bar?a=b"),
        ({"path": replace_path("/one")}, f"http://{HOST}/one?a=b"),
        ({"path": replace_prefix("/xyz")}, f"http://{HOST}/xyz/bar?a=b"),
        ({"path": replace_prefix("/")}, f"http://{HOST}/bar?a=b"),
        ({"path": replace_prefix("/a$b")}, f"http://{HOST}/a$b/bar?a=b"),
    ],
)
async def test_a_redirect_changes_what_it_names_and_keeps_the_rest(changes: Any, location: str) -> None:
    async with world("web") as made:
        filtered(made, redirect(**changes), path="/foo")
        assert await located(made) == (302, location)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_has_its_status_and_needs_no_service(status: int) -> None:
    async with world() as made:
        rule = to(filters=[redirect(hostname="other.example", statusCode=status)])
        made.proxy.apply(gateway_class(), gateway(), route(rule))
        assert await located(made, "/") == (status, "http://other.example/")


async def test_a_redirect_that_names_no_port_leads_to_that_of_the_listener() -> None:
    port = free_port()
    async with world() as made:
        both = gateway(listener(), listener("own", port))
        rule = to(filters=[redirect(hostname="other.example")])
        made.proxy.apply(gateway_class(), both, route(rule))
        assert await located(made, "/") == (302, "http://other.example/")
        client = await made.proxy.proxy.connect(port=port)
        await client.send(asking(host=HOST))
        assert (await read_answer(client))["Location"] == f"http://other.example:{port}/"


# Copies


async def test_copies_go_to_each_mirror() -> None:
    def mirror(name: str, **fields: Any) -> Any:
        return {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": name, "port": 80}, **fields}}

    async with world("web", "one", "two", "none") as made:
        filtered(made, mirror("one"), mirror("two"), mirror("none", percent=0))
        assert await made.proxy.bodies(3, "/x") == ["web"] * 3
        await until(lambda: len(made.servers["one"].heads) == len(made.servers["two"].heads) == 3)
        assert made.servers["none"].heads == []


async def test_a_mirror_that_cannot_be_had_costs_no_request_and_is_reported() -> None:
    gone = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "gone", "port": 80}}}
    async with world("web") as made:
        filtered(made, gone)
        assert await made.proxy.bodies(2) == ["web"] * 2
        assert made.proxy.errors(route()) == ["BackendNotFound"]


# CORS


def cors(**fields: Any) -> Any:
    return {"type": "CORS", "cors": fields}


async def preflight(made: World, origin: str, **more: str) -> Got:
    asked = {"Access_Control_Request_Method": "GET", **more}
    return await made.proxy.get(method="OPTIONS", Origin=origin, **asked)


async def test_origins_are_allowed_by_name_and_by_wildcard() -> None:
    written = cors(
        allowOrigins=["https://www.foo.com", "https://*.bar.com"],
        allowMethods=["GET", "OPTIONS"],
        allowHeaders=["x-header-1", "x-header-2"],
        exposeHeaders=["x-header-3"],
        allowCredentials=True,
        maxAge=3600,
    )
    async with world("web") as made:
        filtered(made, written)
        for origin in ("https://www.foo.com", "https://www.bar.com", "https://xpto.www.bar.com"):
            got = await preflight(made, origin)
            assert (got.status, got["Access-Control-Allow-Origin"]) == (200, origin)
            assert got["Access-Control-Allow-Methods"] == "GET,OPTIONS"
            assert got["Access-Control-Allow-Headers"] == "x-header-1,x-header-2"
            assert got["Access-Control-Allow-Credentials"] == "true"
            assert got["Access-Control-Max-Age"] == "3600"
        for origin in ("https://foobar.com", "https://bar.com", "https://www.foo.com.evil.example"):
            refused = await preflight(made, origin)
            assert (refused.body, refused["Access-Control-Allow-Origin"]) == (b"", "")
        got = await made.proxy.get(Origin="https://www.foo.com")
        assert (got.body, got["Access-Control-Allow-Origin"]) == (b"web", "https://www.foo.com")


async def test_stars_are_repeated_by_name_where_credentials_are_allowed() -> None:
    every = {"allowOrigins": ["*"], "allowMethods": ["*"], "allowHeaders": ["*"]}
    async with world("web") as made:
        filtered(made, cors(**every, allowCredentials=True))
        got = await preflight(made, "https://a.example", Access_Control_Request_Headers="x-one")
        assert got["Access-Control-Allow-Origin"] == "https://a.example"
        assert got["Access-Control-Allow-Headers"] == "x-one"
        assert got["Access-Control-Allow-Methods"] == "GET"
        filtered(made, cors(**every))
        got = await preflight(made, "https://a.example")
        assert got["Access-Control-Allow-Origin"] == "*"
        assert got["Access-Control-Allow-Credentials"] == ""


# What cannot be followed


@pytest.mark.parametrize(
    ("filters", "reason"),
    [
        ([{"type": "URLRewrite"}], "Required"),
        ([rewrite(path={"type": "ReplaceFullPath"})], "Required"),
        ([rewrite(hostname="a.example"), redirect(hostname="b.example")], "IncompatibleFilters"),
        ([rewrite(hostname="a.example"), rewrite(hostname="b.example")], "UnsupportedValue"),
    ],
)
async def test_a_rule_with_a_filter_that_cannot_be_followed_refuses_its_requests(filters: Any, reason: str) -> None:
    async with world("web") as made:
        written = route(to("web", matches=[prefix("/f")], filters=filters), to("web", matches=[prefix("/")]))
        made.proxy.apply(gateway_class(), gateway(), written)
        assert await made.proxy.status("/f") == 503
        assert await made.proxy.status("/") == 200
        assert made.proxy.errors(written) == [reason]


async def test_a_prefix_that_no_match_asks_for_cannot_be_replaced() -> None:
    exact = {"path": {"type": "Exact", "value": "/a"}}
    async with world("web") as made:
        written = route(to("web", matches=[exact], filters=[rewrite(path=replace_prefix("/b"))]))
        made.proxy.apply(gateway_class(), gateway(), written)
        assert await made.proxy.status("/a") == 503
        assert made.proxy.errors(written) == ["UnsupportedValue"]


async def test_a_backend_with_a_filter_that_cannot_be_followed_answers_500() -> None:
    backend = {"name": "web", "port": 80, "filters": [{"type": "RequestRedirect"}]}
    async with world("web") as made:
        written = route({"backendRefs": [backend]})
        made.proxy.apply(gateway_class(), gateway(), written)
        assert await made.proxy.status() == 500
        assert made.proxy.errors(written) == ["Required"]


# Backends


async def test_the_share_of_a_backend_is_redirected() -> None:
    async with world("one", "two") as made:
        moved: Any = {"name": "one", "port": 80, "filters": [redirect(hostname="other.example", statusCode=301)]}
        written = route({"backendRefs": [moved, {"name": "two", "port": 80}]})
        made.proxy.apply(gateway_class(), gateway(), written)
        found = sorted([await located(made) for _ in range(4)])
        assert found == [(200, "")] * 2 + [(301, "http://other.example/foo/bar?a=b")] * 2
        assert made.proxy.errors(written) == []


async def test_the_share_of_a_backend_is_redirected_to_the_port_of_the_listener() -> None:
    port = free_port()
    async with world("web") as made:
        moved = {"name": "web", "port": 80, "filters": [redirect(hostname="other.example")]}
        listeners = listener("http"), listener("other", port)
        made.proxy.apply(gateway_class(), gateway(*listeners), route({"backendRefs": [moved]}))
        assert (await located(made, "/"))[1] == "http://other.example/"
        client = await made.proxy.proxy.connect(port=port)
        await client.send(asking())
        assert (await read_answer(client))["Location"] == f"http://other.example:{port}/"


async def test_the_share_of_a_backend_answers_preflights() -> None:
    async with world("one", "two") as made:
        shared: Any = {"name": "one", "port": 80, "filters": [cors(allowOrigins=["https://a.example"])]}
        made.proxy.apply(gateway_class(), gateway(), route({"backendRefs": [shared, {"name": "two", "port": 80}]}))
        got = [await preflight(made, "https://a.example") for _ in range(4)]
        assert sorted(each["Access-Control-Allow-Origin"] for each in got) == ["", "", *["https://a.example"] * 2]
