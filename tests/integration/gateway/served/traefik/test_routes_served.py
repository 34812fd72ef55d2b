"""IngressRoutes from manifests to the wire."""

import contextlib
import ssl
from typing import Any

import pytest

from fakes.gateway.served import HOST
from fakes.gateway.tls import Authority, unverified
from fakes.translator.applied import pair, world
from fakes.translator.deltas import endpoint_slice, ingress, service
from fakes.translator.traefik import middleware, resource, route, rule
from headgate.gateway.proxy.config import ProxyConfig
from headgate.translator.world.settings import TraefikSettings, TranslationSettings

ANY = f"Host(`{HOST}`)"


def to(name: str, **fields: Any) -> Any:
    return {"name": name, "port": 80, **fields}


async def test_a_rule_leads_to_its_service() -> None:
    async with world("one", "two") as made:
        made.proxy.apply(
            route(rule(f"{ANY} && PathPrefix(`/a`)", to("one")), rule(f"{ANY} && PathPrefix(`/b`)", to("two")))
        )
        assert (await made.proxy.get("/a/x")).body == b"one"
        assert (await made.proxy.get("/b")).body == b"two"
        assert await made.proxy.status("/c") == 404


async def test_a_prefix_is_one_of_characters() -> None:
    async with world("one") as made:
        made.proxy.apply(route(rule("PathPrefix(`/products`)", to("one"))))
        assert [await made.proxy.status(path) for path in ("/products-for-sale", "/product")] == [200, 404]


async def test_the_longer_rule_goes_first_and_a_priority_before_it() -> None:
    short, long = f"{ANY} && PathPrefix(`/a`)", f"{ANY} && PathPrefix(`/a`) && Method(`GET`)"
    async with world("one", "two") as made:
        made.proxy.apply(route(rule(short, to("one")), rule(long, to("two"))))
        assert (await made.proxy.get("/a")).body == b"two"
        made.proxy.apply(route(rule(short, to("one"), priority=1000), rule(long, to("two"))))
        assert (await made.proxy.get("/a")).body == b"one"


async def test_a_longer_rule_goes_first_whatever_it_says_of_hosts() -> None:
    async with world("one", "two") as made:
        made.proxy.apply(
            route(rule("Host(`shop1.test`)", to("one")), name="exact"),
            route(rule("HostRegexp(`^shop[0-9]+[.]test$`)", to("two")), name="pattern"),
        )
        assert (await made.proxy.get(host="shop1.test")).body == b"two"
        made.proxy.apply(route(rule("Host(`shop1.test`)", to("one"), priority=1000), name="exact"))
        assert [(await made.proxy.get(host=f"shop{number}.test")).body for number in (1, 2)] == [b"one", b"two"]


async def test_two_routes_of_one_rule_are_both_known_and_the_first_is_served() -> None:
    twice = route(rule(ANY, to("one")), rule(ANY, to("two")))
    async with world("one", "two") as made:
        made.proxy.apply(twice)
        assert (await made.proxy.get()).body == b"one"
        assert made.proxy.problems(twice) == ["ShadowedRoute"]
        made.proxy.apply(route(rule(ANY, to("one")), rule(ANY, to("two"), priority=1000)))
        assert (await made.proxy.get()).body == b"two"


async def test_requests_that_no_rule_of_their_host_takes_go_to_rules_for_any_host() -> None:
    async with world("one", "rest") as made:
        made.proxy.apply(
            route(rule(f"{ANY} && Path(`/a`)", to("one")), rule("PathPrefix(`/`)", to("rest"), priority=1))
        )
        assert [(await made.proxy.get(path)).body for path in ("/a", "/b")] == [b"one", b"rest"]
        assert (await made.proxy.get("/a", host="other.test")).body == b"rest"


async def test_a_rule_for_any_host_leaves_hosts_of_ingresses_alone() -> None:
    async with world("one", "rest") as made:
        made.proxy.apply(ingress("web", host=HOST, path="/a", service="one"))
        made.proxy.apply(route(rule("PathPrefix(`/`)", to("rest"))))
        assert (await made.proxy.get("/a")).body == b"one"
        assert await made.proxy.status("/b") == 404


async def test_a_route_of_another_namespace_takes_no_host_that_has_an_owner() -> None:
    settings = TranslationSettings(traefik=TraefikSettings(allow_cross_namespace=True))
    thief = route(
        rule(ANY, to("rest", namespace="default")), namespace="shop", creationTimestamp="2026-02-01T00:00:00Z"
    )
    async with world("one", "rest", settings=settings) as made:
        made.proxy.apply(ingress("web", host=HOST, path="/", service="one", created="2026-01-01T00:00:00Z"), thief)
        assert (await made.proxy.get("/a")).body == b"one"
        assert made.proxy.errors(thief) == ["HostNotOwned"]


async def test_rules_of_the_older_syntax_are_read() -> None:
    async with world("one") as made:
        made.proxy.apply(route(rule(f"Host(`{HOST}`, `b.test`) && Path(`/{{id:[0-9]+}}`)", to("one"), syntax="v2")))
        assert [await made.proxy.status(path) for path in ("/17", "/x")] == [200, 404]


async def test_a_broken_rule_costs_itself_and_is_named_with_its_column() -> None:
    broken = route(rule(f"{ANY} &&", to("one")), rule(f"{ANY} && Path(`/b`)", to("one")))
    async with world("one") as made:
        made.proxy.apply(broken)
        assert await made.proxy.status("/b") == 200
        assert made.proxy.errors(broken) == ["InvalidRule"]
        assert "column" in made.proxy.messages(broken)


async def test_a_missing_service_is_a_503_and_a_condition() -> None:
    lost = route(rule(ANY, to("lost")))
    async with world("one") as made:
        made.proxy.apply(lost)
        assert await made.proxy.status() == 503
        assert made.proxy.errors(lost) == ["ServiceNotFound"]
        made.proxy.apply(service("lost"), endpoint_slice("lost", "127.0.0.1", port=made.port("one")))
        assert await made.proxy.status() == 200


@pytest.mark.parametrize("may_be_empty", [False, True])
async def test_an_empty_service_is_a_503_and_warned_of_unless_it_may_be_empty(may_be_empty: bool) -> None:
    settings = TranslationSettings(traefik=TraefikSettings(allow_empty_services=may_be_empty))
    empty, lost = route(rule(ANY, to("empty"))), route(rule("Host(`lost.test`)", to("lost")), name="lost")
    async with world(settings=settings) as made:
        made.proxy.apply(service("empty"), empty, lost)
        assert await made.proxy.status() == 503
        assert made.proxy.problems(empty) == ([] if may_be_empty else ["NoReadyEndpoints"])
        assert made.proxy.errors(lost) == ["ServiceNotFound"]


async def test_a_port_is_found_by_name() -> None:
    async with world("one") as made:
        made.proxy.apply(route(rule(ANY, {"name": "one", "port": "http"})))
        assert await made.proxy.status() == 200
        made.proxy.apply(route(rule(ANY, {"name": "one", "port": "other"})))
        assert await made.proxy.status() == 503


async def test_services_share_requests_by_their_weights() -> None:
    async with world("one", "two") as made:
        made.proxy.apply(route(rule(ANY, to("one", weight=3), to("two", weight=1))))
        bodies = await made.proxy.bodies(40)
        assert (bodies.count("one"), bodies.count("two")) == (30, 10)


async def test_a_dead_service_keeps_its_share_and_its_siblings_theirs() -> None:
    async with world("one") as made:
        made.proxy.apply(route(rule(ANY, to("one"), to("lost"))))
        statuses = [await made.proxy.status() for _ in range(20)]
        assert (statuses.count(200), statuses.count(503)) == (10, 10)


async def test_the_clients_host_is_sent_unless_it_must_not() -> None:
    async with world("one") as made:
        made.proxy.apply(route(rule(ANY, to("one"))))
        await made.proxy.get()
        made.proxy.apply(route(rule(ANY, to("one", passHostHeader=False))))
        await made.proxy.get()
        first, second = made.servers["one"].heads
        assert f"host: {HOST}".encode() in first.lower()
        assert f"host: 127.0.0.1:{made.port('one')}".encode() in second.lower()


@pytest.mark.parametrize("strategy", ["wrr", "p2c", "hrw", "leasttime", "RoundRobin"])
async def test_servers_are_chosen_by_the_strategy(strategy: str) -> None:
    async with world("one", "two") as made:
        slices = [endpoint_slice("all", "127.0.0.1", name=name, port=made.port(name)) for name in ("one", "two")]
        made.proxy.apply(service("all"), *slices, route(rule(ANY, to("all", strategy=strategy))))
        bodies = set(await made.proxy.bodies(30))
        assert len(bodies) == (1 if strategy == "hrw" else 2)


async def test_routes_with_tls_answer_over_tls_alone_and_others_over_plain_connections() -> None:
    issued = Authority().issue(HOST)
    async with world("one", "two") as made:
        made.proxy.apply(
            pair("cert", issued, HOST),
            route(rule(ANY, to("one")), name="plain"),
            route(rule(ANY, to("two")), name="secure", spec={"tls": {"secretName": "cert"}}),
        )
        assert (await made.proxy.get()).body == b"one"
        assert (await made.proxy.proxy.secure()).body == b"two"


async def test_what_a_trusted_proxy_says_of_the_scheme_changes_no_entry_point() -> None:
    config = ProxyConfig(trust_forwarded=True)
    async with world("one", "two", config=config) as made:
        made.proxy.apply(route(rule(ANY, to("one")), name="plain"))
        made.proxy.apply(route(rule(ANY, to("two")), name="secure", spec={"tls": {}}))
        assert (await made.proxy.get(X_Forwarded_Proto="https")).body == b"one"
        assert b"x-forwarded-proto: https" in made.servers["one"].heads[-1].lower()


async def test_a_missing_certificate_is_said_and_the_route_served() -> None:
    secure = route(rule(ANY), spec={"tls": {"secretName": "lost"}})
    async with world("web") as made:
        made.proxy.proxy.present(HOST, Authority().issue(HOST))
        made.proxy.apply(secure)
        assert made.proxy.errors(secure) == ["SecretNotFound"]
        assert (await made.proxy.proxy.secure()).status == 200


async def test_entry_points_are_the_gateways_ports() -> None:
    async with world("web") as made:
        made.proxy.proxy.present(HOST, Authority().issue(HOST))
        made.proxy.apply(route(rule(ANY), spec={"entryPoints": ["websecure"]}))
        assert (await made.proxy.status(), (await made.proxy.proxy.secure()).status) == (404, 200)
        unknown = route(rule(ANY), spec={"entryPoints": ["web", "metrics"]})
        made.proxy.apply(unknown)
        assert await made.proxy.status() == 200
        assert made.proxy.problems(unknown) == ["EntryPointNotFound"]


_VERSIONS = {"modern": "VersionTLS13", "ancient": "VersionTLS12"}


@pytest.mark.parametrize(
    ("setting", "annotation", "field", "status"),
    [
        ("", None, None, 200),
        ("", "traefik", None, 200),
        ("", "nginx", None, 404),
        ("inner", None, None, 404),
        ("inner", "inner", None, 200),
        ("inner", "other", "inner", 200),
        ("inner", "inner", "other", 404),
    ],
)
async def test_the_class_says_whose_a_route_is(
    setting: str, annotation: str | None, field: str | None, status: int
) -> None:
    settings = TranslationSettings(traefik=TraefikSettings(ingress_class=setting))
    annotations = {"kubernetes.io/ingress.class": annotation} if annotation else {}
    spec = {"ingressClassName": field} if field else {}
    async with world("web", settings=settings) as made:
        made.proxy.apply(route(rule(ANY), annotations=annotations, spec=spec))
        assert await made.proxy.status() == status


@pytest.mark.parametrize(("is_allowed", "status"), [(False, 503), (True, 200)])
async def test_services_of_other_namespaces_are_used_by_setting(is_allowed: bool, status: int) -> None:
    settings = TranslationSettings(traefik=TraefikSettings(allow_cross_namespace=is_allowed))
    crossing = route(rule(ANY, to("web", namespace="default")), namespace="shop")
    async with world("web", settings=settings) as made:
        made.proxy.apply(crossing)
        assert await made.proxy.status() == status
        assert made.proxy.errors(crossing) == ([] if is_allowed else ["RefNotPermitted"])


async def test_objects_of_the_older_group_are_served_where_the_newer_has_none() -> None:
    async with world("one", "two") as made:
        made.proxy.apply(route(rule(ANY, to("one")), group="traefik.containo.us"))
        assert (await made.proxy.get()).body == b"one"
        made.proxy.apply(route(rule(ANY, to("two"))))
        assert (await made.proxy.get()).body == b"two"


@pytest.mark.parametrize(
    ("fields", "spec"),
    [
        ({"serversTransport": "own"}, {}),
        ({"kind": "TraefikService"}, {}),
        ({"kind": "TraefikService", "name": "api@internal"}, {}),
        ({"scheme": "ftp"}, {}),
        ({"healthCheck": {"path": "http://other.test/"}}, {}),
    ],
)
async def test_what_cannot_be_followed_closes_the_route(fields: Any, spec: Any) -> None:
    closed = route(rule(ANY, to("web") | fields), spec=spec)
    async with world("web") as made:
        made.proxy.apply(closed)
        assert await made.proxy.status() == 503
        assert len(made.proxy.errors(closed)) == 1


async def test_a_tls_option_holds_for_the_hosts_of_the_route() -> None:
    modern = resource("TLSOption", "modern", {"minVersion": "VersionTLS13"})
    asking = route(rule(ANY), spec={"tls": {"options": {"name": "modern"}}})
    old, new = unverified(), unverified()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    async with world("web") as made:
        made.proxy.proxy.present(HOST, Authority().issue(HOST))
        made.proxy.apply(modern, asking)
        assert (await made.proxy.proxy.secure(new)).status == 200
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await made.proxy.proxy.secure(old)


async def test_a_connection_for_a_host_with_another_tls_option_is_misdirected() -> None:
    modern = resource("TLSOption", "modern", {"minVersion": "VersionTLS13"})
    one = route(rule("Host(`one.test`)"), name="one", spec={"tls": {"options": {"name": "modern"}}})
    two = route(rule("Host(`two.test`)"), name="two", spec={"tls": {}})
    async with world("web") as made:
        made.proxy.apply(modern, one, two)
        found = [
            (await made.proxy.proxy.secure(server_name=f"{name}.test", host=f"{host}.test")).status
            for name, host in (("one", "one"), ("one", "two"), ("two", "one"), ("other", "two"))
        ]
    assert found == [200, 421, 421, 200]


async def test_a_gateway_of_another_cluster_asks_for_all_hosts_by_one_connection() -> None:
    modern = resource("TLSOption", "modern", {"minVersion": "VersionTLS13"})
    one = route(rule("Host(`one.test`)"), spec={"tls": {"options": {"name": "modern"}}})
    async with world("web") as made:
        made.proxy.apply(modern, one)
        got = await made.proxy.proxy.secure(server_name="127.0.0.1", host="one.test", headgate_hop="1")
        assert got.status == 200


@pytest.mark.parametrize(
    ("second", "is_kept"), [({"name": "modern"}, True), ({"name": "ancient"}, False), (None, False)]
)
async def test_routes_of_a_host_that_differ_in_their_tls_have_the_default(second: Any, is_kept: bool) -> None:
    options = [resource("TLSOption", name, {"minVersion": version}) for name, version in _VERSIONS.items()]
    first = route(rule(ANY), spec={"tls": {"options": {"name": "modern"}}})
    other = route(rule(f"{ANY} && Path(`/b`)"), name="other", spec={"tls": {"options": second} if second else {}})
    old = unverified()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    async with world("web") as made:
        made.proxy.apply(*options, first, other)
        assert ("TlsConflict" in made.proxy.problems(first)) is not is_kept
        with pytest.raises((ssl.SSLError, ConnectionError)) if is_kept else contextlib.nullcontext():
            assert (await made.proxy.proxy.secure(old)).status == 200


@pytest.mark.parametrize("options", [[], [resource("TLSOption", "mutual", {"cipherSuites": ["NONE"]})]])
async def test_a_tls_option_that_cannot_be_followed_lets_no_client_in(options: Any) -> None:
    closed = route(rule(ANY), spec={"tls": {"options": {"name": "mutual"}}})
    async with world("web") as made:
        made.proxy.proxy.present(HOST, Authority().issue(HOST))
        made.proxy.apply(*options, closed)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await made.proxy.proxy.secure()
        assert made.servers["web"].heads == []
        assert made.proxy.errors(closed) == ["InvalidTLSOption" if options else "TLSOptionNotFound"]


def split(name: str, *services: Any, **weighted: Any) -> Any:
    return resource("TraefikService", name, {"weighted": {"services": list(services), **weighted}})


def group(name: str, **fields: Any) -> Any:
    return {"name": name, "kind": "TraefikService", **fields}


async def test_weighted_services_are_nested() -> None:
    async with world("one", "two", "three") as made:
        made.proxy.apply(split("inner", to("one"), to("two")))
        made.proxy.apply(
            split("outer", group("inner", weight=2), to("three", weight=2)), route(rule(ANY, group("outer")))
        )
        bodies = await made.proxy.bodies(40)
        assert [bodies.count(name) for name in ("one", "two", "three")] == [10, 10, 20]


async def test_one_client_keeps_to_the_service_of_the_highest_weight() -> None:
    spec = {"highestRandomWeight": {"services": [to("one"), to("two"), to("three")]}}
    async with world("one", "two", "three") as made:
        made.proxy.apply(resource("TraefikService", "hashed", spec), route(rule(ANY, group("hashed"))))
        assert len(set(await made.proxy.bodies(10))) == 1


@pytest.mark.parametrize(
    "service",
    [
        resource("TraefikService", "all", {"weighted": {"services": [group("all")]}}),
        resource("TraefikService", "all", {"weighted": {"services": []}}),
        resource("TraefikService", "all", {"failover": {"service": to("web"), "fallback": group("none")}}),
        resource("TraefikService", "all", {"mirroring": {**to("web"), "mirrors": [to("web", percent=101)]}}),
        resource("TraefikService", "all", {"mirroring": {**to("web"), "mirrors": [group("none")]}}),
        resource("TraefikService", "all", {"weighted": {"services": [to("web", scheme="ftp")]}}),
    ],
)
async def test_a_traefik_service_that_cannot_be_followed_closes_its_routes(service: Any) -> None:
    closed = route(rule(ANY, group("all")))
    async with world("web") as made:
        made.proxy.apply(service, closed)
        assert await made.proxy.status() == 503
        assert len(made.proxy.errors(closed)) == 1


async def test_a_missing_traefik_service_is_a_503_until_it_is_there() -> None:
    late = route(rule(ANY, group("late")))
    async with world("web") as made:
        made.proxy.apply(late)
        assert await made.proxy.status() == 503
        assert made.proxy.errors(late) == ["TraefikServiceNotFound"]
        made.proxy.apply(split("late", to("web")))
        assert await made.proxy.status() == 200


async def test_a_route_that_a_middleware_answers_needs_no_service() -> None:
    to_https = middleware("to-https", redirectScheme={"scheme": "https"})
    async with world("web") as made:
        made.proxy.apply(to_https, route(rule(ANY, group("noop@internal"), middlewares=["to-https"])))
        assert (await made.proxy.get("/a"))["location"] == f"https://{HOST}/a"
