"""What the end-to-end tests of apisix-ingress-controller say of routes and their backends, from manifests to the wire.

Which case each test stands for is in `docs/apisix-cases.md`. Cases about plugins are in `test_apisix_plugin_cases.py`.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.proxied import Conversation, Script
from fakes.gateway.served import HOST, named
from fakes.translator.apisix import resource, route, rule
from fakes.translator.applied import World, switching, world
from fakes.translator.deltas import endpoint_slice, service


def to(name: str, port: Any = 80, **fields: Any) -> Any:
    return {"serviceName": name, "servicePort": port, **fields}


def at_host(*paths: str, name: str = "rule", **fields: Any) -> Any:
    return rule(name, *paths, hosts=[HOST], **fields)


@pytest.fixture
async def pair() -> AsyncIterator[World]:
    """A proxy before two Services, `one` and `two`."""
    async with world("one", "two") as made:
        yield made


# Rules


async def test_a_route_is_made_changed_and_deleted(pair: World) -> None:
    pair.proxy.apply(route(at_host("/get", backends=[to("one")])))
    assert await pair.proxy.status("/get") == 200
    changed = route(at_host("/headers", backends=[to("one")]))
    pair.proxy.apply(changed)
    assert [await pair.proxy.status(path) for path in ("/get", "/headers")] == [404, 200]
    pair.proxy.delete(changed)
    assert await pair.proxy.status("/headers") == 404


async def test_an_uppercase_host_takes_requests_in_any_case(pair: World) -> None:
    pair.proxy.apply(route(rule(hosts=["API.Example.com"], backends=[to("one")])))
    assert [await pair.proxy.status(host=host) for host in ("api.example.com", "API.EXAMPLE.COM")] == [200, 200]


async def test_a_rule_keeps_serving_under_another_name(pair: World) -> None:
    pair.proxy.apply(route(at_host(name="first", backends=[to("one")])))
    pair.proxy.apply(route(at_host(name="second", backends=[to("one")])))
    assert await pair.proxy.status() == 200


async def test_rules_of_one_name_in_two_objects_do_not_touch_each_other(pair: World) -> None:
    one, two = (route(at_host(f"/{name}", backends=[to(name)]), name=name) for name in ("one", "two"))
    pair.proxy.apply(one, two)
    assert [await pair.proxy.bodies(1, path) for path in ("/one", "/two")] == [["one"], ["two"]]
    pair.proxy.delete(one)
    assert [await pair.proxy.status(path) for path in ("/one", "/two")] == [404, 200]


async def test_names_that_begin_alike_are_different_objects(pair: World) -> None:
    routes = {
        name: route(rule("rule0", hosts=[f"{name}.example"], backends=[to("one")]), name=name)
        for name in ("route-111", "route-11", "route-1")
    }
    pair.proxy.apply(*routes.values())
    assert [await pair.proxy.status(host=f"{name}.example") for name in routes] == [200, 200, 200]
    pair.proxy.delete(routes["route-1"])
    assert [await pair.proxy.status(host=f"{name}.example") for name in routes] == [200, 200, 404]


async def test_the_higher_priority_has_the_path(pair: World) -> None:
    pair.proxy.apply(
        route(
            at_host("/ip", name="low", priority=1, backends=[to("one")]),
            at_host("/ip", name="high", priority=2, backends=[to("two")]),
        )
    )
    assert await pair.proxy.bodies(2, "/ip") == ["two", "two"]


@pytest.mark.parametrize(("addresses", "status"), [(["127.0.0.0/8"], 200), (["10.0.3.3", "2001:db8::/32"], 404)])
async def test_clients_are_told_apart_by_their_addresses(pair: World, addresses: Any, status: int) -> None:
    pair.proxy.apply(route(at_host(match_remoteAddrs=addresses, backends=[to("one")])))
    assert await pair.proxy.status() == status


EXPRESSIONS = [
    ("Equal", {"value": "b"}, "b", "c"),
    ("NotEqual", {"value": "b"}, "c", "b"),
    ("GreaterThan", {"value": "13"}, "14", "13"),
    ("GreaterThanEqual", {"value": "13"}, "13", "12"),
    ("LessThan", {"value": "13"}, "12", "13"),
    ("LessThanEqual", {"value": "13"}, "13", "14"),
    ("In", {"set": ["12", "13"]}, "13", "14"),
    ("NotIn", {"set": ["12", "13"]}, "14", "13"),
    ("RegexMatch", {"value": "^b.c$"}, "bxc", "BXC"),
    ("RegexNotMatch", {"value": "^b.c$"}, "BXC", "bxc"),
    ("RegexMatchCaseInsensitive", {"value": "^b.c$"}, "BxC", "bc"),
    ("RegexNotMatchCaseInsensitive", {"value": "^b.c$"}, "bc", "BxC"),
]


@pytest.mark.parametrize(("op", "against", "fits", "fails"), EXPRESSIONS)
async def test_an_expression_decides_who_is_served(pair: World, op: str, against: Any, fits: str, fails: str) -> None:
    expression = {"subject": {"scope": "Header", "name": "X-Foo"}, "op": op, **against}
    pair.proxy.apply(route(at_host(match_exprs=[expression], backends=[to("one")])))
    assert [await pair.proxy.status(X_Foo=value) for value in (fits, fails)] == [200, 404]


@pytest.mark.parametrize(
    ("subjects", "fits", "fails"),
    [
        ({"Query": ("id", "1")}, {"path": "/?id=1"}, {"path": "/?id=2"}),
        ({"Cookie": ("foo", "a")}, {"Cookie": "bar=b; foo=a"}, {"Cookie": "foo=b"}),
        ({"Path": ("", "/ip")}, {"path": "/ip"}, {"path": "/ip2"}),
        ({"Variable": ("request_method", "GET")}, {}, {"method": "POST"}),
        ({"Variable": ("host", HOST)}, {}, {"host": "other.example"}),
        ({"Variable": ("host", HOST), "Header": ("X-Foo", "a")}, {"X_Foo": "a"}, {"X_Foo": "b"}),
    ],
)
async def test_an_expression_looks_at_its_scope(pair: World, subjects: Any, fits: Any, fails: Any) -> None:
    expressions = [
        {"subject": {"scope": scope, "name": name}, "op": "Equal", "value": value}
        for scope, (name, value) in subjects.items()
    ]
    pair.proxy.apply(route(rule(match_exprs=expressions, backends=[to("one")])))
    assert [await pair.proxy.status(**request) for request in (fits, fails)] == [200, 404]


@pytest.mark.parametrize(
    ("kind", "body"),
    [("application/x-www-form-urlencoded", b"a=1&role=admin"), ("application/json", b'{"role": "admin"}')],
)
async def test_an_expression_looks_at_bodies(pair: World, kind: str, body: bytes) -> None:
    expression = {"subject": {"scope": "Body", "name": "role"}, "op": "Equal", "value": "admin"}
    pair.proxy.apply(route(at_host(match_exprs=[expression], backends=[to("one")])))
    taken = await pair.proxy.proxy.post(body, Content_Type=kind)
    left = await pair.proxy.proxy.post(body.replace(b"admin", b"guest"), Content_Type=kind)
    assert (taken.status, left.status) == (200, 404)


async def test_a_filter_function_is_refused_and_its_rule_serves_nobody(pair: World) -> None:
    written = route(at_host(match_filter_func="function(vars) return true end", backends=[to("one")]))
    pair.proxy.apply(written)
    assert pair.proxy.errors(written) == ["UnsupportedField"]
    assert await pair.proxy.status() == 503


@pytest.mark.parametrize("enabled", [None, True, False])
async def test_a_websocket_is_let_through_unless_that_is_turned_off(enabled: bool | None) -> None:
    async with world(web=switching) as made:
        made.proxy.apply(route(at_host(backends=[to("web")], **({} if enabled is None else {"websocket": enabled}))))
        client = await made.proxy.offer_websocket()
        head = await client.head()
        if enabled is False:
            assert head.startswith(b"HTTP/1.1 200 ")
            return
        assert head.startswith(b"HTTP/1.1 101 ")
        await client.send(b"hello")
        assert await client.exactly(5) == b"hello"


# Backends


async def test_a_port_may_be_named_and_a_service_be_reached_by_its_address(pair: World) -> None:
    as_service = service("ip", clusterIP="127.0.0.1", port=pair.port("two"))
    pair.proxy.apply(
        as_service,
        route(
            at_host("/named", name="named", backends=[to("one", "http")]),
            at_host("/ip", name="ip", backends=[to("ip", "http", resolveGranularity="service")]),
        ),
    )
    assert [await pair.proxy.bodies(1, path) for path in ("/named", "/ip")] == [["one"], ["two"]]


async def test_a_service_may_come_after_its_route_and_go_before_it(pair: World) -> None:
    written = route(at_host(backends=[to("late")]))
    late, addresses = service("late"), endpoint_slice("late", "127.0.0.1", port=pair.port("one"))
    pair.proxy.apply(written)
    got = await pair.proxy.get()
    assert (got.status, got["x-headgate-reason"]) == (503, "Service default/late not found")
    pair.proxy.apply(late, addresses)
    assert await pair.proxy.status() == 200
    pair.proxy.delete(late)
    assert await pair.proxy.status() == 503
    pair.proxy.delete(addresses, written)
    assert await pair.proxy.status() == 404


async def test_a_route_follows_the_endpoints_of_its_service(pair: World) -> None:
    pair.proxy.apply(route(at_host(backends=[to("one")])))
    pair.proxy.apply(endpoint_slice("one"))
    assert await pair.proxy.status() == 503
    pair.proxy.apply(endpoint_slice("one", "127.0.0.1", port=pair.port("two")))
    assert await pair.proxy.bodies(2) == ["two", "two"]
    pair.proxy.apply(endpoint_slice("one", "127.0.0.1", name="one-2", port=pair.port("one")))
    assert sorted(await pair.proxy.bodies(4)) == ["one", "one", "two", "two"]


async def test_a_service_of_two_routes_serves_the_one_that_is_left(pair: World) -> None:
    first, second = (route(at_host(f"/{name}", backends=[to("one")]), name=name) for name in ("first", "second"))
    pair.proxy.apply(first, second)
    pair.proxy.delete(first)
    assert [await pair.proxy.status(path) for path in ("/first", "/second")] == [404, 200]


async def test_backends_share_requests_by_weight(pair: World) -> None:
    pair.proxy.apply(route(at_host(backends=[to("one", weight=10), to("two", weight=5)])))
    assert sorted(await pair.proxy.bodies(15)) == ["one"] * 10 + ["two"] * 5


async def test_a_backend_without_weight_gets_nothing(pair: World) -> None:
    pair.proxy.apply(route(at_host(backends=[to("one", weight=100), to("two", weight=0)])))
    assert await pair.proxy.bodies(10) == ["one"] * 10


@pytest.mark.parametrize("missing", [to("gone", weight=5), to("two", 81, weight=5)])
async def test_what_is_not_there_leaves_its_share_to_what_is(pair: World, missing: Any) -> None:
    written = route(at_host(backends=[to("one", weight=10), missing]))
    pair.proxy.apply(written)
    assert await pair.proxy.bodies(15) == ["one"] * 15
    assert pair.proxy.errors(written) in (["ServiceNotFound"], ["PortNotFound"])
    pair.proxy.apply(service("gone"), endpoint_slice("gone", "127.0.0.1", port=pair.port("two")))
    pair.proxy.apply(service("two", port=81))
    assert sorted(await pair.proxy.bodies(15)) == ["one"] * 10 + ["two"] * 5


async def test_a_rule_of_which_nothing_is_there_says_so(pair: World) -> None:
    pair.proxy.apply(route(at_host(backends=[to("gone"), to("lost")], upstreams=[{"name": "none"}])))
    got = await pair.proxy.get()
    assert got.status == 503
    assert "not found" in got["x-headgate-reason"]


async def test_a_subset_is_the_pods_that_have_its_labels(pair: World) -> None:
    addresses = endpoint_slice("one", "127.0.0.1", port=pair.port("one"))
    addresses["endpoints"][0]["targetRef"] = {"kind": "Pod", "name": "pod"}
    labels = {"app": "web", "version": "v1"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod", "namespace": "default", "labels": labels}}
    pair.proxy.apply(addresses, pod, route(at_host(backends=[to("one", subset="all")])))

    async def with_labels(**wanted: str) -> int:
        pair.proxy.apply(resource("ApisixUpstream", "one", {"subsets": [{"name": "all", "labels": wanted}]}))
        return await pair.proxy.status()

    assert await pair.proxy.status() == 503
    assert await with_labels(aa="bb", cc="dd") == 503
    assert await with_labels(app="web") == 200


# ApisixUpstreams


def upstream(name: str, **spec: Any) -> Any:
    return resource("ApisixUpstream", name, spec)


def domain(world_: World, *names: str) -> Any:
    return [{"name": "127.0.0.1", "type": "Domain", "port": world_.port(name)} for name in names]


async def telling_hosts(conversation: Conversation) -> None:
    while True:
        head, _ = await conversation.request()
        await conversation.send(named(head.split(b"\r\nHost: ")[1].split(b"\r\n")[0]))


async def test_a_backend_is_as_the_upstream_of_its_name_has_it() -> None:
    async with world(web=telling_hosts) as made:
        made.proxy.apply(route(at_host(backends=[to("web")])))
        assert await made.proxy.bodies(1) == [HOST]
        shaped = upstream("web", passHost="rewrite", upstreamHost="hello.example", loadbalancer={"type": "ewma"})
        made.proxy.apply(shaped)
        assert await made.proxy.bodies(1) == ["hello.example"]
        made.proxy.delete(shaped)
        assert await made.proxy.bodies(1) == [HOST]


@pytest.mark.parametrize(
    ("fields", "host"),
    [
        ({"passHost": "pass"}, HOST),
        ({"passHost": "node"}, "127.0.0.1:{port}"),
        ({"passHost": "rewrite", "upstreamHost": "b.example"}, "b.example"),
        ({"passHost": "node", "upstreamHost": "b.example"}, "127.0.0.1:{port}"),
    ],
)
async def test_nodes_see_the_host_that_is_passed(fields: Any, host: str) -> None:
    async with world(web=telling_hosts) as made:
        made.proxy.apply(upstream("web", **fields), route(at_host(backends=[to("web")])))
        assert await made.proxy.bodies(1) == [host.format(port=made.port("web"))]


async def test_external_nodes_come_change_and_go_without_their_route(pair: World) -> None:
    written = route(at_host(upstreams=[{"name": "ext"}], backends=[]))
    pair.proxy.apply(written)
    assert (await pair.proxy.status(), pair.proxy.errors(written)) == (503, ["UpstreamNotFound"])
    pair.proxy.apply(upstream("ext", externalNodes=domain(pair, "one")))
    assert await pair.proxy.bodies(2) == ["one", "one"]
    pair.proxy.apply(upstream("ext", externalNodes=domain(pair, "one", "two")))
    assert sorted(await pair.proxy.bodies(4)) == ["one", "one", "two", "two"]
    pair.proxy.delete(upstream("ext"))
    assert await pair.proxy.status() == 503
    pair.proxy.delete(written)
    assert await pair.proxy.status() == 404


async def test_an_external_name_comes_and_changes_without_its_route(pair: World) -> None:
    node = {"name": "alias", "type": "Service", "port": pair.port("two")}
    pair.proxy.apply(upstream("ext", externalNodes=[node]), service("alias"))
    pair.proxy.apply(route(at_host(upstreams=[{"name": "ext"}], backends=[])))
    assert await pair.proxy.status() == 503  # a Service of pods is named under backends
    pair.proxy.delete(service("alias"))
    assert await pair.proxy.status() == 503
    pair.proxy.apply(service("alias", type="ExternalName", externalName="127.0.0.9"))
    assert await pair.proxy.status() == 502  # nobody is there
    pair.proxy.apply(service("alias", type="ExternalName", externalName="127.0.0.1"))
    assert await pair.proxy.bodies(2) == ["two", "two"]


async def test_external_nodes_have_plugins_and_stand_beside_services(pair: World) -> None:
    rewrite = {"name": "proxy-rewrite", "enable": True, "config": {"host": "there.example"}}
    mixed = at_host(backends=[to("one")], upstreams=[{"name": "ext"}], plugins=[rewrite])
    pair.proxy.apply(upstream("ext", externalNodes=domain(pair, "two")), route(mixed))
    assert sorted(await pair.proxy.bodies(4)) == ["one", "one", "two", "two"]
    assert b"\r\nHost: there.example\r\n" in pair.servers["two"].heads[0]


async def test_a_registry_is_asked_for_a_service_that_may_come_later(pair: World) -> None:
    pair.proxy.apply(route(at_host(upstreams=[{"name": "ext"}], backends=[])))
    found = upstream("ext", discovery={"type": "kubernetes", "serviceName": "default/late:http"})
    pair.proxy.apply(found)
    assert await pair.proxy.status() == 503
    late, addresses = service("late"), endpoint_slice("late", "127.0.0.1", port=pair.port("one"))
    pair.proxy.apply(late, addresses)
    assert await pair.proxy.bodies(2) == ["one", "one"]
    pair.proxy.delete(late, addresses)
    assert await pair.proxy.status() == 503


@pytest.mark.parametrize(("written", "attempts"), [({}, 2), ({"retries": 0}, 1), ({"retries": 2}, 3)])
async def test_a_request_is_tried_as_often_as_its_upstream_says(written: Any, attempts: int) -> None:
    async def hanging_up(conversation: Conversation) -> None:
        await conversation.request()

    async with world(a=hanging_up, b=hanging_up, c=hanging_up) as made:
        made.proxy.apply(
            upstream("ext", externalNodes=domain(made, "a", "b", "c"), **written),
            route(at_host(upstreams=[{"name": "ext"}], backends=[])),
        )
        assert await made.proxy.status() == 502
        assert sum(len(server.heads) for server in made.servers.values()) == attempts


async def test_a_node_that_does_not_answer_in_time_is_a_504() -> None:
    async def silent(conversation: Conversation) -> None:
        await conversation.request()
        await asyncio.Event().wait()

    async with world(web=silent) as made:
        made.proxy.apply(upstream("web", timeout={"read": "1s"}, retries=0), route(at_host(backends=[to("web")])))
        assert await made.proxy.status() == 504


FAILING = b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n"


def failing(*, at: bytes) -> Script:
    """Script: requests for a path fail, others are answered."""

    async def script(conversation: Conversation) -> None:
        while True:
            head, _ = await conversation.request()
            await conversation.send(FAILING if b" %b " % at in head else named(b"sick"))

    return script


def checked(world_: World, **checks: Any) -> tuple[Any, Any]:
    nodes = upstream("ext", externalNodes=domain(world_, "well", "sick"), healthCheck=checks)
    return nodes, route(at_host(upstreams=[{"name": "ext"}], backends=[]))


async def test_a_node_that_fails_requests_is_left_out() -> None:
    active = {"type": "http", "httpPath": "/health", "healthy": {"interval": "600s"}, "unhealthy": {"interval": "600s"}}
    passive = {"type": "http", "unhealthy": {"httpCodes": [500], "httpFailures": 1}}
    async with world("well", sick=failing(at=b"/")) as made:
        made.proxy.apply(*checked(made, active=active, passive=passive))
        assert sorted([await made.proxy.status() for _ in range(2)]) == [200, 500]
        assert await made.proxy.bodies(6) == ["well"] * 6


async def test_a_node_that_fails_its_check_is_left_out() -> None:
    unhealthy = {"interval": "1s", "httpFailures": 1}
    active = {
        "type": "http",
        "timeout": 30,
        "httpPath": "/health",
        "healthy": {"interval": "1s"},
        "unhealthy": unhealthy,
    }
    async with world("well", sick=failing(at=b"/health")) as made:
        made.proxy.apply(*checked(made, active=active))
        async with asyncio.timeout(30):
            while "sick" in await made.proxy.bodies(4):  # noqa: ASYNC110 - a verdict has no event here
                await asyncio.sleep(0.05)
        assert await made.proxy.bodies(6) == ["well"] * 6
