"""HTTPRoutes from manifests to the wire: matches, their order, hosts and listeners, Services and their weights."""

from collections import Counter
from typing import Any

import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import Conversation
from fakes.gateway.served import HOST, asking, read_answer
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.gateway_api import exact, gateway, gateway_class, grant, listener, prefix, route, to


def installed(made: World, *objects: Any) -> World:
    made.proxy.apply(gateway_class(), gateway(), *objects)
    return made


async def body(made: World, path: str = "/", **more: str) -> str:
    got = await made.proxy.get(path, **more)
    return got.body.decode() if got.status == 200 else str(got.status)


# Matches


async def test_exact_paths_go_before_prefixes_and_longer_prefixes_before_shorter_ones() -> None:
    async with world("exact", "long", "short") as made:
        installed(
            made,
            route(
                to("short", matches=[prefix("/")]),
                to("long", matches=[prefix("/match")]),
                to("exact", matches=[exact("/match/exact")]),
            ),
        )
        paths = ("/", "/match", "/match/", "/matchless", "/match/exact", "/match/exact/")
        assert [await body(made, path) for path in paths] == ["short", "long", "long", "short", "exact", "long"]


async def test_a_pattern_has_to_take_the_whole_path() -> None:
    async with world("web") as made:
        pattern = {"path": {"type": "RegularExpression", "value": "/v[0-9]+/a|/b"}}
        installed(made, route(to("web", matches=[pattern])))
        assert [await body(made, path) for path in ("/v1/a", "/b", "/v1/ab", "/x/b")] == ["web", "web", "404", "404"]


async def test_a_method_goes_before_headers_and_more_headers_before_fewer() -> None:
    one, two = {"name": "one", "value": "1"}, {"name": "TWO", "value": "2"}
    async with world("plain", "one", "both", "method") as made:
        installed(
            made,
            route(
                to("plain", matches=[prefix("/")]),
                to("one", matches=[prefix("/", headers=[one])]),
                to("both", matches=[prefix("/", headers=[one, two])]),
                to("method", matches=[prefix("/", method="POST")]),
            ),
        )
        assert await body(made) == "plain"
        assert await body(made, one="1") == "one"
        assert await body(made, one="1", two="2") == "both"
        assert await body(made, method="POST", one="1", two="2") == "method"


async def test_headers_and_query_parameters_are_compared_whole_or_by_pattern() -> None:
    pattern = {"type": "RegularExpression", "name": "version", "value": "v[12]"}
    async with world("header", "query", "pattern") as made:
        installed(
            made,
            route(
                to("header", matches=[prefix("/", headers=[pattern])]),
                to("query", matches=[prefix("/", queryParams=[{"name": "a", "value": "1"}])]),
                to("pattern", matches=[prefix("/", queryParams=[pattern])]),
            ),
        )
        assert await body(made, version="v1") == "header"
        assert await body(made, version="v12") == "404"
        assert await body(made, "/?a=1") == "query"
        assert await body(made, "/?a=11") == "404"
        assert await body(made, "/?version=v2") == "pattern"


async def test_of_equal_names_in_a_match_the_first_counts() -> None:
    headers = [{"name": "color", "value": "blue"}, {"name": "Color", "value": "green"}]
    async with world("web") as made:
        installed(made, route(to("web", matches=[prefix("/", headers=headers)])))
        assert [await body(made, color=color) for color in ("blue", "green")] == ["web", "404"]


async def test_the_older_of_two_routes_with_equal_matches_is_served() -> None:
    async with world("old", "new") as made:
        installed(
            made,
            route(to("new"), name="a", creationTimestamp="2024-02-01T00:00:00Z"),
            route(to("old"), name="b", creationTimestamp="2024-01-01T00:00:00Z"),
        )
        assert await body(made) == "old"


async def test_of_rules_with_equal_matches_the_first_is_served_in_whatever_order_headers_stand() -> None:
    one, two = {"name": "x-one", "value": "1"}, {"name": "x-two", "value": "2"}
    async with world("first", "second") as made:
        installed(
            made,
            route(
                to("first", matches=[exact("/", headers=[one, two])]),
                to("second", matches=[exact("/", headers=[two, one])]),
                to("missing", matches=[exact("/missing")]),
                to("second", matches=[exact("/missing")]),
            ),
        )
        assert await body(made, X_One="1", X_Two="2") == "first"
        assert await body(made, "/missing") == "500"


@pytest.mark.parametrize("matches", [{}, {"matches": [prefix("/path")]}])
async def test_a_whole_hostname_goes_before_an_older_wildcard_whose_part_of_the_listener_is_the_same(
    matches: Any,
) -> None:
    old, young = {"creationTimestamp": "2026-01-01T00:00:00Z"}, {"creationTimestamp": "2026-01-02T00:00:00Z"}
    longer = {"matches": [prefix("/path/longer")]} if matches else {}
    async with world("wide", "exact") as made:
        made.proxy.apply(gateway_class(), gateway(listener(hostname=HOST)))
        made.proxy.apply(route(to("wide", **longer), name="wide", hostnames=["*.example"], **old))
        assert await body(made, "/path/longer") == "wide"
        made.proxy.apply(route(to("exact", **matches), name="exact", hostnames=[HOST], **young))
        assert await body(made, "/path/longer") == "exact"


async def test_rules_of_several_routes_of_a_host_are_matched_together() -> None:
    async with world("one", "two") as made:
        installed(
            made,
            route(to("one", matches=[prefix("/")]), name="one", hostnames=["a.example", "b.example"]),
            route(to("two", matches=[prefix("/v2")]), name="two", hostnames=["a.example"]),
        )
        assert await body(made, "/v2/x") == "two"
        assert await body(made, "/v2/x", host="b.example") == "one"


# Hosts and listeners


async def test_a_route_is_served_at_the_hosts_that_it_and_its_listener_have_in_common() -> None:
    listeners = (listener("one", hostname="very.specific.com"), listener("any", hostname="*.wildcard.io"))
    async with world("web") as made:
        made.proxy.apply(gateway_class(), gateway(*listeners))
        hostnames = [
            "non.matching.com",
            "*.nonmatching.io",
            "very.specific.com",
            "foo.wildcard.io",
            "*.bar.wildcard.io",
        ]
        made.proxy.apply(route(to("web"), hostnames=hostnames))
        for host in ("very.specific.com", "foo.wildcard.io", "a.bar.wildcard.io", "b.a.bar.wildcard.io"):
            assert await body(made, host=host) == "web"
        for host in ("non.matching.com", "x.nonmatching.io", "wildcard.io", "bar.wildcard.io", "foo.specific.com"):
            assert await body(made, host=host) == "404"


async def test_a_request_of_a_more_specific_listener_is_no_other_listeners() -> None:
    listeners = (
        listener("empty"),
        listener("wild", hostname="*.example.com"),
        listener("deep", hostname="*.foo.example.com"),
        listener("exact", hostname="abc.foo.example.com"),
    )
    names = [one["name"] for one in listeners]
    async with world(*names) as made:
        made.proxy.apply(gateway_class(), gateway(*listeners))
        for name in names:
            rule = to(name, matches=[prefix(f"/{name}")])
            made.proxy.apply(route(rule, name=name, parents=[{"name": "gw", "sectionName": name}]))
        owners = {
            "other.org": "empty",
            "bar.example.com": "wild",
            "bar.foo.example.com": "deep",
            "abc.foo.example.com": "exact",
        }
        for host, owner in owners.items():
            found = [await body(made, f"/{name}", host=host) for name in names]
            assert found == [name if name == owner else "404" for name in names]


async def test_a_hostname_within_a_more_specific_listener_is_not_served_by_a_wider_one() -> None:
    listeners = (listener("any"), listener("narrow", hostname="*.example.com"))
    async with world("web") as made:
        made.proxy.apply(gateway_class(), gateway(*listeners))
        written = route(to("web"), hostnames=["a.example.com"], parents=[{"name": "gw", "sectionName": "any"}])
        made.proxy.apply(written)
        assert await body(made, host="a.example.com") == "404"


async def test_requests_that_no_rule_of_a_host_takes_go_to_wider_hostnames_of_the_listener() -> None:
    async with world("narrow", "wide") as made:
        installed(
            made,
            route(to("narrow", matches=[prefix("/n")]), name="narrow", hostnames=["a.example"]),
            route(to("wide", matches=[prefix("/")]), name="wide", hostnames=["*.example"]),
        )
        assert await body(made, "/n") == "narrow"
        assert await body(made, "/other") == "wide"


async def test_a_port_of_its_own_is_opened_and_closed_with_its_gateway() -> None:
    port = free_port()
    other = gateway(listener("own", port), name="other")
    async with world("web") as made:
        written = route(to("web"), parents=[{"name": "other"}])
        made.proxy.apply(gateway_class(), other, written)
        client = await made.proxy.proxy.connect(port=port)
        await client.send(asking(host=HOST))
        assert (await read_answer(client)).body == b"web"
        assert await body(made) == "404"


# Services


async def test_requests_are_spread_by_weights_and_a_weight_of_0_gets_none() -> None:
    async with world("one", "two", "none") as made:
        installed(made, route(to(("one", 70), ("two", 30), ("none", 0))))
        found = Counter(await made.proxy.bodies(100))
        assert found == {"one": 70, "two": 30}


async def test_a_service_that_is_missing_answers_500_with_its_share() -> None:
    async with world("web") as made:
        installed(made, route(to(("web", 1), ("gone", 1))))
        found = Counter([await body(made) for _ in range(10)])
        assert found == {"web": 5, "500": 5}
        made.proxy.apply(service("gone"), endpoint_slice("gone", "127.0.0.1", port=made.port("web")))
        assert {await body(made) for _ in range(4)} == {"web"}


@pytest.mark.parametrize(
    "rule",
    [
        to(),
        {"backendRefs": []},
        to(("web", 0)),
        to("gone"),
        to({"name": "web", "port": 80, "kind": "Other"}),
        to({"name": "web", "port": 80, "namespace": "other"}),
    ],
)
async def test_a_rule_without_a_service_that_can_be_had_answers_500(rule: Any) -> None:
    async with world("web") as made:
        installed(made, route(rule))
        assert await made.proxy.status() == 500


async def test_a_service_without_endpoints_answers_503() -> None:
    async with world("web") as made:
        installed(made, service("empty"), route(to("empty")))
        assert await made.proxy.status() == 503


async def test_a_service_of_another_namespace_is_reached_by_a_grant() -> None:
    async with world("web") as made:
        there = {"name": "there", "port": 80, "namespace": "other"}
        slices = endpoint_slice("there", "127.0.0.1", port=made.port("web"), namespace="other")
        installed(made, service("there", namespace="other"), slices, route(to(there)))
        assert await made.proxy.status() == 500
        made.proxy.apply(grant("HTTPRoute", "default", "Service", namespace="other"))
        assert await body(made) == "web"


async def test_a_headless_service_whose_slices_somebody_else_writes_is_served() -> None:
    async with world("web") as made:
        headless = service("web")
        headless["spec"] |= {"clusterIP": "None", "selector": None}
        installed(made, headless, route(to("web")))
        assert await body(made) == "web"


async def test_http2_is_spoken_with_a_service_whose_port_says_so() -> None:
    heard: list[bytes] = []

    async def preface(conversation: Conversation) -> None:
        heard.append(await conversation.reader.readexactly(14))

    async with world(web=preface) as made:
        written = service("web")
        written["spec"]["ports"][0]["appProtocol"] = "kubernetes.io/h2c"
        installed(made, written, route(to("web")))
        assert await made.proxy.status() == 502
        assert heard[0] == b"PRI * HTTP/2.0"


async def test_a_websocket_is_opened_to_a_service_whose_port_says_so() -> None:
    async def switching(conversation: Conversation) -> None:
        assert b"upgrade: websocket" in (await conversation.head()).lower()
        await conversation.send(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
        )
        await conversation.send(await conversation.reader.readexactly(4))

    async with world(web=switching) as made:
        written = service("web")
        written["spec"]["ports"][0]["appProtocol"] = "kubernetes.io/ws"
        installed(made, written, route(to("web")))
        client = await made.proxy.proxy.connect()
        await client.send(
            b"GET / HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        assert (await client.head()).startswith(b"HTTP/1.1 101 ")
        await client.send(b"ping")
        assert await client.exactly(4) == b"ping"


# Timeouts, retries and sessions


async def silent(conversation: Conversation) -> None:
    while True:
        await conversation.head()


@pytest.mark.parametrize("timeouts", [{"request": "100ms"}, {"backendRequest": "100ms"}])
async def test_a_request_that_takes_too_long_is_ended_with_504(timeouts: Any) -> None:
    async with world(slow=silent) as made:
        installed(made, route(to("slow", timeouts=timeouts)))
        assert await made.proxy.status() == 504


async def test_a_client_keeps_to_the_service_that_served_it_first() -> None:
    persistence = {"sessionName": "kept", "absoluteTimeout": "1h", "cookieConfig": {"lifetimeType": "Permanent"}}
    async with world("one", "two") as made:
        installed(made, route(to("one", "two", sessionPersistence=persistence)))
        got = await made.proxy.get()
        assert got["Set-Cookie"].startswith("kept=")
        assert "Max-Age=3600" in got["Set-Cookie"]
        assert set(await made.proxy.bodies(6, Cookie=got.cookie)) == {got.body.decode()}
        assert set(await made.proxy.bodies(6)) == {"one", "two"}


@pytest.mark.parametrize(
    ("named", "name"),
    [({"sessionName": "X-Kept"}, "X-Kept"), ({"header": {"name": "X-Kept"}}, "X-Kept"), ({}, "X-Headgate-Session")],
    ids=str,
)
async def test_a_client_that_repeats_a_header_keeps_to_the_service_that_served_it_first(named: Any, name: str) -> None:
    async with world("one", "two") as made:
        installed(made, route(to("one", "two", sessionPersistence={"type": "Header", **named})))
        got = await made.proxy.get()
        assert (got.all("Set-Cookie"), bool(got[name])) == ([], True)
        assert set(await made.proxy.bodies(6, **{name: got[name]})) == {got.body.decode()}
        assert set(await made.proxy.bodies(6)) == {"one", "two"}
        again = await made.proxy.get(**{name: got[name]})
        assert again[name] == ""


async def test_a_rule_that_wants_more_retries_than_are_made_is_served() -> None:
    async with world("web") as made:
        installed(made, route(to("web", retry={"attempts": 1000, "backoff": "10ms"})))
        assert await made.proxy.status() == 200


async def test_what_is_gone_is_served_no_more() -> None:
    async with world("web") as made:
        installed(made, route(to("web")))
        assert await body(made) == "web"
        made.proxy.delete(route(to("web")))
        assert await body(made) == "404"
        made.proxy.apply(route(to("web")))
        made.proxy.delete(gateway())
        assert await body(made) == "404"
