"""Settings of Traefik's provider of resources: what is read, and what may be referred to."""

from dataclasses import replace
from typing import Any

import pytest

from fakes.translator.deltas import applied, endpoint_slice, ingress, ingress_class, ref_of, service
from fakes.translator.traefik import WEB, middleware, resource, route, rule
from fakes.translator.traefik_streams import rule as tcp_rule
from fakes.translator.traefik_streams import tcp
from headgate.common.table import Route, Upstream, VirtualHost
from headgate.translator.offline import Offline, translate_all
from headgate.translator.world.entry_point_settings import EntryPointSettings, read_entry_points
from headgate.translator.world.entry_points import OWN_ENTRY_POINTS, EntryPoint
from headgate.translator.world.settings import DEFAULT_SETTINGS, TraefikSettings

A = "Host(`a.test`)"
ROUTER = "traefik.ingress.kubernetes.io/router."
TRANSPORT = "traefik.ingress.kubernetes.io/service.serverstransport"
POINTS = (*OWN_ENTRY_POINTS, EntryPoint("db", "tcp", 5432))


def translated(*manifests: Any, **traefik: Any) -> Offline:
    there = (service(), endpoint_slice("web", "10.0.0.1"), *manifests)
    settings = replace(DEFAULT_SETTINGS, traefik=TraefikSettings(**traefik), entry_points=POINTS)
    return translate_all(map(applied, there), settings)


def routes(made: Offline) -> list[Route]:
    return [route for entry in made.entries if isinstance(entry, VirtualHost) for route in entry.routes]


def reasons(made: Offline) -> list[str]:
    return [problem.reason for problems in made.problems.values() for problem in problems]


def external() -> Any:
    made = service("far")
    made["spec"] |= {"type": "ExternalName", "externalName": "far.example"}
    return made


@pytest.mark.parametrize("is_allowed", [True, False])
@pytest.mark.parametrize("is_stream", [True, False])
def test_services_of_type_external_name_are_allowed_by_a_setting(is_allowed: bool, is_stream: bool) -> None:
    to = {"name": "far", "port": 80}
    one = tcp(tcp_rule("HostSNI(`*`)", to), entryPoints=["db"]) if is_stream else route(rule(A, to))
    made = translated(external(), one, allow_external_names=is_allowed)
    assert reasons(made) == ([] if is_allowed else ["ExternalNameDisabled"])
    (used,) = (entry for entry in made.entries if isinstance(entry, Upstream))
    assert (used.unavailable is None) is is_allowed


@pytest.mark.parametrize(
    ("namespaces", "is_allowed"),
    [(("*",), True), ((), False), (("default",), True), (("def*",), True), (("b",), False)],
)
@pytest.mark.parametrize(
    "place",
    [
        "middleware",
        "transport",
        "options",
        "service",
        "annotations",
        "annotated options",
        "annotated transport",
        "stream options",
    ],
)
def test_namespaces_may_refer_with_a_provider_by_a_setting(namespaces: list[str], is_allowed: bool, place: str) -> None:
    named = "other-one@kubernetescrd"
    tls = {"options": {"name": named}}
    made: dict[str, Any] = {
        "middleware": [middleware("one", "other", compress={}), route(rule(A, middlewares=[named]))],
        "transport": [
            resource("ServersTransport", "one", {}, namespace="other"),
            route(rule(A, {"name": "web", "port": 80, "serversTransport": named})),
        ],
        "options": [resource("TLSOption", "one", {}, namespace="other"), route(rule(A), spec={"tls": tls})],
        "service": [
            resource("TraefikService", "one", {"weighted": {"services": [WEB]}}, namespace="other"),
            route(rule(A, {"name": named, "kind": "TraefikService"})),
            service("web", namespace="other"),
            endpoint_slice("web", "10.0.0.1", namespace="other"),
        ],
        "annotations": [
            middleware("one", "other", compress={}),
            ingress("one", host="a.test", annotations={f"{ROUTER}middlewares": named}),
        ],
        "annotated options": [
            resource("TLSOption", "one", {}, namespace="other"),
            ingress("one", host="a.test", annotations={f"{ROUTER}tls.options": named}),
        ],
        "annotated transport": [
            resource("ServersTransport", "one", {}, namespace="other"),
            {**service(), "metadata": {**service()["metadata"], "annotations": {TRANSPORT: named}}},
            ingress("one", host="a.test", annotations={f"{ROUTER}entrypoints": "web"}),
        ],
        "stream options": [
            resource("TLSOption", "one", {}, namespace="other"),
            tcp(tcp_rule("HostSNI(`a.com`)"), entryPoints=["db"], tls=tls),
        ],
    }
    found = translated(*made[place], allow_cross_namespace=True, cross_provider_namespaces=tuple(namespaces))
    assert set(reasons(found)) == (set() if is_allowed else {"RefNotPermitted"})


@pytest.mark.parametrize(("syntax", "wrong"), [("v3", 2), ("v2", 0)])
def test_rules_that_do_not_say_their_syntax_have_that_of_the_setting(syntax: str, wrong: int) -> None:
    both = route(rule("Host(`a.test`, `b.test`)")), tcp(tcp_rule("HostSNI(`a.test`, `b.test`)"), tls={})
    assert reasons(translated(*both, default_rule_syntax=syntax)) == ["InvalidRule"] * wrong


def test_a_rule_may_say_another_syntax_than_the_setting() -> None:
    assert reasons(translated(route(rule(A, syntax="v3")), default_rule_syntax="v2")) == []


@pytest.mark.parametrize(("said", "by_default", "address"), [(None, True, "10.96.0.1"), (False, True, "10.0.0.1")])
def test_services_are_asked_at_their_cluster_ip_by_a_setting(said: Any, by_default: bool, address: str) -> None:
    at = service()
    at["spec"]["clusterIP"] = "10.96.0.1"
    to = {"name": "web", "port": 80} | ({} if said is None else {"nativeLB": said})
    made = translated(at, route(rule(A, to)), native_lb_by_default=by_default)
    (used,) = (entry for entry in made.entries if isinstance(entry, Upstream))
    assert [one.address for one in used.endpoints] == [address]


@pytest.mark.parametrize(
    ("traefik", "is_read"),
    [
        ({"namespaces": ("def*",)}, True),
        ({"namespaces": ("shop",)}, False),
        ({"label_selector": "team=shop"}, True),
        ({"label_selector": "team!=shop"}, False),
    ],
)
def test_objects_are_read_by_namespace_and_labels(traefik: Any, is_read: bool) -> None:
    one = route(rule(A), labels={"team": "shop"})
    made = translated(one, **traefik)
    assert bool(routes(made)) is is_read
    assert (ref_of(one) in made.foreign) is not is_read


def test_a_middleware_that_is_not_read_is_not_found() -> None:
    using = route(rule(A, middlewares=["short"]), labels={"team": "shop"})
    made = translated(using, middleware("short", addPrefix={"prefix": "/a"}), label_selector="team=shop")
    assert reasons(made) == ["MiddlewareNotFound"]


@pytest.mark.parametrize(("names", "is_ours"), [((), False), (("traefik.io/ingress-controller",), True)])
def test_ingress_classes_of_traefik_are_adopted_by_a_setting(names: tuple[str, ...], is_ours: bool) -> None:
    own = {"traefik.ingress.kubernetes.io/router.priority": "77"}
    one = ingress("one", host="a.test")
    one["spec"]["ingressClassName"] = "traefik"
    one["metadata"]["annotations"] = own
    there = (ingress_class("traefik", "traefik.io/ingress-controller"), service(), endpoint_slice("web", "10.0.0.1"))
    controllers = DEFAULT_SETTINGS.controller_names | set(names)
    settings = replace(DEFAULT_SETTINGS, controller_names=frozenset(controllers))
    made = translate_all(map(applied, (*there, one)), settings)
    assert [route.rank.priority for route in routes(made)] == ([77] if is_ours else [])
    assert (ref_of(one) in made.foreign) is not is_ours


@pytest.mark.parametrize(
    ("on_point", "on_route", "logs", "traces"),
    [
        ({}, {}, True, True),
        ({"accessLogs": False, "tracing": False}, {}, False, False),
        ({"accessLogs": False, "tracing": False}, {"accessLogs": True, "tracing": True}, True, True),
        ({"accessLogs": False}, {"tracing": False}, False, False),
        ({"metrics": False}, {"accessLogs": False}, False, True),
    ],
)
@pytest.mark.parametrize("kind", ["route", "ingress", "own port"])
def test_entry_points_say_what_is_seen_of_routes_that_do_not_say_it(
    kind: str, on_point: Any, on_route: Any, logs: bool, traces: bool
) -> None:
    name = "web" if kind == "own port" else "api"
    address = {} if kind == "own port" else {"address": ":9000"}
    written = {name: EntryPointSettings.model_validate({**address, "observability": on_point})}
    settings = replace(DEFAULT_SETTINGS, entry_points=read_entry_points(written))
    one = route(rule(A, observability=on_route), spec={"entryPoints": [name]})
    if kind == "ingress":
        said = {f"{ROUTER}observability.{key.lower()}": str(value).lower() for key, value in on_route.items()}
        one = ingress("one", host="a.test", annotations={f"{ROUTER}entrypoints": name, **said})
    (found,) = routes(translate_all(map(applied, (service(), endpoint_slice("web", "10.0.0.1"), one)), settings))
    assert (found.access_log_share is None, found.tracing.share is None) == (logs, traces)
