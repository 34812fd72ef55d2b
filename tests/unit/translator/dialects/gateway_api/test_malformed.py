"""Objects of Gateway API with values that no API server would take: each is named, and costs itself alone."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from fakes.translator.deltas import applied, service
from fakes.translator.gateway_api import (
    Cluster,
    by_config_maps,
    call,
    extension,
    gateway,
    gateway_class,
    grpc_route,
    https,
    listener,
    plugins,
    prefix,
    route,
    stream_route,
    tls_policy,
    to,
    traffic_policy,
)
from headgate.common.problems import Problem
from headgate.common.table import Listener, VirtualHost
from headgate.translator.offline import translate_all
from headgate.translator.world.address_pool import read_pool
from headgate.translator.world.settings import TranslationSettings

JUNK = (None, 0, -1, 1.5, True, "", "x" * 300, "a b", "@", "|", "$a", "/", "\n", "*", "(", [], {}, [None], {"a": 1})
GOOD = (
    gateway_class("fine"),
    gateway(name="good", spec={"gatewayClassName": "fine"}),
    route(to("web"), name="good", parents=[{"name": "good"}], hostnames=["good.test"]),
)
MODIFIER = {"set": [{"name": "X", "value": "y"}], "add": [{"name": "Z", "value": "y"}], "remove": ["Q"]}
CHANGED_PREFIX = {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/b"}
FILTERS = [
    {"type": "RequestHeaderModifier", "requestHeaderModifier": MODIFIER},
    {"type": "ResponseHeaderModifier", "responseHeaderModifier": MODIFIER},
    {"type": "URLRewrite", "urlRewrite": {"hostname": "h.example", "path": CHANGED_PREFIX}},
    {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "web", "port": 80}, "percent": 5}},
    extension("limits"),
    {"type": "CORS", "cors": {"allowOrigins": ["https://*.a"], "allowMethods": ["*"], "maxAge": 4}},
]
REDIRECT = {"scheme": "https", "hostname": "r.example", "port": 8443, "statusCode": 301}
WHOLE = (
    plugins("limits", ("limit-count", {"count": 1, "time_window": 60})),
    gateway(
        listener(
            hostname="*.example.com", allowedRoutes={"namespaces": {"from": "All"}, "kinds": [{"kind": "TLSRoute"}]}
        ),
        https("https", "cert"),
        spec={"addresses": [{"type": "IPAddress"}], "infrastructure": {"labels": {"a": "b"}}},
    ),
    route(
        to(
            ("web", 3),
            name="one",
            matches=[prefix("/a", method="GET", headers=[{"name": "A", "value": "b"}])],
            filters=FILTERS,
            timeouts={"request": "1s", "backendRequest": "500ms"},
        ),
        to(filters=[{"type": "RequestRedirect", "requestRedirect": REDIRECT}]),
        hostnames=["a.example.com"],
        parents=[{"name": "gw", "sectionName": "http", "port": 80}],
    ),
    grpc_route(
        to(
            ("web", 3),
            name="one",
            matches=[call("a.B", "C", headers=[{"name": "A", "value": "b"}])],
            filters=[FILTERS[0], FILTERS[3]],
            sessionPersistence={"sessionName": "s", "type": "Cookie"},
        ),
        hostnames=["a.example.com"],
    ),
    gateway(
        listener("tls", 6443, "TLS", hostname="*.example.com", tls={"mode": "Passthrough"}),
        listener("tcp", 5432, "TCP"),
        listener("udp", 53, "UDP"),
        name="streams",
    ),
    *(
        stream_route(kind, ("web", 3), parents=[{"name": "streams"}], **fields)
        for kind, fields in {"TLSRoute": {"hostnames": ["a.example.com"]}, "TCPRoute": {}, "UDPRoute": {}}.items()
    ),
    tls_policy(
        **by_config_maps("ca"),
        section="http",
        subjectAltNames=[{"type": "URI", "uri": "spiffe://a"}],
        spec={"options": {}},
    ),
    traffic_policy(
        retryConstraint={"budget": {"percent": 20, "interval": "10s"}, "minRetryRate": {"count": 1}},
        sessionPersistence={"sessionName": "a", "type": "Cookie", "cookieConfig": {"lifetimeType": "Session"}},
    ),
)


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield way
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from places(member, (*way, key))


def changed(manifest: Any, way: tuple[Any, ...], value: Any) -> Any:
    made = copy.deepcopy(manifest)
    at = made
    for key in way[:-1]:
        at = at[key]
    at[way[-1]] = value
    return made


@pytest.mark.parametrize("junk", JUNK, ids=repr)
@pytest.mark.parametrize("broken", WHOLE, ids=lambda one: one["kind"])
def test_any_value_at_any_place_costs_its_object_alone(broken: Any, junk: Any) -> None:
    others = [gateway_class(), service("web"), *(one for one in WHOLE if one is not broken), *GOOD]
    for way in places(broken["spec"], ("spec",)):
        made = translate_all(map(applied, [*others, changed(broken, way, junk)]))
        reasons = {problem.reason for problems in made.problems.values() for problem in problems}
        assert "InternalError" not in reasons, way
        assert "good.test@http" in {entry.key for entry in made.entries if isinstance(entry, VirtualHost)}, way


@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_no_value_of_a_gateway_costs_others_their_addresses(junk: Any) -> None:
    settings = TranslationSettings(gateway_addresses=read_pool(["10.0.0.0/24"]))
    whole = {**WHOLE[1], "status": {"addresses": [{"type": "IPAddress", "value": "10.0.0.9"}]}}
    others = [gateway_class(), service("web"), *GOOD]
    for way in (
        *places(whole["spec"], ("spec",)),
        *places(whole["status"], ("status",)),
        ("metadata", "creationTimestamp"),
    ):
        made = translate_all(map(applied, [*others, changed(whole, way, junk)]), settings)
        reasons = {problem.reason for problems in made.problems.values() for problem in problems}
        assert "InternalError" not in reasons, way
        listeners = {entry.key: entry.address for entry in made.entries if isinstance(entry, Listener)}
        assert listeners["gateway-api/a/default/good//http"].startswith("10.0.0."), way


def problems_of(written: Any, name: str) -> list[Problem]:
    cluster = Cluster(service("web"), gateway(), written)
    ref = next(ref for ref in cluster.translation.assembly.fragments if (ref.resource, ref.name) == (name, "route"))
    condition = cluster.translation.condition(ref)
    assert condition is not None
    return [problem for problem in condition.problems if problem.reason != "NoReadyEndpoints"]


def test_a_route_whose_hostnames_cannot_be_read_takes_no_requests_and_is_told_so() -> None:
    written = route(to("web"), hostnames=["a b.example"])
    cluster = Cluster(service("web"), gateway(listener(hostname="")), written)
    assert cluster.translation.assembly.image.get("hosts", "*@http") is not None
    assert b"default/web" not in (cluster.translation.assembly.image.get("hosts", "*@http") or b"")
    assert [parent["Accepted"] for parent in cluster.parents(written)] == ["False UnsupportedValue"]
    (problem,) = problems_of(written, "httproutes")
    assert (problem.field, problem.value) == ("spec.hostnames[0]", "a b.example")
    assert "must be a DNS name" in problem.message


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"set": [{"name": "X A", "value": "1"}]}, "X A"),
        ({"add": [{"name": "X", "value": "a\nb"}]}, "X"),
    ],
)
def test_headers_that_cannot_be_sent_are_named_at_their_filters(changes: Any, told: str) -> None:
    bad = {"type": "RequestHeaderModifier", "requestHeaderModifier": changes}
    (problem,) = problems_of(route(to("web", filters=[bad]), to("web", matches=[prefix("/x")])), "httproutes")
    assert problem.field == "spec.rules[0].filters"
    assert told in problem.message


def test_rules_of_one_name_have_routes_of_their_own() -> None:
    rules = [to("web", name="same", matches=[prefix(path)]) for path in ("/a", "/b")]
    made = translate_all(map(applied, [gateway_class(), gateway(), service("web"), route(*rules)]))
    names = [one.name for entry in made.entries if isinstance(entry, VirtualHost) for one in entry.routes]
    assert len(set(names)) == 2


def test_listeners_of_one_name_are_not_accepted() -> None:
    written = gateway(listener(), listener(port=81))
    assert Cluster(written).conditions(written)["Accepted"] == "False ListenersNotValid"


def test_fields_of_a_rule_that_are_not_followed_are_warned_of() -> None:
    persistence = {"type": "Header", "idleTimeout": "5m"}
    written = route(to("web", sessionPersistence=persistence, retry={"attempts": 200}), hostnames=["a.example"])
    fields = [(problem.severity.value, problem.field) for problem in problems_of(written, "httproutes")]
    at = "spec.rules[0]"
    assert fields == [("warning", f"{at}.sessionPersistence.idleTimeout"), ("warning", f"{at}.retry.attempts")]


def test_a_rule_that_asks_for_too_many_routes_is_left_out_and_the_others_are_served() -> None:
    many = to("web", matches=[prefix(f"/{number}") for number in range(1100)])
    written = route(to("web"), many, hostnames=[f"h{number}.example" for number in range(10)])
    (problem,) = problems_of(written, "httproutes")
    assert (problem.reason, problem.field) == ("TooMuchWork", "spec.rules[1].matches")
    assert "asks for 11000 combinations" in problem.message


def test_a_condition_is_no_longer_than_api_servers_take() -> None:
    rules = [to(*(f"gone-{rule}-{number}" for number in range(16))) for rule in range(16)]
    status = Cluster(gateway(), route(*rules)).status(route(*rules))
    assert status is not None
    messages = {one["type"]: one["message"] for one in status["parents"][0]["conditions"]}
    assert "gone-0-0 not found" in messages["ResolvedRefs"]
    assert len(messages["ResolvedRefs"].encode()) <= 4096
