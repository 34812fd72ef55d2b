"""IngressRoutes below others by `parentRefs`, from manifests to the wire."""

from typing import Any

import pytest

from fakes.gateway.proxied import Conversation, answering
from fakes.translator.applied import World, switching, world
from fakes.translator.traefik import ANY, middleware, resource, route, rule
from headgate.translator.world.settings import TraefikSettings, TranslationSettings

ABOVE = [{"name": "above"}]
SERVICE = {"kind": "TraefikService"}


def parent(*middlewares: Any, match: str = ANY, name: str = "above", **more: Any) -> Any:
    return route(
        {"match": match, "kind": "Rule", "middlewares": [{"name": each} for each in middlewares]}, name=name, **more
    )


def child(match: str, service: str, *, name: str = "", above: Any = ABOVE, spec: Any = None, **fields: Any) -> Any:
    more = {key: fields.pop(key) for key in ("namespace",) if key in fields}
    to = rule(match, {"name": service, "port": 80}, **fields)
    return route(to, name=name or f"to-{service}", spec={"parentRefs": above, **(spec or {})}, **more)


def sets(name: str, **values: str) -> Any:
    return middleware(name, headers={"customRequestHeaders": {key.replace("_", "-"): values[key] for key in values}})


async def test_children_are_chosen_by_what_the_parents_middlewares_made_of_the_request() -> None:
    async with world("one", "two") as made:
        made.proxy.apply(
            parent("tells"), child("Header(`X-Role`, `admin`)", "one"), child("Header(`X-Role`, `user`)", "two")
        )
        made.proxy.apply(sets("tells", X_Role="admin"))
        assert (await made.proxy.get("/", X_Role="user")).body == b"one"
        made.proxy.apply(sets("tells", X_Role="user"))
        assert (await made.proxy.get("/", X_Role="admin")).body == b"two"


async def role(conversation: Conversation) -> None:
    """Script: let all in, with the role that their token stands for."""
    while True:
        head = await conversation.head()
        told = b"X-Role: admin\r\n" if b"token: a\r\n" in head.lower() else b"X-Role: user\r\n"
        await conversation.send(b"HTTP/1.1 200 OK\r\n" + told + b"Content-Length: 0\r\n\r\n")


async def test_children_go_by_what_an_auth_server_says() -> None:
    async with world("one", "two", auth=role) as made:
        asks = middleware(
            "asks",
            forwardAuth={"address": f"http://127.0.0.1:{made.port('auth')}/", "authResponseHeaders": ["X-Role"]},
        )
        admins, users = child("Header(`X-Role`, `admin`)", "one"), child("Header(`X-Role`, `user`)", "two")
        made.proxy.apply(asks, parent("asks"), admins, users)
        assert (await made.proxy.get("/", Token="a")).body == b"one"
        assert (await made.proxy.get("/", Token="b")).body == b"two"


async def test_a_path_is_that_behind_the_parents_middlewares() -> None:
    async with world("one", "two") as made:
        strips = middleware("strips", stripPrefix={"prefixes": ["/api"]})
        made.proxy.apply(
            strips,
            parent("strips", match=f"{ANY} && PathPrefix(`/api`)"),
            child("Path(`/a b`)", "one"),
            child("PathPrefix(`/api`)", "two"),
        )
        assert (await made.proxy.get("/api/a%20b")).body == b"one"
        assert (await made.proxy.get("/api/api/x")).body == b"two"
        assert await made.proxy.status("/api/else") == 404
        assert await made.proxy.status("/a%20b") == 404


async def test_of_several_children_that_of_the_highest_priority_is_asked_first() -> None:
    async with world("one", "two") as made:
        made.proxy.apply(parent(), child("PathPrefix(`/a`)", "one"), child("PathPrefix(`/a/long`)", "two"))
        assert (await made.proxy.get("/a/long")).body == b"two"
        made.proxy.apply(child("PathPrefix(`/a`)", "one", priority=1000))
        assert (await made.proxy.get("/a/long")).body == b"one"


async def test_a_request_that_no_child_takes_is_a_404_behind_the_parents_middlewares() -> None:
    async with world("one") as made:
        answers = middleware("marks", headers={"customResponseHeaders": {"X-Above": "seen"}})
        made.proxy.apply(answers, parent("marks"), child("PathPrefix(`/a`)", "one"))
        got = await made.proxy.get("/b")
        assert (got.status, got.all("X-Above")) == (404, ["seen"])
        assert (await made.proxy.get("/a")).all("X-Above") == ["seen"]


async def test_a_parent_may_keep_all_children_closed() -> None:
    async with world("one") as made:
        closes = middleware("closes", ipAllowList={"sourceRange": ["10.9.9.9/32"]})
        made.proxy.apply(closes, parent("closes"), child("PathPrefix(`/`)", "one"))
        assert await made.proxy.status() == 403
        assert made.servers["one"].heads == []


async def test_middlewares_of_a_child_run_behind_the_parents() -> None:
    async with world("one", "two") as made:
        first, second = sets("first", X_Who="parent"), sets("second", X_Who="child")
        made.proxy.apply(
            first, second, parent("first"), child("Header(`X-Who`, `parent`)", "one", middlewares=["second"])
        )
        assert (await made.proxy.get()).body == b"one"
        assert b"x-who: child\r\n" in made.servers["one"].heads[-1].lower()


async def test_counts_of_a_parent_are_for_all_children_together() -> None:
    async with world("one", "two") as made:
        limits = middleware("limits", rateLimit={"average": 1, "period": "1h", "burst": 2})
        made.proxy.apply(limits, parent("limits"), child("Path(`/1`)", "one"), child("Path(`/2`)", "two"))
        assert [await made.proxy.status(path) for path in ("/1", "/2", "/1", "/2")] == [200, 200, 429, 429]


async def test_layers_are_nested() -> None:
    between = route(
        {"match": "Header(`X-Step`, `1`)", "kind": "Rule", "middlewares": [{"name": "second"}]},
        name="between",
        spec={"parentRefs": ABOVE},
    )
    async with world("one") as made:
        made.proxy.apply(sets("first", X_Step="1"), sets("second", X_Step="2"))
        made.proxy.apply(parent("first"), between, child("Header(`X-Step`, `2`)", "one", above=[{"name": "between"}]))
        assert (await made.proxy.get()).body == b"one"
        made.proxy.delete(between)
        assert await made.proxy.status() == 503


async def test_children_come_and_go() -> None:
    async with world("one") as made:
        below, above = child("PathPrefix(`/`)", "one"), parent()
        made.proxy.apply(above)
        assert await made.proxy.status() == 503
        assert made.proxy.errors(above) == ["NoBackends"]
        made.proxy.apply(below)
        assert (await made.proxy.get()).body == b"one"
        assert made.proxy.problems(above) == made.proxy.problems(below) == []
        made.proxy.delete(below)
        assert await made.proxy.status() == 503


async def test_a_child_may_have_several_parents_and_a_parent_several_routes() -> None:
    more = route(
        {"match": f"{ANY} && Path(`/1`)", "kind": "Rule"},
        {"match": f"{ANY} && Path(`/2`)", "kind": "Rule"},
        name="more",
    )
    async with world("one") as made:
        made.proxy.apply(parent(match=f"{ANY} && Path(`/0`)"), more)
        made.proxy.apply(child("Method(`GET`)", "one", above=[*ABOVE, {"name": "more"}]))
        assert [await made.proxy.status(f"/{index}") for index in range(4)] == [200, 200, 200, 404]


async def several(made: World, *services: Any) -> None:
    made.proxy.apply(parent(), route(rule("PathPrefix(`/`)", *services), name="below", spec={"parentRefs": ABOVE}))


async def test_services_of_children_have_weights_and_cookies() -> None:
    async with world("one", "two") as made:
        await several(made, {"name": "one", "port": 80, "weight": 1}, {"name": "two", "port": 80, "weight": 1})
        assert sorted(await made.proxy.bodies(4)) == ["one", "one", "two", "two"]
        await several(made, {"name": "one", "port": 80, "sticky": {"cookie": {"name": "kept"}}})
        (cookie,) = (await made.proxy.get()).all("Set-Cookie")
        assert cookie.startswith("kept=")


async def test_the_answer_of_a_childs_middleware_is_the_answer() -> None:
    async with world("one") as made:
        away = middleware("away", redirectRegex={"regex": "^.*$", "replacement": "http://else.example.com/"})
        made.proxy.apply(away, parent(), child("PathPrefix(`/`)", "one", middlewares=["away"]))
        assert await made.proxy.status() == 302


@pytest.mark.parametrize(
    ("above", "reason"),
    [
        ([{"name": "missing"}], "ParentNotFound"),
        ([{"name": "above", "namespace": "other"}], "RefNotPermitted"),
        ([{"name": "serving"}], "InvalidParent"),
        ([{"name": "to-one"}], "InvalidParent"),
    ],
)
async def test_a_parent_that_leads_nowhere_is_named(above: Any, reason: str) -> None:
    below = child("PathPrefix(`/`)", "one", above=above)
    async with world("one", "web") as made:
        made.proxy.apply(parent(), route(rule(f"{ANY} && Path(`/x`)"), name="serving"), below)
        assert made.proxy.errors(below) == [reason]
        assert made.proxy.fields(below)[0].startswith("spec.parentRefs[0]")
        assert (await made.proxy.get("/x")).body == b"web"


@pytest.mark.parametrize(("is_allowed", "status"), [(False, 503), (True, 200)])
async def test_parents_of_other_namespaces_are_found_by_setting(is_allowed: bool, status: int) -> None:
    settings = TranslationSettings(traefik=TraefikSettings(allow_cross_namespace=is_allowed))
    async with world("one", settings=settings) as made:
        made.proxy.apply(parent(namespace="other"))
        made.proxy.apply(child("PathPrefix(`/`)", "one", above=[{"name": "above", "namespace": "other"}]))
        assert await made.proxy.status() == status


@pytest.mark.parametrize(("spec", "field"), [({"entryPoints": ["web"]}, "spec.entryPoints"), ({"tls": {}}, "spec.tls")])
async def test_what_only_parents_may_say_closes_a_child(spec: Any, field: str) -> None:
    below = child("PathPrefix(`/`)", "one", spec=spec)
    async with world("one") as made:
        made.proxy.apply(parent(), below)
        assert await made.proxy.status() == 503
        assert made.proxy.fields(below) == [field]


async def test_a_broken_rule_of_a_child_costs_itself() -> None:
    async with world("one", "two") as made:
        broken = child("Pth(`/`)", "one")
        made.proxy.apply(parent(), broken, child("PathPrefix(`/`)", "two"))
        assert (await made.proxy.get()).body == b"two"
        assert made.proxy.errors(broken) == ["InvalidRule"]


async def test_errors_of_a_parent_stand_in_for_those_of_its_children() -> None:
    pages = middleware("pages", errors={"status": ["404-599"], "service": {"name": "two", "port": 80}, "query": "/"})
    broken = answering(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")
    async with world("two", one=broken) as made:
        made.proxy.apply(pages, parent("pages"), child("PathPrefix(`/a`)", "one"))
        assert (await made.proxy.get("/a")).body == b"two"
        assert (await made.proxy.get("/b")).body == b"two"


async def test_children_of_another_class_are_not_served() -> None:
    other = child("PathPrefix(`/`)", "one", spec={"ingressClassName": "other"})
    async with world("one") as made:
        made.proxy.apply(parent(), other)
        assert await made.proxy.status() == 503


@pytest.mark.parametrize(("count", "status"), [(4, 200), (5, 503)])
async def test_layers_are_bounded(count: int, status: int) -> None:
    listed = [parent(name="layer-0")]
    for number in range(1, count):
        above = [{"name": f"layer-{number - 1}"}]
        between = {"match": "PathPrefix(`/`)", "kind": "Rule"}
        listed.append(route(between, name=f"layer-{number}", spec={"parentRefs": above}))
    nested = [
        resource("TraefikService", f"s{number}", {"weighted": {"services": [{"name": f"s{number + 1}", **SERVICE}]}})
        for number in range(4)
    ]
    nested.append(resource("TraefikService", "s4", {"weighted": {"services": [{"name": "one", "port": 80}]}}))
    lowest = route(
        rule("PathPrefix(`/`)", {"name": "s0", **SERVICE}, {"name": "one", "port": 80}),
        name="lowest",
        spec={"parentRefs": [{"name": f"layer-{count - 1}"}]},
    )
    async with world("one") as made:
        made.proxy.apply(*nested, *listed, lowest)
        assert [await made.proxy.status() for _ in range(2)] == [status] * 2
        assert made.proxy.errors(lowest) == ([] if status == 200 else ["InvalidParent"])


@pytest.mark.parametrize("length", [0, 100_000])
async def test_a_fallback_stands_in_below_a_parent(length: int) -> None:
    broken = answering(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
    pair = {"service": {"name": "one", "port": 80}, "fallback": {"name": "two", "port": 80}}
    spec = {"failover": {**pair, "errors": {"status": ["500-599"]}}}
    below = route(
        rule("Header(`X-Role`, `admin`)", {"name": "pair", **SERVICE}), name="below", spec={"parentRefs": ABOVE}
    )
    async with world("two", one=broken) as made:
        made.proxy.apply(
            sets("tells", X_Role="admin"), parent("tells"), resource("TraefikService", "pair", spec), below
        )
        assert (await made.proxy.post(b"x" * length)).body == b"two"
        head = made.servers["two"].heads[-1].lower()
        assert b"x-role: admin\r\n" in head
        assert f"content-length: {length}\r\n".encode() in head
        assert made.proxy.problems(below) == []


async def test_requests_are_sent_again_as_the_parent_says() -> None:
    counts = [0]

    async def flaky(conversation: Conversation) -> None:
        while True:
            await conversation.request()
            counts[0] += 1
            status = b"503 Service Unavailable" if counts[0] == 1 else b"200 OK"
            await conversation.send(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % status)

    again = middleware("again", retry={"attempts": 3, "status": ["503"]})
    async with world(one=flaky) as made:
        made.proxy.apply(again, parent("again"), child("PathPrefix(`/`)", "one"))
        assert await made.proxy.status() == 200
        assert counts == [2]


async def test_bodies_and_websockets_pass_layers() -> None:
    async with world("one", socket=switching) as made:
        made.proxy.apply(parent(), child("Method(`POST`)", "one"), child("Method(`GET`)", "socket"))
        assert (await made.proxy.post(b"x" * 100_000)).body == b"one"
        client = await made.proxy.offer_websocket()
        assert (await client.head()).startswith(b"HTTP/1.1 101 ")
        await client.send(b"echo")
        assert await client.exactly(4) == b"echo"
        client.close()
