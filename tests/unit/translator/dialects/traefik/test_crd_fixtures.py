"""The fixtures of Traefik's provider of custom resources: what ours says of each, and what may surprise.

Set TRAEFIK_SOURCES to a checkout of Traefik at the release that the table names to have the table compared.
"""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.traefik import ANY, middleware, resource, route, rule
from fakes.translator.traefik_routes import Routes
from fakes.translator.traefik_streams import Streams, tcp, udp
from fakes.translator.traefik_streams import rule as stream_rule
from unit.translator.dialects.traefik.crd_cases import outcome

PAGE = Path(__file__).parents[5] / "docs" / "traefik-cases.md"
TABLE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("crd_fixtures.yaml").read_text())
CASES = [(function, case) for function, cases in TABLE["cases"].items() for case in cases]
SOURCES = os.environ.get("TRAEFIK_SOURCES", "")
FIXTURES = Path(SOURCES) / "pkg/provider/kubernetes/crd/fixtures"


def test_every_fixture_is_in_the_table() -> None:
    named = {fixture for _, case in CASES for fixture in case["fixtures"]} | set(TABLE["others"])
    assert len(named) == TABLE["fixtures"] == 152


def test_what_is_not_as_in_traefik_has_a_reason() -> None:
    known = set(TABLE["whys"])
    for function, case in CASES:
        is_same = case.get("traefik", case["served"]) == case["served"] and not case["refused"] and not case.get("says")
        assert is_same or case.get("why"), (function, case["case"])
        assert set(case.get("why", ())) <= known


def test_every_case_is_on_the_page() -> None:
    page = PAGE.read_text().partition("## pkg/provider/kubernetes/crd")[2]
    for function, case in CASES:
        main = [each for each in case["fixtures"] if not each.endswith("services.yml")] or case["fixtures"]
        assert f"`{function}`" in page
        assert any(f"(`{fixture}`)" in page for fixture in main), case


@pytest.mark.skipif(not SOURCES, reason="TRAEFIK_SOURCES names no checkout of Traefik")
@pytest.mark.parametrize("case", [pytest.param(case, id=f"{name}-{case['case']}") for name, case in CASES if SOURCES])
def test_the_table_says_what_becomes_of_a_case(case: dict[str, Any]) -> None:
    found = outcome(FIXTURES, case["fixtures"], case["settings"])
    assert (found.served, found.refused) == (case["served"], case["refused"])
    assert [*found.says] == case.get("says", [])


# What may surprise


def test_a_reference_without_a_port_is_refused() -> None:
    there = {"name": "web"}
    assert Routes(route(rule(ANY, there))).refused() == [("Required", "spec.routes[0].services[0].port")]
    missing = ("error", "Required", "spec.routes[0].services[0].port")
    for made in (tcp(stream_rule("HostSNI(`*`)", there), entryPoints=["db"]), udp({"services": [there]})):
        assert missing in Streams(made).said()


def test_a_rule_that_is_empty_is_named() -> None:
    assert Routes(route(rule(""))).said() == [("error", "InvalidValue", "spec.routes[0].match")]
    made = Streams(tcp(stream_rule(""), entryPoints=["db"]))
    assert made.said() == [("error", "InvalidValue", "spec.routes[0].match")]


def test_a_kind_of_rule_may_be_empty() -> None:
    assert Routes(route({"match": ANY, "services": [{"name": "web", "port": 80}]})).route
    assert Routes(route(rule(ANY, kind=""))).route


@pytest.mark.parametrize("is_allowed", [False, True])
def test_options_of_other_namespaces_are_used_by_setting(is_allowed: bool) -> None:
    option = resource("TLSOption", "modern", {"minVersion": "VersionTLS13"}, namespace="other")
    tls = {"options": {"name": "modern", "namespace": "other"}}
    expected = [] if is_allowed else [("error", "RefNotPermitted", "spec.tls.options.name")]
    assert Routes(option, route(rule(ANY), spec={"tls": tls}), allow_cross_namespace=is_allowed).said() == expected
    stream = tcp(stream_rule("HostSNI(`a.com`)"), entryPoints=["db"], tls=tls)
    assert Streams(option, stream, allow_cross_namespace=is_allowed).said() == expected


def test_a_name_may_have_several_hyphens() -> None:
    listed = middleware("many---hyphens", stripPrefix={"prefixes": ["/a"]})
    (plugin,) = Routes(listed, route(rule(ANY, middlewares=["many---hyphens"]))).plugins
    assert plugin.name == "proxy-rewrite"


@pytest.mark.parametrize(
    ("fields", "spec", "reason"),
    [
        ({"middlewares": [{"name": "m@file"}]}, {}, "RefNotPermitted"),
        ({}, {"tls": {"options": {"name": "o@file"}}}, "RefNotPermitted"),
        ({"services": [{"name": "s@file", "port": 80}]}, {}, "UnsupportedBackend"),
        ({"services": [{"name": "s@file", "kind": "TraefikService"}]}, {}, "RefNotPermitted"),
        ({"services": [{"name": "web", "port": 80, "serversTransport": "t@file"}]}, {}, "RefNotPermitted"),
    ],
)
def test_an_object_of_another_provider_closes_the_route(fields: Any, spec: Any, reason: str) -> None:
    made = Routes(route(rule(ANY) | fields, spec=spec), allow_cross_namespace=True)
    assert {said for said, _ in made.refused()} == {reason}


def test_node_ports_are_not_asked() -> None:
    there = {"name": "web", "port": 80, "nodePortLB": True}
    said = [("warning", "UnsupportedField", "spec.routes[0].services[0].nodePortLB")]
    made = Routes(route(rule(ANY, there)))
    assert made.said() == said
    assert [one.address for one in made.upstream.endpoints] == ["10.0.0.1"]
    assert Streams(tcp(stream_rule("HostSNI(`*`)", there), entryPoints=["db"])).said() == said


def test_addresses_of_version_6_are_asked() -> None:
    slices = endpoint_slice("six", "2001:db8::1") | {"addressType": "IPv6"}
    made = Routes(service("six"), slices, route(rule(ANY, {"name": "six", "port": 80})))
    assert made.said() == []
    assert [one.address for one in made.upstream.endpoints] == ["2001:db8::1"]


def test_an_address_in_several_slices_is_one_server() -> None:
    twice = [endpoint_slice("two", "10.0.0.7", "10.0.0.8", name=name) for name in ("a", "b")]
    made = Routes(service("two"), *twice, route(rule(ANY, {"name": "two", "port": 80})))
    assert [one.address for one in made.upstream.endpoints] == ["10.0.0.7", "10.0.0.8"]
